"""Reading the launchable kernels of a view cheaply: a decision should cost microseconds.

Tables have a handful of rows, where plain lists beat NumPy temporaries.
"""

from __future__ import annotations

from operator import itemgetter

from gpusched_env.scheduling.view import PendingColumn, View

ID = int(PendingColumn.ID)
TENANT = int(PendingColumn.TENANT)
JOB = int(PendingColumn.JOB)
JOB_LEFT = int(PendingColumn.JOB_LEFT_US)
LAUNCHABLE = int(PendingColumn.LAUNCHABLE)
PRIORITY = int(PendingColumn.PRIORITY)
URGENCY_AND_AGE = itemgetter(PRIORITY, ID)


def launchable_rows(view: View) -> list[int]:
    """Rows of ``view.pending`` that may be launched now."""
    if not len(view.pending):
        return []
    return [row for row, legal in enumerate(view.pending.array[:, LAUNCHABLE].tolist()) if legal]


def launchable_kernels(view: View) -> list[list[float]]:
    """Rows of ``view.pending`` that may be launched now, as plain lists, those of the most urgent tenants first, then
    by age."""
    table = view.pending.array
    kernels: list[list[float]] = [table[row].tolist() for row in launchable_rows(view)]
    return sorted(kernels, key=URGENCY_AND_AGE)


def oldest_row(view: View) -> int | None:
    """Row of the launchable kernel that was issued first; ``None`` if there is none."""
    table = view.pending.array
    return min(launchable_rows(view), key=lambda row: float(table[row, ID]), default=None)
