"""One step of many environments on the compiled device, without Python in between.

From an action number to the next observation, mask and cost: the same encoder, mask and cost arithmetic as for
any other device, on tables that the compiled device fills.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gpusched_env.devices.compiled.access import clients, env_at, problem, programs
from gpusched_env.devices.compiled.commands import LAUNCH, PREEMPT, SET_PARTITION, WAIT
from gpusched_env.devices.compiled.intrinsics import call
from gpusched_env.devices.compiled.jit import cached_by_source
from gpusched_env.devices.compiled.layout import CLOSED_LOOP, DECIDE, FLUSH, GROW_JOBS, GROW_LAUNCHES, OVER
from gpusched_env.devices.compiled.meter import power_w
from gpusched_env.devices.compiled.views import fill_tenant, occupancy, show_pending, show_running
from gpusched_env.envs.encoding import encode
from gpusched_env.envs.features import Scalar
from gpusched_env.envs.masking import fill_mask, partition_first, partition_sms
from gpusched_env.scheduling.reward import jobs_left, weigh
from gpusched_env.scheduling.view import RunningColumn


@njit(cache=True, _nrt=False, nogil=True)
@cached_by_source
def step_range(
    first,
    last,
    fresh,
    drive_at,
    wait_us,
    addresses,
    actions,
    reward_weights,
    stream_priorities,
    modes,
    quarters,
    pending_shown,
    running_shown,
    tenants_shown,
    scratch,
    numbers,
    reasons,
    costs,
    times,
    masks,
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
        addresses: int64 ``(n,)``, of the environments.
        actions: int64 ``(n,)``, in the order of :class:`~gpusched_env.envs.actions.ActionLayout`, whose
            ``stream_priorities``, ``modes`` and ``quarters`` follow; -1: none, just run (after a reset).
        reward_weights: float64 ``(n, terms)``.
        pending_shown, running_shown, tenants_shown: what slots stand for, as in a View, ``(n, slots, columns)``.
        scratch: float64 ``(n, 4 * slots + terms + scalars)``.
        numbers: int64 ``(n, 3, slots)``, scratch.
        reasons: int64 ``(n,)``: why each stopped (:mod:`~gpusched_env.devices.compiled.layout`).
        costs: float64 ``(n,)``: total so far.
        times: float64 ``(n, 2)``: simulated time of the observation before, and of this one.
        masks: bool ``(n, actions)``: what is legal, read and then written.
        out_pending, out_running, out_tenants, out_device: the observations, float32.

    Returns:
        how many environments have to be served.
    """
    unserved = 0
    for e in range(first, last):
        w = env_at(addresses[e], 0)
        if fresh:
            times[e, 0] = w.now_us
            if reasons[e] == DECIDE and actions[e] >= 0:
                act(
                    w, actions[e], wait_us, stream_priorities, modes, quarters, masks[e], running_shown[e],
                    out_pending.shape[1],
                )  # fmt: skip
        elif not to_serve(reasons[e]):
            continue
        reason = call(drive_at, addresses[e], 1)
        reasons[e] = reason
        if to_serve(reason):
            unserved += 1
            continue
        show_pending(w, pending_shown[e])
        show_running(w, numbers[e], running_shown[e])
        tenants = problem(w).tenants
        for tenant in range(tenants):
            fill_tenant(w, tenant, tenants_shown[e, tenant])
        slots = out_pending.shape[1]
        total = cost(w, scratch[e], slots, tenants, reward_weights[e], reason == OVER)
        costs[e] = total
        times[e, 1] = w.now_us
        sms = problem(w).sms
        if reason == DECIDE:
            fill_mask(
                pending_shown[e], running_shown[e], tenants_shown[e, :tenants], sms, stream_priorities.size, modes,
                quarters, masks[e],
            )  # fmt: skip
        else:
            for action in range(masks.shape[1]):
                masks[e, action] = action == 0
        scalars = scratch[e, 4 * slots + reward_weights.shape[1] :]
        scalars[Scalar.TIME_US] = w.now_us
        scalars[Scalar.HORIZON_US] = problem(w).horizon_us
        scalars[Scalar.SMS] = sms
        scalars[Scalar.BUSY_SMS] = w.busy_sms
        scalars[Scalar.OCCUPANCY] = occupancy(w)
        scalars[Scalar.DRAM] = w.traffic / problem(w).nominal_bytes_per_us
        encode(
            pending_shown[e], running_shown[e], tenants_shown[e, :tenants], scalars, out_pending[e], out_running[e],
            out_tenants[e], out_device[e],
        )  # fmt: skip
    return unserved


