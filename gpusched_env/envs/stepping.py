"""One step of many environments on the compiled device, without Python in between.

From an action number to the next observation, mask and cost: the same encoder, mask and cost arithmetic as for
any other device, on tables that the compiled device fills.
"""

from __future__ import annotations

from typing import Final

from numba import types

from gpusched_env.compiling import called, inlined, native, unit
from gpusched_env.devices.compiled.access import clients, env_at, given, problem
from gpusched_env.devices.compiled.fetching import fetch_ahead
from gpusched_env.devices.compiled.interval import StandingDecision, put_next_command, set_decision
from gpusched_env.devices.compiled.intrinsics import call
from gpusched_env.devices.compiled.layout import DECIDE, FLUSH, GROW_JOBS, GROW_LAUNCHES, OVER
from gpusched_env.devices.compiled.listing import show_pending, show_pending_at, show_running
from gpusched_env.devices.compiled.views import occupancy
from gpusched_env.devices.rules.meter import energy_j, jobs_us, makespan_us
from gpusched_env.devices.rules.rows import fill_tenants, list_jobs
from gpusched_env.envs.batch_state import STATE, put_state, state_at
from gpusched_env.envs.encoding import encode
from gpusched_env.envs.extra_columns import encode_forms, encode_gains, encode_plan
from gpusched_env.envs.extra_tables import encode_cores, encode_knobs
from gpusched_env.envs.features import Scalar
from gpusched_env.envs.numbering import CODE, TABLE, fill_mask, part_of, write_meaning
from gpusched_env.envs.slices import SERVE, SLOT_KINDS
from gpusched_env.hardware.clock import PS_PER_US, to_ps
from gpusched_env.planning.interval import BY_PLAN, UNRESTRICTED
from gpusched_env.planning.lookahead import look_ahead
from gpusched_env.planning.outlook import Outlook
from gpusched_env.planning.plans import MOST_JOBS, NOBODY, plan_oldest
from gpusched_env.scheduling.commands import REJECT, WAITING
from gpusched_env.scheduling.commands.world import is_offered
from gpusched_env.scheduling.cores import all_throttled_us, fill_cores
from gpusched_env.scheduling.reward import Sum, charge

PENDING_SLOTS: Final = SLOT_KINDS.index("pending")
RUNNING_SLOTS: Final = SLOT_KINDS.index("running")
TENANT_SLOTS: Final = SLOT_KINDS.index("tenant")
CORE_SLOTS: Final = SLOT_KINDS.index("core")
OTHERS_BY_PLAN: Final = BY_PLAN.others
OTHERS_FREELY: Final = UNRESTRICTED.others


@native()
def step_range(first, last, fresh, address):
    """Carry out the actions of environments ``first`` to ``last - 1`` and run each to its next decision.

    An environment whose memory is too small stops on the way (``reasons``); call again with ``fresh`` false once
    it has been served. Environments in which no decision is open take no action.

    Args:
        fresh: whether actions are to be carried out, in all environments of the range; otherwise only those go
            on that had to be served.
        address: of a :class:`~gpusched_env.envs.batch_state.BatchState` that is kept, with scratch of the calling
            thread.

    Returns:
        how many environments have to be served.
    """
    state = state_at(address)
    unserved = 0
    for index in range(first, last):
        w = env_at(state.episodes.addresses[index], 0)
        if fresh:
            fetch_ahead(state.episodes.addresses, index + 1, last)
            take_action(w, index, state)
        elif not to_serve(state.progress.reasons[index]):
            continue
        run_to_decision(w, index, state)
        if to_serve(state.progress.reasons[index]):
            unserved += 1
        else:
            observe(w, index, state)
    return unserved


@called
def take_action(w, index, state):
    """Give an environment the command that its action means, or begin an interval; an illegal action is a wait.

    Without an open decision, or an action, nothing is done. The time of the observation before is noted in any case.
    """
    rules, progress = state.rules, state.progress
    progress.times_us[index, 0] = w.now_ps / PS_PER_US
    if progress.reasons[index] != DECIDE or progress.actions[index] < 0:
        return
    action = progress.actions[index]
    if not state.legal[index, action]:
        w.illegal += 1
        action = 0
    s, slot, a, _ = part_of(rules.slices, rules.choices, action)
    code = WAITING if s < 0 else rules.slices[s, CODE]
    if rules.interval_ps > 0 and code in (SERVE, WAITING):
        by_plan = code == WAITING
        others = (OTHERS_FREELY if rules.knobs else OTHERS_BY_PLAN) if by_plan else a
        set_decision(standing_at(state, index), NOBODY if by_plan else slot, others)
        progress.until_ps[index] = w.now_ps + max(1, rules.interval_ps)
        dispatch(w, index, state)
    else:
        apply_action(w, action, rules, state.episodes.own_streams[index], state.scratch)


@called
def apply_action(w, action, rules, own_streams, scratch):
    """Give an environment the command that an action means.

    What its slot stands for is found again: to keep it would take more memory than to find it time.
    """
    tenant_rows = scratch.tenants[: problem(w).tenants]
    s, slot, _, _ = part_of(rules.slices, rules.choices, action)
    kind = rules.slices[s, TABLE] if s >= 0 else -1
    if kind == PENDING_SLOTS and rules.predicts:
        # What a pair means depends on its producer, too.
        show_pending(w, rules.lookahead, scratch.pending)
    elif kind == PENDING_SLOTS:
        show_pending_at(w, slot, rules.lookahead, scratch.pending)
    elif kind == RUNNING_SLOTS:
        show_running(w, scratch.running)
    elif kind == TENANT_SLOTS:
        fill_tenants(w, tenant_rows)
    elif kind == CORE_SLOTS:
        fill_cores(w, scratch.cores)
    command = given(w)
    command.code = write_meaning(
        rules.slices, rules.choices, scratch.pending, scratch.running, tenant_rows, scratch.cores, problem(w).sms,
        own_streams, action, command,
    )  # fmt: skip
    if command.code == WAITING:
        # At least a picosecond: waiting may not stop the clock.
        command.until_ps = w.now_ps + max(1, to_ps(rules.wait_us))


