"""One step of many environments on the compiled device, without Python in between.

From an action number to the next observation, mask and cost: the same encoder, mask and cost arithmetic as for
any other device, on tables that the compiled device fills.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from gpusched_env.compiling import cached, called, inlined
from gpusched_env.devices.compiled.access import clients, env_at, launches, problem
from gpusched_env.devices.compiled.intrinsics import call
from gpusched_env.devices.compiled.issuing import is_launchable
from gpusched_env.devices.compiled.layout import DECIDE, FLUSH, GROW_JOBS, GROW_LAUNCHES, NONE, OVER
from gpusched_env.devices.compiled.memory import LINE, lines
from gpusched_env.devices.compiled.views import (
    fill_tenants,
    list_jobs,
    occupancy,
    show_pending,
    show_pending_at,
    show_running,
)
from gpusched_env.envs.encoding import Floats, encode
from gpusched_env.envs.features import Scalar
from gpusched_env.envs.numbering import fill_mask, numbers_at, place_of
from gpusched_env.envs.planning import encode_plan
from gpusched_env.envs.slices import SERVE, SLOT_KINDS
from gpusched_env.hardware.clock import PS_PER_US, to_ps
from gpusched_env.planning.interval import BY_PLAN, UNLIMITED, Knob, is_next, set_knobs, to_reject
from gpusched_env.planning.lookahead import SCRATCH as FUTURE_SCRATCH
from gpusched_env.planning.lookahead import look_ahead
from gpusched_env.planning.on_time import MOST_JOBS
from gpusched_env.planning.plans import NOBODY, SCRATCH, Plan, plan_oldest
from gpusched_env.scheduling.commands import LAUNCH, REJECT, WAITING
from gpusched_env.scheduling.reward import COST_TERMS, Sum, charge
from gpusched_env.scheduling.view import JobColumn, PendingColumn, RunningColumn, TenantColumn

if TYPE_CHECKING:
    from gpusched_env.envs.actions import ActionLayout

PENDING_SLOTS: Final = SLOT_KINDS.index("pending")
RUNNING_SLOTS: Final = SLOT_KINDS.index("running")
TENANT_SLOTS: Final = SLOT_KINDS.index("tenant")
OTHERS_BY_PLAN: Final = BY_PLAN.others
NO_KNOBS: Final = -1
"""In place of how many jobs had come or gone when knobs were set."""


@cached(nogil=True)
def step_range(
    first,
    last,
    fresh,
    drive_at,
    wait_us,
    interval_ps,
    levels,
    plans,
    knobs,
    standing,
    until_ps,
    addresses,
    actions,
    own_streams,
    tenant_rates,
    reward_weights,
    slices,
    choices,
    reasons,
    costs,
    times,
    masks,
    pending_shown,
    running_shown,
    tenants_shown,
    jobs_shown,
    plan_scratch,
    future_scratch,
    sums,
    scalars,
    terms,
    out_pending,
    out_running,
    out_tenants,
    out_device,
):
    """Carry out the actions of environments ``first`` to ``last - 1`` and run each to its next decision.

    An environment whose memory is too small stops on the way (``reasons``); call again with ``fresh`` false once
    it has been served. Environments in which no decision is open take no action.

    Args:
        fresh: whether actions are to be carried out, in all environments of the range; otherwise only those go
            on that had to be served.
        drive_at: ``drive`` of :func:`~gpusched_env.devices.compiled.entry.compile_units`.
        interval_ps: how long a decision stands while a dispatcher launches; 0: every launch is a decision.
        levels: int64 ``(n, slots)``, each of :func:`~gpusched_env.planning.interval.levels_of`.
        plans: float64 ``(n, slots, len(Plan))``: the latest.
        knobs: int64 ``(n, len(Knob), slots)``: of the present interval.
        standing: int64 ``(n, 3)``: the decision of the present interval, who goes first and launches in flight of the
            others, and how many jobs had come or gone when its knobs were set.
        until_ps: int64 ``(n,)``: end of the interval, or 0 between two.
        addresses: int64 ``(n,)``, of the environments.
        actions: int64 ``(n,)``, of the action space that ``slices`` and ``choices`` lay out; -1: none, just run
            (after a reset).
        own_streams: int64 ``(n,)``: row of the first of the scheduler's own streams.
        tenant_rates: float64 ``(n, slots, len(Rate))``, of :func:`~gpusched_env.scheduling.reward.rates`.
        reward_weights: float64 ``(n, terms)``.
        slices, choices: ``rows`` and ``choices`` of a :class:`~gpusched_env.envs.numbering.Plan`.
        reasons: int64 ``(n,)``: why each stopped (:mod:`~gpusched_env.devices.compiled.layout`).
        costs: float64 ``(n,)``: total so far.
        times: float64 ``(n, 2)``: simulated time of the observation before, and of this one, in microseconds.
        masks: bool ``(n, actions)``: what is legal, read and then written.
        pending_shown, running_shown, tenants_shown, jobs_shown, plan_scratch, future_scratch, sums, scalars, terms:
            :func:`scratch` of the calling thread.
        out_pending, out_running, out_tenants, out_device: the observations, float32.

    Returns:
        how many environments have to be served.
    """
    unserved = 0
    slots = out_tenants.shape[1]
    lookahead = out_pending.shape[1] // slots
    for e in range(first, last):
        w = env_at(addresses[e], 0)
        tenants = problem(w).tenants
        sms = problem(w).sms
        tenant_rows = tenants_shown[:tenants]
        if fresh:
            times[e, 0] = w.now_ps / PS_PER_US
            if reasons[e] == DECIDE and actions[e] >= 0:
                action = actions[e]
                if not masks[e, action]:
                    w.illegal += 1
                    action = 0
                # What its slot stands for is looked up again: to keep it would take more memory than to find it time.
                kind, slot = place_of(slices, action)
                if kind == PENDING_SLOTS:
                    show_pending_at(w, slot, lookahead, pending_shown)
                elif kind == RUNNING_SLOTS:
                    show_running(w, running_shown)
                elif kind == TENANT_SLOTS:
                    fill_tenants(w, tenant_rows)
                meaning = numbers_at(
                    slices, choices, pending_shown, running_shown, tenant_rows, sms, own_streams[e], action
                )
                if interval_ps > 0 and meaning[0] in (SERVE, WAITING):
                    by_plan = meaning[0] == WAITING
                    standing[e, 0] = NOBODY if by_plan else meaning[1]
                    standing[e, 1] = OTHERS_BY_PLAN if by_plan else meaning[2]
                    standing[e, 2] = NO_KNOBS
                    until_ps[e] = w.now_ps + max(1, interval_ps)
                    dispatch(
                        w, standing[e], plans[e], knobs[e], until_ps[e], levels[e], lookahead, pending_shown,
                        tenant_rows, jobs_shown, plan_scratch,
                    )  # fmt: skip
                else:
                    act(w, meaning, wait_us)
        elif not to_serve(reasons[e]):
            continue
        reason = call(drive_at, addresses[e], 1)
        while reason == DECIDE and w.now_ps < until_ps[e]:
            dispatch(
                w, standing[e], plans[e], knobs[e], until_ps[e], levels[e], lookahead, pending_shown,
                tenant_rows, jobs_shown, plan_scratch,
            )  # fmt: skip
            reason = call(drive_at, addresses[e], 1)
        reasons[e] = reason
        if to_serve(reason):
            unserved += 1
            continue
        until_ps[e] = 0
        show_pending(w, lookahead, pending_shown)
        show_running(w, running_shown)
        fill_tenants(w, tenant_rows)
        costs[e] = cost(w, sums[:tenants], tenant_rates[e], reward_weights[e], terms, reason == OVER)
        times[e, 1] = w.now_ps / PS_PER_US
        if reason == DECIDE:
            fill_mask(
                slices, choices, pending_shown, running_shown, tenant_rows, sms, masks[e]
            )  # fmt: skip
        else:
            for action in range(masks.shape[1]):
                masks[e, action] = action == 0
        scalars[Scalar.TIME_US] = times[e, 1]
        scalars[Scalar.HORIZON_US] = problem(w).horizon_us
        scalars[Scalar.SMS] = sms
        scalars[Scalar.BUSY_SMS] = w.busy_sms
        scalars[Scalar.OCCUPANCY] = occupancy(w)
        scalars[Scalar.DRAM] = w.traffic / problem(w).nominal_bytes_per_us
        encode(
            pending_shown, running_shown, tenant_rows, scalars, out_pending[e],
            out_running[e], out_tenants[e], out_device[e],
        )  # fmt: skip
        if interval_ps > 0:
            rows = min(list_jobs(w, jobs_shown), MOST_JOBS)
            plan_oldest(jobs_shown[:rows], tenant_rows, pending_shown, times[e, 1], plan_scratch, plans[e])
            look_ahead(jobs_shown[:rows], tenant_rows, pending_shown, times[e, 1], future_scratch, plans[e])
            encode_plan(plans[e], tenant_rows, times[e, 1], out_tenants[e])
    return unserved


def scratch(layout: ActionLayout) -> tuple[Floats, ...]:
    """What a thread needs to step environments, one after the other: tables that are written before they are read.

    Of what pending, running and tenant slots show, as in a View; its first jobs; plans; futures; sums of each tenant,
    scalars and cost terms. No two of them lie in one cache line, nor in one of a pair that processors fetch together.
    """
    shapes = (
        (layout.pending_slots, len(PendingColumn)), (layout.running_slots, len(RunningColumn)),
        (layout.slots, len(TenantColumn)), (MOST_JOBS, len(JobColumn)), SCRATCH,
        FUTURE_SCRATCH, (layout.slots, len(Sum)), (len(Scalar),), (len(COST_TERMS),),
    )  # fmt: skip
    return tuple(
        lines(8 * math.prod(shape) + 2 * LINE).view(np.float64)[: math.prod(shape)].reshape(shape) for shape in shapes
    )


@inlined
def to_serve(reason):
    """Whether an environment stopped because its memory is too small."""
    return reason in (FLUSH, GROW_JOBS, GROW_LAUNCHES)


@called
def act(w, meaning, wait_us):
    """Give an environment a command in numbers, as :func:`~gpusched_env.envs.numbering.numbers_at` has them."""
    w.command, w.command_target, w.command_choice, w.command_stream, w.command_first, w.command_sms = meaning
    if w.command == WAITING:
        # At least a picosecond: waiting may not stop the clock.
        w.command_until_ps = w.now_ps + max(1, to_ps(wait_us))


@called
def dispatch(w, standing, plan, knobs, until_ps, levels, lookahead, pending_shown, tenant_rows, jobs_shown, scratch):
    """Give an environment the next command by the decision that stands, or the wait until the end of the interval.

    As :class:`~gpusched_env.planning.interval.IntervalDispatcher` does; tables are filled for a new plan only.
    """
    come_or_gone = 0
    for tenant in range(problem(w).tenants):
        client = clients(w, tenant)
        come_or_gone += client.arrived + client.completed + client.rejected
    if standing[2] != come_or_gone:
        show_pending(w, lookahead, pending_shown)
        fill_tenants(w, tenant_rows)
        rows = min(list_jobs(w, jobs_shown), MOST_JOBS)
        plan_oldest(jobs_shown[:rows], tenant_rows, pending_shown, w.now_ps / PS_PER_US, scratch, plan)
        set_knobs(plan, problem(w).tenants, standing[0], standing[1], levels, knobs)
        standing[2] = come_or_gone
    w.command_stream, w.command_first, w.command_sms = -1, 0, 0
    if problem(w).rejects == 1:
        tenant = to_reject(plan, problem(w).tenants, standing[0])
        if tenant != NOBODY:
            w.command, w.command_target, w.command_choice = REJECT, tenant, int(plan[tenant, Plan.GIVEN_UP])
            return
    together = 0
    for tenant in range(problem(w).tenants):
        together += clients(w, tenant).kernels_launched if knobs[Knob.TOGETHER, tenant] < UNLIMITED else 0
    best = NOBODY
    best_id = 0
    for tenant in range(problem(w).tenants):
        client = clients(w, tenant)
        slot = client.pending_first
        if slot == NONE or not is_launchable(w, launches(w, slot)):
            continue
        number = launches(w, slot).id
        if is_next(number, client.kernels_launched, together, knobs, tenant, best_id, best):
            best, best_id = tenant, number
    if best == NOBODY:
        w.command, w.command_target, w.command_choice = WAITING, -1, 0
        w.command_until_ps = until_ps
    else:
        w.command, w.command_target, w.command_choice = LAUNCH, best_id, knobs[Knob.PRIORITY, best]


@called
def cost(w, sums, tenant_rates, reward_weights, terms, over):
    """The total cost of an environment so far; ``over``: at the end of its episode."""
    for tenant in range(sums.shape[0]):
        c = clients(w, tenant)
        in_system = c.arrived - c.completed - c.rejected
        sums[tenant, Sum.JOBS_US] = c.jobs_us + in_system * ((w.now_ps - c.jobs_since_ps) / PS_PER_US)
        sums[tenant, Sum.SLO_MISSES] = c.slo_misses
        sums[tenant, Sum.ARRIVED] = c.arrived
        sums[tenant, Sum.COMPLETED] = c.completed
        sums[tenant, Sum.REJECTED] = c.rejected
    energy_j = w.energy_j + w.power_w * ((w.now_ps - w.gpu_since_ps) / PS_PER_US) * 1e-6 + w.charged_energy_j
    makespan_us = min(w.now_ps, w.done_ps) / PS_PER_US + w.charged_makespan_us
    return charge(
        sums, energy_j, makespan_us, w.now_ps / PS_PER_US, over, tenant_rates, reward_weights, terms
    )  # fmt: skip
