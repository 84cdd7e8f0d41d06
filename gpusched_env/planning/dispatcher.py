"""The dispatcher of decisions for an interval, for schedulers on any device.

Its rules are those of :mod:`gpusched_env.planning.interval`. Of Python there is little: between two decisions a host is
asked for each of some ten thousand launches a tenth of a second.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, Protocol, runtime_checkable

import numpy as np

from gpusched_env.compiling import cached, called
from gpusched_env.planning.interval import (
    BY_PLAN,
    UNLIMITED,
    Floats,
    Knob,
    Knobs,
    Serve,
    foremost,
    goes_next,
    holds_gpu,
    levels_of,
    may_launch,
    set_knobs,
    to_reject,
)
from gpusched_env.planning.outlook import Outlook
from gpusched_env.planning.plans import NOBODY, PlanColumn, plan_view
from gpusched_env.scheduling.commands import Command, Launch, Reject, Wait
from gpusched_env.scheduling.view import JobColumn, PendingColumn, TenantColumn, View

JOB_NAMES: Final = [JobColumn.TENANT, JobColumn.JOB]
"""Columns that tell jobs apart."""
DISPATCHED: Final = ("launch", "reject")
"""Commands that the dispatcher gives."""
HALF_PS: Final = 5e-7
"""Half a picosecond, in microseconds. Times are whole picoseconds, sums of them in floating point are not."""


@cached()
def next_launch(knobs: Knobs, first: int, pending: Floats, tenants: Floats, jobs: Floats) -> int:
    """The row of the pending launch that is next, or :data:`~gpusched_env.planning.plans.NOBODY`.

    Args:
        knobs, first: as :func:`~gpusched_env.planning.interval.set_knobs` found them.
        pending, tenants, jobs: tables of the view.
    """
    together = 0
    for tenant in range(tenants.shape[0]):
        if knobs[Knob.TOGETHER, tenant] < UNLIMITED:
            together += int(tenants[tenant, TenantColumn.KERNELS_LAUNCHED])
    held = first != NOBODY and _holds(first, tenants, jobs)
    best = best_head = best_row = last = NOBODY
    # Tenant after tenant, the oldest first.
    for row in range(pending.shape[0]):
        tenant, head = int(pending[row, PendingColumn.TENANT]), int(pending[row, PendingColumn.ID])
        oldest, last = tenant != last, tenant
        if not oldest or pending[row, PendingColumn.LAUNCHABLE] == 0.0:
            continue
        launched = int(tenants[tenant, TenantColumn.KERNELS_LAUNCHED])
        left_us = tenants[tenant, TenantColumn.LAUNCHED_LEFT_US]
        if may_launch(knobs, tenant, launched, left_us, together, held) and goes_next(
            knobs, tenant, head, best, best_head
        ):
            best, best_head, best_row = tenant, head, row
    return best_row


@called
def _holds(first: int, tenants: Floats, jobs: Floats) -> bool:
    """Whether tenants that fill wait for the tenant that goes first."""
    mine = tenants[first]
    kernels = mine[TenantColumn.KERNELS_PENDING] + mine[TenantColumn.KERNELS_LAUNCHED]
    unfinished = 1.0
    # Tenant after tenant, the oldest first.
    for row in range(jobs.shape[0]):
        if jobs[row, JobColumn.TENANT] == first:
            unfinished = jobs[row, JobColumn.UNFINISHED]
            break
    return bool(holds_gpu(int(mine[TenantColumn.JOBS_WAITING]), int(kernels), unfinished))


class IntervalDispatcher:
    """Launches by knobs, for a scheduler on any device."""

    def __init__(self, interval_us: float, stream_priorities: tuple[int, ...], outlook: Outlook) -> None:
        """``interval_us``: how long a decision stands (> 0), until the first decision epoch after that.

        ``stream_priorities``: what the scenario offers. ``outlook``: of its tenants, and whether jobs can be rejected.
        """
        self.interval_us, self.stream_priorities, self.outlook = interval_us, stream_priorities, outlook
        self._until_us = -math.inf
        self._serve = BY_PLAN
        self._next: tuple[float, Serve] | None = None
        """A decision that does not stand yet, and from when on it does."""
        self.latencies_us: Iterator[float] = iter(())
        """How long the next decisions take; then as :meth:`set` is told."""
        self._jobs: bytes | None = None
        """Tenants and numbers of the jobs that the plan was made of; ``None``: there is no plan."""

    @property
    def decided(self) -> Serve:
        """The latest decision, whether it stands already or not."""
        return self._serve if self._next is None else self._next[1]

    @property
    def stands(self) -> Serve:
        """The decision that stands."""
        return self._serve

    @property
    def next_us(self) -> float:
        """Until when it stands: the end of the interval, or when the next decision is made."""
        return self._until_us if self._next is None else self._next[0]

    def asks(self, view: View) -> bool:
        """Whether it is time for a decision: the interval is over, and none is being made."""
        return bool(view.time_us >= self._until_us - HALF_PS and not self._waits(view))

    def _waits(self, view: View) -> bool:
        """Whether a decision does not stand yet."""
        return self._next is not None and view.time_us < self._next[0] - HALF_PS

    def set(self, view: View, serve: Serve, decision_us: float = 0.0) -> None:
        """Let ``serve`` stand as soon as deciding has taken ``decision_us``, for an interval from now on.

        Until then the decision before it stands, and at the beginning of an episode :data:`BY_PLAN`.
        """
        self.let_stand(view)
        self._next = (view.time_us + next(self.latencies_us, decision_us), serve)
        self._until_us = view.time_us + self.interval_us

    def command(self, view: View) -> Command:
        """The next rejection or launch, or the wait until there is one, a decision stands or the next is due."""
        self.let_stand(view)
        knobs = self._knobs_now(view)
        if self.outlook.rejects:
            tenant = to_reject(self._plan, len(view.tenants), self._serve.tenant)
            if tenant != NOBODY:
                return Reject(tenant, int(self._plan[tenant, PlanColumn.GIVEN_UP]))
        pending = view.pending.array
        row = next_launch(knobs, self._first, pending, view.tenants.array, view.jobs.array)
        if row == NOBODY:
            return Wait(self.next_us)
        tenant = int(pending[row, PendingColumn.TENANT])
        return Launch(int(pending[row, PendingColumn.ID]), int(knobs[Knob.PRIORITY, tenant]))

    def let_stand(self, view: View) -> bool:
        """What has been decided by now stands; whether that is another decision than before."""
        if self._next is None or self._waits(view):
            return False
        self._serve, self._jobs, self._next = self._next[1], None, None
        return True

    def _knobs_now(self, view: View) -> Knobs:
        """What the decision stands for with the jobs that are there."""
        jobs = view.jobs.array[:, JOB_NAMES].tobytes()
        if jobs != self._jobs:
            self._jobs, self._plan = jobs, plan_view(view, self.outlook)
            tenants, serve = len(view.tenants), self._serve
            self._knobs: Knobs = np.zeros((len(Knob), tenants), np.int64)
            self._first = set_knobs(
                self._plan, tenants, serve.tenant, serve.others, levels_of(self.stream_priorities, tenants), self._knobs
            )
        return self._knobs


@runtime_checkable
class HasFirst(Protocol):
    """A scheduler that says who goes first."""

    def first(self, view: View) -> int | None:
        """Row of the tenant that goes first now, after ``decide`` of the same view; ``None``: none has a job."""


@runtime_checkable
class DecidesForIntervals(Protocol):
    """A scheduler whose dispatcher another one can take the place of between two decisions, in compiled code."""

    dispatcher: IntervalDispatcher | None
    """Dispatcher of the present episode; ``None``: it decides about every launch."""

    def stand(self, view: View) -> Command | None:
        """Decide, and let that stand; or a command to be carried out first, after which it is asked again."""


def serve_first(first: int | None, view: View, outlook: Outlook) -> Serve:
    """The decision that lets a tenant go first; going by the plan, where that does so, or where it is ``None``."""
    if first is None or first == foremost(plan_view(view, outlook), len(view.tenants)):
        return BY_PLAN
    return Serve(first, BY_PLAN.others)
