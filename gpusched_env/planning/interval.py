"""Deciding for an interval: knobs of each tenant, which a dispatcher applies launch by launch until they are set anew.

A scheduler that is asked for every launch is asked some ten thousand times a tenth of a second. A real system would
let a network decide every hundred microseconds or so, and leave the launches between to a few lines of compiled code.
The knobs are those that a host has (:class:`Knob`). :func:`to_reject`, :func:`may_launch` and :func:`goes_next` are
the dispatcher's rules, the same for schedulers on any device (:mod:`gpusched_env.planning.dispatcher`) and in compiled
environments (:mod:`gpusched_env.envs.stepping`).

:class:`Serve` says with one word what all knobs are to be; action spaces are made of it
(:mod:`gpusched_env.envs.slices`).
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import cached, called, law
from gpusched_env.planning.plans import NOBODY, NOTHING, PlanColumn

Knobs = NDArray[np.int64]
"""Limits of tenants, shape ``(len(Knob), tenants or more)``."""
Floats = NDArray[np.float64]

UNLIMITED: Final = 2**31
"""Number of launches in flight that stands for no limit."""
DEPTH: Final = 16
"""Launches in flight of a tenant, where one goes first. What waits in a stream keeps the priority that it was launched
with, and more would not start earlier."""
QUEUE_US: Final = 250.0
"""Profiled time of what a tenant without an objective has in flight, above which it launches nothing more: that cannot
be taken back when a request comes. Chosen among 50 to 300 on training workloads of MultiTenantSaturated."""
BACKLOG: Final = 2
"""Jobs of a tenant with which its limits for others hold from the first instant: time is dear then."""


class Knob(enum.IntEnum):
    """Rows of :data:`Knobs`."""

    IN_FLIGHT = 0
    """Launches (kernels or graphs) of the tenant handed to the GPU and unfinished at most."""
    TOGETHER = 1
    """Launches at most of all tenants together for which this is not :data:`UNLIMITED`; 0: it is not served."""
    PRIORITY = 2
    """Stream priority of what it launches, 0 or below, lower is more urgent."""
    FILLS = 3
    """1: it has no objective, and at most one tenant that has one has jobs. No more than :data:`QUEUE_US` of it is in
    flight then, and the limit of all together holds only once the tenant that goes first is on the GPU
    (:func:`holds_gpu`). Where several have jobs somebody waits at all times, and best effort is what :attr:`TOGETHER`
    says."""


@dataclass(frozen=True, slots=True)
class Serve:
    """Let one tenant go first until the next decision, or as long as it has a job.

    Its kernels have the most urgent stream priority; if it has no objective, that of the place behind the tenants that
    have one and no job, since what is launched of it is not to go before what may come. The others follow in the order
    of their oldest jobs in the plan (:attr:`~gpusched_env.planning.plans.PlanColumn.CLASS`): those that are kept
    even if time is dear, other kept ones, those without an objective (or a job, yet), the rest; each time by
    deadline, and each with a priority of its own as far as there are levels. Where at most one tenant with an
    objective has jobs, those without one fill what it leaves (:attr:`Knob.FILLS`); and where the plan has one of
    them go first, all go with it. Whenever a job has come or gone, the plan is made anew, and where
    the scenario offers it, jobs that the plan gives up are rejected; those of the tenant that was said to go first are
    not.
    """

    NAME: ClassVar = "serve"

    tenant: int
    """Row of ``view.tenants``; :data:`NOBODY`: who goes first is the plan's to say, as it is when its jobs are done."""
    others: int
    """Launches in flight of all other tenants together (>= 0)."""


BY_PLAN: Final = Serve(NOBODY, 4)
"""What no decision says otherwise: about as the scheduler ``moore`` does with that price and ``others=4``."""
UNRESTRICTED: Final = Serve(NOBODY, UNLIMITED)
"""What holds where decisions are about pauses and SMs: whatever is pending is launched, tenants with an objective at
the most urgent priority and all others at the least, as controllers of co-location do
(:mod:`gpusched_env.baselines.colocated`)."""


def levels_of(stream_priorities: tuple[int, ...], tenants: int) -> NDArray[np.int64]:
    """Priority of each place in the order, among those that a scenario offers, shape ``(tenants,)``.

    The last places share the least urgent one.
    """
    ordered = sorted(stream_priorities)
    return np.array([ordered[min(place, len(ordered) - 1)] for place in range(tenants)], np.int64)