@called
def run_to_decision(w, index, state):
    """Run an environment to its next decision, to the end, or until it has to be served, and write why it stopped."""
    drive_at, address, progress = state.rules.drive_at, state.episodes.addresses[index], state.progress
    reason = call(drive_at, address, 1)
    while reason == DECIDE and w.now_ps < progress.until_ps[index]:
        dispatch(w, index, state)
        reason = call(drive_at, address, 1)
    progress.reasons[index] = reason


@called
def observe(w, index, state):
    """Write the cost, what is legal and the observation of an environment where a decision is open, or at its end."""
    rules, progress, out, scratch = state.rules, state.progress, state.observations, state.scratch
    tenants, sms = problem(w).tenants, problem(w).sms
    tenant_rows = scratch.tenants[:tenants]
    reason = progress.reasons[index]
    progress.until_ps[index] = 0
    show_pending(w, rules.lookahead, scratch.pending)
    show_running(w, scratch.running)
    fill_tenants(w, tenant_rows)
    if rules.budgets:
        fill_cores(w, scratch.cores)
    progress.costs[index] = cost(
        w, scratch.sums[:tenants], state.episodes.tenant_rates[index], state.episodes.reward_weights[index],
        scratch.terms, reason == OVER,
    )  # fmt: skip
    time_us = w.now_ps / PS_PER_US
    progress.times_us[index, 1] = time_us
    legal = state.legal[index]
    if reason == DECIDE:
        fill_mask(rules.slices, rules.choices, scratch.pending, scratch.running, tenant_rows, scratch.cores, sms, legal)
    else:
        for action in range(legal.size):
            legal[action] = action == 0
    fill_scalars(w, time_us, scratch.scalars)
    encode(
        scratch.pending, scratch.running, tenant_rows, scratch.scalars, out.pending[index],
        out.running[index], out.tenants[index], out.device[index],
    )  # fmt: skip
    if rules.predicts:
        encode_gains(scratch.pending, sms, scratch.tiles, out.pending[index])
        encode_forms(scratch.pending, sms, scratch.tiles, out.pending[index])
    if rules.interval_ps > 0:
        jobs, plan = scratch.jobs[: min(list_jobs(w, scratch.jobs), MOST_JOBS)], progress.plans[index]
        outlook = outlook_at(w, state.episodes, index)
        plan_oldest(jobs, tenant_rows, scratch.pending, time_us, outlook, scratch.plan, plan)
        if rules.futures:
            look_ahead(jobs, tenant_rows, scratch.pending, time_us, outlook, scratch.future, plan)
        encode_plan(plan, tenant_rows, time_us, out.tenants[index])
    if rules.knobs:
        encode_knobs(tenant_rows, time_us, state.knobs[index])
    if rules.budgets:
        encode_cores(scratch.cores, time_us, state.cores[index])


@called
def fill_scalars(w, time_us, scalars):
    """Write what an observation says of the GPU as a whole."""
    scalars[Scalar.TIME_US] = time_us
    scalars[Scalar.HORIZON_US] = problem(w).horizon_us
    scalars[Scalar.SMS] = problem(w).sms
    scalars[Scalar.BUSY_SMS] = w.busy_sms
    scalars[Scalar.OCCUPANCY] = occupancy(w)
    scalars[Scalar.DRAM] = w.traffic / problem(w).nominal_bytes_per_us


@inlined
def to_serve(reason):
    """Whether an environment stopped because its memory is too small."""
    return reason in (FLUSH, GROW_JOBS, GROW_LAUNCHES)


@called
def dispatch(w, index, state):
    """Give an environment the next command by the decision that stands, or the wait until the end of the interval."""
    put_next_command(
        w, standing_at(state, index), outlook_at(w, state.episodes, index), state.rules.lookahead, state.scratch,
        state.progress.until_ps[index],
    )  # fmt: skip


@called
def standing_at(state, index):
    """The decision that stands in an environment."""
    progress = state.progress
    return StandingDecision(
        progress.standing[index], progress.plans[index], progress.knobs[index], state.episodes.levels[index]
    )


@called
def outlook_at(w, episodes, index):
    """Outlook on an environment's tenants."""
    return Outlook(
        episodes.prices[index],
        episodes.pairs[index],
        episodes.exponents[index],
        episodes.graphs[index],
        is_offered(w, REJECT),
    )


@called
def cost(w, sums, tenant_rates, reward_weights, terms, over):
    """The total cost of an environment so far; ``over``: at the end of its episode."""
    for tenant in range(sums.shape[0]):
        c = clients(w, tenant)
        sums[tenant, Sum.JOBS_US] = jobs_us(w, tenant)
        sums[tenant, Sum.SLO_MISSES] = c.slo_misses
        sums[tenant, Sum.ARRIVED] = c.arrived
        sums[tenant, Sum.COMPLETED] = c.completed
        sums[tenant, Sum.REJECTED] = c.rejected
    return charge(
        sums, energy_j(w), makespan_us(w), all_throttled_us(w), w.now_ps / PS_PER_US, over, tenant_rates,
        reward_weights, terms,
    )  # fmt: skip


UNITS: Final = (
    unit(step_range, types.int64, types.int64, types.boolean, types.int64),
    unit(put_state, types.int64, STATE),
)
"""What an environment needs before its first decision, besides a device."""
