"""Deciding for an interval: knobs of each tenant, which a dispatcher applies launch by launch until they are set anew.

A scheduler that is asked for every launch is asked some ten thousand times a tenth of a second. A real system would
let a network decide every hundred microseconds or so, and leave the launches between to a few lines of compiled code.
The knobs are those that a host has (:class:`Knob`). :func:`is_next` is the dispatcher's whole rule, the same for
schedulers on any device (:class:`Dispatcher`) and in compiled environments (:mod:`gpusched_env.envs.stepping`).

:class:`Serve` says with one word what all knobs are to be; action spaces are made of it
(:mod:`gpusched_env.envs.slices`).
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpusched_env.compiling import cached, law
from gpusched_env.scheduling.commands import Command, Launch, Wait
from gpusched_env.scheduling.view import PendingColumn, TenantColumn, View

Knobs = NDArray[np.int64]
"""Shape ``(len(Knob), tenants or more)``."""
Floats = NDArray[np.float64]

NOBODY: Final = -1
"""In place of a tenant's row."""
UNLIMITED: Final = 2**31
"""Launches in flight of every tenant while nobody goes first."""
DEPTH: Final = 16
"""Launches in flight of the tenant that goes first. What waits in a stream keeps the priority that it was launched
with, and more would not start earlier."""
HALF_PS: Final = 5e-7
"""In microseconds. Times are whole picoseconds, sums of them in floating point are not."""


class Knob(enum.IntEnum):
    """Rows of :data:`Knobs`."""

    IN_FLIGHT = 0
    """Launches (kernels or graphs) of the tenant handed to the GPU and unfinished at most; 0: it is not served."""
    PRIORITY = 1
    """Stream priority of what it launches, 0 or below, lower is more urgent."""


@dataclass(frozen=True, slots=True)
class Serve:
    """Let one tenant go first until the next decision.

    Its kernels have the most urgent stream priority, and :data:`DEPTH` of them may be in flight. Of the others, those
    follow by deadline whose oldest job can still meet its objective, and the rest behind them; each has a priority of
    its own as far as there are levels.
    """

    NAME: ClassVar = "serve"

    tenant: int
    """Row of ``view.tenants``; :data:`NOBODY`: everything is launched as it comes, at the least urgent priority."""
    others: int
    """Launches in flight of each other tenant (>= 0)."""

    def knobs(self, view: View, levels: NDArray[np.int64]) -> Knobs:
        """What it stands for in ``view``; ``levels``: of :func:`levels_of`."""
        tenants = view.tenants.array
        knobs = np.zeros((len(Knob), len(tenants)), np.int64)
        set_knobs(tenants, view.time_us, self.tenant, self.others, levels, knobs)
        return knobs


def levels_of(stream_priorities: tuple[int, ...]) -> NDArray[np.int64]:
    """The stream priorities that a scenario offers, the most urgent first."""
    return np.array(sorted(stream_priorities), np.int64)


@cached()
def set_knobs(
    tenants: Floats, time_us: float, first: int, others: int, levels: NDArray[np.int64], knobs: Knobs
) -> None:
    """Write what :class:`Serve` stands for.

    Args:
        tenants: a View's table of tenants.
        time_us: the present.
        first, others: fields of :class:`Serve`.
        levels: of :func:`levels_of`.
        knobs: written, of all tenants.
    """
    last = levels.size - 1
    for tenant in range(tenants.shape[0]):
        if first == NOBODY:
            knobs[Knob.IN_FLIGHT, tenant], knobs[Knob.PRIORITY, tenant] = UNLIMITED, levels[last]
        elif tenant == first:
            knobs[Knob.IN_FLIGHT, tenant], knobs[Knob.PRIORITY, tenant] = DEPTH, levels[0]
        else:
            due = due_us(tenants, tenant, time_us)
            before = 1
            for other in range(tenants.shape[0]):
                theirs = due_us(tenants, other, time_us)
                if other not in (first, tenant) and (theirs < due or (theirs == due and other < tenant)):
                    before += 1
            knobs[Knob.IN_FLIGHT, tenant], knobs[Knob.PRIORITY, tenant] = others, levels[min(before, last)]


@njit()
def due_us(tenants: Floats, tenant: int, time_us: float) -> float:
    """What tenants that do not go first are ordered by: the deadline of the oldest job, if it can be in time.

    One whose launched kernels alone will make it late comes behind all that are in time; without a deadline, last.
    """
    due = tenants[tenant, TenantColumn.OLDEST_ARRIVED_US] + tenants[tenant, TenantColumn.SLO_US]
    late = due - time_us < tenants[tenant, TenantColumn.LAUNCHED_LEFT_US]
    return due + LATE_US if late else due


LATE_US: Final = 1e12
"""Beyond all deadlines."""


@law
def is_next(head: int, launched: int, knobs: Knobs, tenant: int, best_head: int, best: int) -> bool:
    """Whether a tenant's oldest launch goes before the best one of other tenants.

    Of those that may be launched, that of the most urgent tenant goes first, then the one that was issued first.

    Args:
        head: id of its oldest pending launch, which can be launched now.
        launched: launches of it that are handed to the GPU and unfinished.
        knobs: of all tenants.
        tenant: its row.
        best_head, best: id and tenant of the best one so far; tenant :data:`NOBODY`: there is none.
    """
    if launched >= knobs[0, tenant]:
        return False
    if best == NOBODY or knobs[1, tenant] != knobs[1, best]:
        return bool(best == NOBODY or knobs[1, tenant] < knobs[1, best])
    return head < best_head


class Dispatcher:
    """Launches by knobs, for a scheduler on any device."""

    def __init__(self, interval_us: float) -> None:
        """``interval_us``: how long knobs stand (> 0), until the first decision epoch after that."""
        self._interval_us = interval_us
        self._until_us = -math.inf
        self._knobs: Knobs = np.zeros((len(Knob), 0), np.int64)

    def asks(self, view: View) -> bool:
        """Whether it is time to set the knobs."""
        return bool(view.time_us >= self._until_us - HALF_PS)

    def set(self, view: View, knobs: Knobs) -> None:
        """Let ``knobs`` stand from now on."""
        self._knobs = knobs
        self._until_us = view.time_us + self._interval_us

    def command(self, view: View) -> Command:
        """The next launch, or the wait until there is one or knobs are to be set."""
        launched = view.tenants.array[:, TenantColumn.KERNELS_LAUNCHED].tolist()
        best, best_head, last = NOBODY, 0, NOBODY
        # Tenant after tenant, the oldest first.
        for row in view.pending.array:
            tenant, head = int(row[PendingColumn.TENANT]), int(row[PendingColumn.ID])
            oldest, last = tenant != last, tenant
            if oldest and row[PendingColumn.LAUNCHABLE] and is_next(
                head, launched[tenant], self._knobs, tenant, best_head, best
            ):  # fmt: skip
                best, best_head = tenant, head
        if best == NOBODY:
            return Wait(self._until_us)
        return Launch(best_head, int(self._knobs[Knob.PRIORITY, best]))