@njit(_nrt=False, forceinline=True, no_cpython_wrapper=True)
def to_serve(reason):
    """Whether an environment stopped because its memory is too small."""
    return reason in (FLUSH, GROW_JOBS, GROW_LAUNCHES)


@njit(_nrt=False, no_cpython_wrapper=True)
def act(w, action, wait_us, stream_priorities, modes, quarters, mask, running, slots):
    """Give an environment the command that an action stands for; an illegal one is a wait."""
    w.command_first = 0
    w.command_sms = 0
    preemptions = 1 + slots * stream_priorities.size
    partitions = preemptions + running.shape[0] * modes.size
    if not mask[action] or action == 0:
        w.illegal += action != 0
        w.command = WAIT
        w.command_until_us = w.now_us + wait_us
    elif action < preemptions:
        w.command = LAUNCH
        w.command_tenant = (action - 1) // stream_priorities.size
        w.command_choice = stream_priorities[(action - 1) % stream_priorities.size]
    elif action < partitions:
        w.command = PREEMPT
        w.command_tenant = int(running[(action - preemptions) // modes.size, RunningColumn.TENANT])
        w.command_choice = modes[(action - preemptions) % modes.size]
    else:
        tenant = (action - partitions) // quarters.size
        size = quarters[(action - partitions) % quarters.size]
        w.command = SET_PARTITION
        w.command_tenant = tenant
        w.command_first = partition_first(problem(w).sms, size, tenant)
        w.command_sms = partition_sms(problem(w).sms, size)


@njit(_nrt=False, no_cpython_wrapper=True)
def cost(w, scratch, slots, tenants, reward_weights, over):
    """The total cost of an environment so far; ``over``: at the end of its episode."""
    jobs_us = scratch[:tenants]
    misses = scratch[slots : slots + tenants]
    weights = scratch[2 * slots : 2 * slots + tenants]
    alone_us = scratch[3 * slots : 3 * slots + tenants]
    energy_j = w.energy_j + w.power_w * (w.now_us - w.gpu_since_us) * 1e-6
    makespan_us = min(w.now_us, w.done_us)
    peak_w = power_w(problem(w), problem(w).sms, problem(w).nominal_bytes_per_us)
    for tenant in range(tenants):
        client = clients(w, tenant)
        in_system = client.arrived - client.completed
        jobs_us[tenant] = client.jobs_us + in_system * (w.now_us - client.jobs_since_us)
        misses[tenant] = client.slo_misses
        program = programs(w, tenant)
        weights[tenant] = program.weight
        alone_us[tenant] = program.alone_us
        if over:
            waiting, unsent = jobs_left(
                float(client.arrived),
                float(client.completed),
                program.jobs,
                program.arrivals == CLOSED_LOOP,
                program.start_us,
                program.think_us,
                program.alone_us,
                w.now_us,
            )
            left_us = (waiting + unsent) * program.alone_us
            jobs_us[tenant] += left_us
            misses[tenant] += unsent if program.slo_us < np.inf else 0.0
            energy_j += left_us * peak_w * 1e-6
            makespan_us += left_us if program.jobs >= 0 else 0.0
    return weigh(
        jobs_us,
        misses,
        energy_j,
        makespan_us,
        weights,
        alone_us,
        reward_weights,
        scratch[4 * slots : 4 * slots + reward_weights.size],
    )
