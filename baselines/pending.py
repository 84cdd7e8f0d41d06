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
KERNEL_DEADLINE = int(PendingColumn.DEADLINE_US)
ARRIVED = int(PendingColumn.JOB_ARRIVED_US)
URGENCY_AND_AGE = itemgetter(PRIORITY, ID)


def launchable_rows(view: View) -> list[int]:
    """Rows of ``view.pending`` that may be launched now."""
    return [row for row, kernel in enumerate(view.pending.rows) if kernel[LAUNCHABLE]]


def launchable_kernels(view: View) -> list[list[float]]:
    """Rows of ``view.pending`` that may be launched now, as plain lists, those of the most urgent tenants first, then
    by age."""
    return sorted((kernel for kernel in view.pending.rows if kernel[LAUNCHABLE]), key=URGENCY_AND_AGE)


def oldest_row(view: View) -> int | None:
    """Row of the launchable kernel that was issued first; ``None`` if there is none."""
    rows = view.pending.rows
    return min(launchable_rows(view), key=lambda row: rows[row][ID], default=None)


def oldest_by_tenant(view: View) -> dict[int, list[float]]:
    """The first row of each tenant that has kernels pending."""
    return {int(kernel[TENANT]): kernel for kernel in reversed(view.pending.rows)}