@cached()
def set_knobs(plan: Floats, tenants: int, first: int, others: int, levels: NDArray[np.int64], knobs: Knobs) -> int:
    """Write what :class:`Serve` stands for, and say who goes first; :data:`NOBODY`: nobody does.

    Args:
        plan: of :func:`~gpusched_env.planning.plans.plan_oldest`.
        tenants: their number.
        first, others: fields of :class:`Serve`.
        levels: of :func:`levels_of`.
        knobs: written, of all tenants.
    """
    if others == UNLIMITED:
        for tenant in range(tenants):
            urgent = plan[tenant, PlanColumn.DEADLINE_US] < math.inf
            knobs[Knob.IN_FLIGHT, tenant] = knobs[Knob.TOGETHER, tenant] = UNLIMITED
            knobs[Knob.PRIORITY, tenant] = levels[0] if urgent else levels[tenants - 1]
            knobs[Knob.FILLS, tenant] = 0
        return NOBODY
    by_plan = first == NOBODY or plan[first, PlanColumn.PRESENT] == 0.0
    if by_plan:
        first = foremost(plan, tenants)
    # Nobody with an objective has a job that is kept, then.
    all_fill = by_plan and first != NOBODY and plan[first, PlanColumn.HAS_SLO] == 0.0
    calm = with_slo_and_job(plan, tenants) <= 1
    for tenant in range(tenants):
        fills = calm and plan[tenant, PlanColumn.HAS_SLO] == 0.0
        leads = tenant == first or (all_fill and fills)
        before = may_come_before(plan, tenants, tenant) if leads else 0
        if not leads:
            before = 0 if first == NOBODY else 1
            for other in range(tenants):
                if other not in (first, tenant) and goes_before(plan, other, tenant):
                    before += 1
        knobs[Knob.IN_FLIGHT, tenant] = DEPTH
        knobs[Knob.TOGETHER, tenant] = UNLIMITED if leads else others
        knobs[Knob.PRIORITY, tenant] = levels[before]
        knobs[Knob.FILLS, tenant] = 1 if fills else 0
    return first


@cached()
def foremost(plan: Floats, tenants: int) -> int:
    """The tenant with a job that comes before all others; :data:`NOBODY`: none has one."""
    found = NOBODY
    for tenant in range(tenants):
        if plan[tenant, PlanColumn.PRESENT] > 0.0 and (found == NOBODY or goes_before(plan, tenant, found)):
            found = tenant
    return found


@called
def with_slo_and_job(plan: Floats, tenants: int) -> int:
    """How many tenants have an objective and a job."""
    count = 0
    for tenant in range(tenants):
        if plan[tenant, PlanColumn.HAS_SLO] > 0.0 and plan[tenant, PlanColumn.PRESENT] > 0.0:
            count += 1
    return count


@called
def may_come_before(plan: Floats, tenants: int, first: int) -> int:
    """How many tenants have an objective and no job, if the one that goes first has no objective; otherwise 0."""
    count = 0
    for tenant in range(tenants):
        if (
            plan[first, PlanColumn.HAS_SLO] == 0.0
            and plan[tenant, PlanColumn.HAS_SLO] > 0.0
            and plan[tenant, PlanColumn.PRESENT] == 0.0
        ):
            count += 1
    return count


@cached()
def to_reject(plan: Floats, tenants: int, served: int) -> int:
    """The first tenant of which the plan gives a job up, but for ``served``; :data:`NOBODY`: none is given up."""
    for tenant in range(tenants):
        if tenant != served and plan[tenant, PlanColumn.GIVEN_UP] != NOTHING:
            return tenant
    return NOBODY


@called
def goes_before(plan: Floats, tenant: int, other: int) -> bool:
    """Whether a tenant comes before another one, of those that do not go first."""
    mine, theirs = plan[tenant, PlanColumn.CLASS], plan[other, PlanColumn.CLASS]
    if mine != theirs:
        return bool(mine < theirs)
    due_us, their_due_us = plan[tenant, PlanColumn.DEADLINE_US], plan[other, PlanColumn.DEADLINE_US]
    if due_us != their_due_us:
        return bool(due_us < their_due_us)
    # Jobs that may come of a tenant with an objective go before jobs that are there of one without.
    if plan[tenant, PlanColumn.HAS_SLO] != plan[other, PlanColumn.HAS_SLO]:
        return bool(plan[tenant, PlanColumn.HAS_SLO] > plan[other, PlanColumn.HAS_SLO])
    return tenant < other


@law
def holds_gpu(jobs: int, kernels: int, unfinished: float) -> bool:
    """Whether tenants that fill wait for the tenant that goes first: its job is on the GPU, or more are behind it.

    Args:
        jobs: that it has.
        kernels: of it, that are issued and unfinished.
        unfinished: share of its oldest job's operations.
    """
    return jobs >= BACKLOG or kernels > 0 or unfinished < 1.0


@law
def may_launch(knobs: Knobs, tenant: int, launched: int, left_us: float, together: int, held: bool) -> bool:
    """Whether its limits let a tenant launch one more.

    Args:
        knobs: of all tenants.
        tenant: its row.
        launched: launches of it that are handed to the GPU and unfinished.
        left_us: their profiled time left.
        together: launches of all tenants with a limit together.
        held: of :func:`holds_gpu`.
    """
    fills = knobs[Knob.FILLS, tenant] == 1
    if launched >= knobs[Knob.IN_FLIGHT, tenant] or (fills and launched > 0 and left_us >= QUEUE_US):
        return False
    limit = knobs[Knob.TOGETHER, tenant]
    return bool(limit == UNLIMITED or together < limit or (fills and not held))


@law
def goes_next(knobs: Knobs, tenant: int, head: int, best: int, best_head: int) -> bool:
    """Whether a tenant's oldest launch goes before the best one of other tenants, of those that may be launched.

    That of the most urgent tenant does, then the one that was issued first.

    Args:
        knobs: of all tenants.
        tenant, head: its row, and the id of its oldest pending launch.
        best, best_head: the same of the best one so far; :data:`NOBODY`: there is none.
    """
    if best == NOBODY or knobs[Knob.PRIORITY, tenant] != knobs[Knob.PRIORITY, best]:
        return bool(best == NOBODY or knobs[Knob.PRIORITY, tenant] < knobs[Knob.PRIORITY, best])
    return head < best_head
