"""The dispatcher of decisions for an interval in compiled code, on the records of an environment.

Its rules are those of :mod:`gpusched_env.planning.interval`; it gives the commands that
:class:`~gpusched_env.planning.dispatcher.IntervalDispatcher` gives. Tables are filled for a new plan only.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import called
from gpusched_env.devices.compiled.access import clients, given, jobs, launches, problem
from gpusched_env.devices.compiled.issuing import is_launchable
from gpusched_env.devices.compiled.layout import NONE
from gpusched_env.devices.compiled.listing import show_pending
from gpusched_env.devices.compiled.views import launched_left_us
from gpusched_env.devices.rules.rows import fill_tenants, list_jobs
from gpusched_env.hardware.clock import PS_PER_US
from gpusched_env.planning.interval import UNLIMITED, Knob, goes_next, holds_gpu, may_launch, set_knobs, to_reject
from gpusched_env.planning.plans import MOST_JOBS, NOBODY, PlanColumn, plan_oldest
from gpusched_env.scheduling.commands import LAUNCH, OWN_STREAM, REJECT, WAITING
from gpusched_env.scheduling.commands.world import is_offered
from gpusched_env.workload.host import HAS_LEFT

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NO_KNOBS: Final = -1
"""What stands in place of how many jobs had come or gone when knobs were set, where none were."""


class StandingDecision(NamedTuple):
    """A decision that stands, and what it stands for with the jobs that are there."""

    decision: Ints
    """``(4,)``: who goes first and launches in flight of the others, how many jobs had come or gone when knobs were
    set, and who goes first by these."""
    plan: Floats
    """The latest plan, ``(tenants or more, len(PlanColumn))``."""
    knobs: Ints
    """The knobs, ``(len(Knob), tenants or more)``."""
    levels: Ints
    """Priorities by place in the order, as :func:`~gpusched_env.planning.interval.levels_of` gives them."""


@called
def set_decision(standing, tenant, others):
    """Let a decision stand: the fields of :class:`~gpusched_env.planning.interval.Serve`."""
    standing.decision[0], standing.decision[1], standing.decision[2] = tenant, others, NO_KNOBS


@called
def put_next_command(w, standing, outlook, lookahead, scratch, until_ps):
    """Give an environment the next command by the decision that stands, or the wait until a time.

    Args:
        w: its record.
        standing: a :class:`StandingDecision`.
        outlook: of its tenants, an :class:`~gpusched_env.planning.outlook.Outlook`.
        lookahead: rows of ``scratch.pending`` a tenant.
        scratch: with the tables ``pending``, ``tenants``, ``jobs`` and ``plan``, written.
        until_ps: end of the interval.
    """
    decision, plan, knobs = standing.decision, standing.plan, standing.knobs
    come_or_gone = 0
    for tenant in range(problem(w).tenants):
        client = clients(w, tenant)
        come_or_gone += client.arrived + client.completed + client.rejected
    if decision[2] != come_or_gone:
        plan_anew(w, lookahead, outlook, scratch, plan)
        decision[3] = set_knobs(plan, problem(w).tenants, decision[0], decision[1], standing.levels, knobs)
        decision[2] = come_or_gone
    command = given(w)
    if is_offered(w, REJECT):
        tenant = to_reject(plan, problem(w).tenants, decision[0])
        if tenant != NOBODY:
            command.code, command.tenant, command.job = REJECT, tenant, int(plan[tenant, PlanColumn.GIVEN_UP])
            return
    best, best_id = next_launch(w, knobs, decision[3])
    if best == NOBODY:
        command.code, command.until_ps = WAITING, until_ps
    else:
        command.code, command.launch, command.priority = LAUNCH, best_id, knobs[Knob.PRIORITY, best]
        command.stream, command.first_sm, command.sms = OWN_STREAM, 0, 0


@called
def plan_anew(w, lookahead, outlook, scratch, plan):
    """Write the plan of an environment's jobs."""
    tenant_rows = scratch.tenants[: problem(w).tenants]
    show_pending(w, lookahead, scratch.pending)
    fill_tenants(w, tenant_rows)
    jobs = scratch.jobs[: min(list_jobs(w, scratch.jobs), MOST_JOBS)]
    plan_oldest(jobs, tenant_rows, scratch.pending, w.now_ps / PS_PER_US, outlook, scratch.plan, plan)


@called
def next_launch(w, knobs, first):
    """Tenant and number of the launch that the knobs let go next; :data:`NOBODY`, 0 if they let none.

    ``first``: who goes first, or :data:`NOBODY`.
    """
    together = 0
    for tenant in range(problem(w).tenants):
        together += clients(w, tenant).kernels_launched if knobs[Knob.TOGETHER, tenant] < UNLIMITED else 0
    held = first != NOBODY and first_holds_gpu(w, first)
    best = NOBODY
    best_id = 0
    for tenant in range(problem(w).tenants):
        client = clients(w, tenant)
        slot = client.pending_first
        if slot == NONE or not is_launchable(w, launches(w, slot)):
            continue
        number = launches(w, slot).id
        left_us = launched_left_us(w, tenant) if knobs[Knob.FILLS, tenant] == 1 else 0.0
        if may_launch(knobs, tenant, client.kernels_launched, left_us, together, held) and goes_next(
            knobs, tenant, number, best, best_id
        ):
            best, best_id = tenant, number
    return best, best_id


@called
def first_holds_gpu(w, tenant):
    """Whether tenants that fill wait for one that goes first and has a job."""
    client = clients(w, tenant)
    number = client.first
    while jobs(w, tenant, number).state == HAS_LEFT:
        number += 1
    job = jobs(w, tenant, number)
    return holds_gpu(
        client.arrived - client.completed - client.rejected,
        client.kernels_pending + client.kernels_launched,
        job.unfinished / job.operations,
    )
