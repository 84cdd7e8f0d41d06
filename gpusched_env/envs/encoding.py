"""The compiled encoder: from what is shown of a View to the fixed-shape float32 tables of an observation.

Hosts run ahead of the GPU by hundreds of launches, of which an observation shows a few: those of the *shown*
tables, rows of a View's tables in the order of the slots. The functions are pure: they read float64 arrays
and write into arrays that the caller owns, so that a batched device can call them for thousands of
environments without going through Python. The columns that they write are documented in
:mod:`gpusched_env.envs.features`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import cached, called
from gpusched_env.envs.features import DeviceFeature, PendingFeature, RunningFeature, Scalar, TenantFeature
from gpusched_env.hardware.tiles import NEEDS_PRODUCT, NEEDS_ROW
from gpusched_env.scheduling.commands import POLICIES
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn

Floats = NDArray[np.float64]
Features = NDArray[np.float32]
Bools = NDArray[np.bool_]

LOG_SCALE = math.log1p(1e6)
"""Scale of durations, which are written as ``log(1 + us) / LOG_SCALE``: 1 at a second."""
COUNT_HALF = 4.0
"""Count that is written as one half: ``n / (n + COUNT_HALF)`` of a count ``n``."""
TILES_HALF = 8.0
"""Number of rows or columns of tiles that is written as one half."""
LAST_POLICY = len(POLICIES) - 1
ID = 0
"""Column of the launch id, in the pending and in the running table."""
NO_KERNEL = -1.0
"""The ``ID`` of an empty row of a shown table; its other columns mean nothing."""


@cached()
def gather_pending(pending: Floats, lookahead: int, shown: Floats) -> None:
    """Write what pending slots show: slot ``tenant * lookahead + k`` the ``k``-th oldest pending launch of a tenant.

    Args:
        pending: shape ``(n, len(PendingColumn))``, tenant after tenant, oldest first.
        lookahead: slots of a tenant.
        shown: written, shape ``(pending slots, len(PendingColumn))``; ``ID`` is -1 of an empty slot.
    """
    _clear(shown)
    last = -1
    k = 0
    for row in range(pending.shape[0]):
        tenant = int(pending[row, PendingColumn.TENANT])
        k = k + 1 if tenant == last else 0
        last = tenant
        if k < lookahead:
            _copy_row(pending, row, shown, tenant * lookahead + k)


@cached()
def gather_running(running: Floats, seen: Bools, shown: Floats) -> None:
    """Write what running slots show.

    Started kernels first (only they can be preempted), then the oldest kernel of each other tenant (it
    is at the head of its stream), then the rest; oldest launch first within each group.

    Args:
        running: shape ``(n, len(RunningColumn))``, in order of launch; n may be large.
        seen: scratch, shape ``(tenants,)``.
        shown: written, shape ``(running_slots, len(RunningColumn))``; ``ID`` is -1 behind the last kernel.
    """
    _clear(shown)
    seen[:] = False
    slots = shown.shape[0]
    started = 0
    heads = 0
    filled = 0
    for row in range(running.shape[0]):
        tenant = int(running[row, RunningColumn.TENANT])
        first = not seen[tenant]
        seen[tenant] = True
        if running[row, RunningColumn.STARTED] == 1.0:
            place = started
            started = min(started + 1, slots)
        elif first:
            place = started + heads
            heads += 1
        else:
            place = filled
        heads = min(heads, slots - started)
        if place < slots:
            for slot in range(min(filled, slots - 1), place, -1):
                _copy_row(shown, slot - 1, shown, slot)
            _copy_row(running, row, shown, place)
            filled = min(filled + 1, slots)


@called
def _clear(shown: Floats) -> None:
    shown[:] = 0.0
    for slot in range(shown.shape[0]):
        shown[slot, ID] = NO_KERNEL


@called
def _copy_row(source: Floats, row: int, target: Floats, to: int) -> None:
    for column in range(source.shape[1]):
        target[to, column] = source[row, column]


@called
def producer_of(shown: Floats, slot: int) -> int:
    """The slot of the launch whose tiles a pending one needs; -1: it is not shown."""
    producer = shown[slot, PendingColumn.PRODUCER]
    for other in range(shown.shape[0] if producer >= 0.0 else 0):
        if shown[other, ID] == producer:
            return other
    return -1


@called
def log_us(us: float) -> float:
    """A duration as columns have it; 0 for NaN: not measured. (``log1p`` is slower, for digits that float32 drops.)"""
    return min(1.0, math.log(1.0 + us) / LOG_SCALE) if us > 0.0 else 0.0


@called
def saturate(x: float, half: float) -> float:
    if x <= 0.0:
        return 0.0
    return x / (x + half) if x < math.inf else 1.0


@called
def clip(x: float) -> float:
    return min(1.0, max(-1.0, x))


@called
def soft_sign(x: float) -> float:
    """A number from -1 to 1, without an end beyond which all is the same; ``inf``: 1."""
    return x / (1.0 + abs(x)) if x < math.inf else 1.0


@called
def encode_pending(shown: Floats, tenants: Floats, scalars: Floats, tenant_slots: int, out: Features) -> None:
    """Write the ``pending`` table, shape ``(pending slots, len(PendingFeature))``."""
    now = scalars[Scalar.TIME_US]
    sms = scalars[Scalar.SMS]
    launched = math.inf
    active = math.inf
    for tenant in range(tenants.shape[0]):
        if tenants[tenant, TenantColumn.KERNELS_LAUNCHED] > 0.0:
            launched = min(launched, tenants[tenant, TenantColumn.PRIORITY])
        if tenants[tenant, TenantColumn.JOBS_WAITING] > 0.0:
            active = min(active, tenants[tenant, TenantColumn.PRIORITY])
    out[:] = 0.0
    for slot in range(shown.shape[0]):
        if shown[slot, ID] == NO_KERNEL:
            continue
        tenant = int(shown[slot, PendingColumn.TENANT])
        priority = shown[slot, PendingColumn.PRIORITY]
        per_sm = max(1.0, shown[slot, PendingColumn.BLOCKS_PER_SM])
        age_us = now - shown[slot, PendingColumn.JOB_ARRIVED_US]
        left_us = shown[slot, PendingColumn.JOB_LEFT_US]
        out[slot, PendingFeature.PRESENT] = 1.0
        out[slot, PendingFeature.LAUNCHABLE] = shown[slot, PendingColumn.LAUNCHABLE]
        out[slot, PendingFeature.URGENCY] = 1.0 / (1.0 + priority)
        out[slot, PendingFeature.PROFILED] = log_us(shown[slot, PendingColumn.PROFILED_US])
        out[slot, PendingFeature.GAP] = log_us(shown[slot, PendingColumn.PROFILED_GAP_US])
        out[slot, PendingFeature.WAVES] = saturate(shown[slot, PendingColumn.BLOCKS], per_sm * sms)
        out[slot, PendingFeature.SMS] = clip(shown[slot, PendingColumn.SMS] / sms)
        out[slot, PendingFeature.BLOCK_SHARE] = 1.0 / per_sm
        out[slot, PendingFeature.THREADS] = clip(shown[slot, PendingColumn.THREADS] / 1024.0)
        out[slot, PendingFeature.ISSUE] = clip(shown[slot, PendingColumn.PROFILED_ISSUE])
        out[slot, PendingFeature.DRAM] = clip(shown[slot, PendingColumn.PROFILED_DRAM])
        out[slot, PendingFeature.WAITED] = log_us(shown[slot, PendingColumn.WAITED_US])
        out[slot, PendingFeature.JOB_AGE] = log_us(age_us)
        out[slot, PendingFeature.JOB_SLOWDOWN] = saturate(
            max(age_us, 0.0) + left_us, tenants[tenant, TenantColumn.ALONE_US]
        )
        out[slot, PendingFeature.JOB_LEFT] = log_us(left_us)
        out[slot, PendingFeature.SLACK] = _slack(
            shown[slot, PendingColumn.DEADLINE_US] - now - left_us, tenants[tenant, TenantColumn.SLO_US]
        )
        out[slot, PendingFeature.PREEMPTED] = shown[slot, PendingColumn.PREEMPTED]
        out[slot, PendingFeature.MORE_URGENT_LAUNCHED] = 1.0 if launched < priority else 0.0
        out[slot, PendingFeature.MORE_URGENT_ACTIVE] = 1.0 if active < priority else 0.0
        out[slot, PendingFeature.TENANT] = (tenant + 1.0) / tenant_slots
        out[slot, PendingFeature.UPSTREAM] = saturate(shown[slot, PendingColumn.UPSTREAM], COUNT_HALF)
        out[slot, PendingFeature.GRAPH] = 1.0 if shown[slot, PendingColumn.NODES] > 1.0 else 0.0
        out[slot, PendingFeature.CHILD] = 1.0 if shown[slot, PendingColumn.PARENT] >= 0.0 else 0.0
        out[slot, PendingFeature.QUEUED] = log_us(shown[slot, PendingColumn.QUEUED_US])
        out[slot, PendingFeature.BETWEEN] = log_us(shown[slot, PendingColumn.BETWEEN_US])
        out[slot, PendingFeature.DEPENDENTS] = saturate(shown[slot, PendingColumn.DEPENDENTS], COUNT_HALF)
        out[slot, PendingFeature.ROWS] = saturate(shown[slot, PendingColumn.ROWS], TILES_HALF)
        out[slot, PendingFeature.COLUMNS] = saturate(shown[slot, PendingColumn.COLUMNS], TILES_HALF)
        out[slot, PendingFeature.SLICES] = saturate(shown[slot, PendingColumn.SLICES], COUNT_HALF)
        out[slot, PendingFeature.FOLD] = saturate(shown[slot, PendingColumn.FOLD], 1.0)
        out[slot, PendingFeature.SYNCHRONISABLE] = shown[slot, PendingColumn.SYNCHRONISABLE]
        out[slot, PendingFeature.POLICY] = shown[slot, PendingColumn.POLICY] / LAST_POLICY
        out[slot, PendingFeature.POSTS] = shown[slot, PendingColumn.POSTS] / LAST_POLICY
        producer = producer_of(shown, slot)
        if producer >= 0:
            out[slot, PendingFeature.PRODUCER] = 1.0
            out[slot, PendingFeature.PRODUCER_PROFILED] = log_us(shown[producer, PendingColumn.PROFILED_US])
            out[slot, PendingFeature.WAITS] = saturate(_waits(shown[producer], shown[slot]), TILES_HALF)
            out[slot, PendingFeature.LATE] = 1.0 if shown[producer, PendingColumn.UPSTREAM] > 0.0 else 0.0


@called
def _waits(producer: Floats, consumer: Floats) -> float:
    """How often a block of a consumer waits by tile; its slices share the steps through a row.

    A step reads a tile of each matrix that the producer has, of a product one of each of two bands.
    """
    needs, columns = consumer[PendingColumn.NEEDS], producer[PendingColumn.COLUMNS]
    if needs == NEEDS_PRODUCT:
        columns = 2.0 * columns / max(1.0, consumer[PendingColumn.FOLD])
    elif needs != NEEDS_ROW:
        return 1.0
    return float(columns / max(1.0, consumer[PendingColumn.SLICES]))


@called
def _slack(left_us: float, slo_us: float) -> float:
    return clip(left_us / slo_us) if slo_us < math.inf else 1.0


@called
def encode_running(shown: Floats, tenants: Floats, scalars: Floats, tenant_slots: int, out: Features) -> None:
    """Write the ``running`` table, shape ``(running_slots, len(RunningFeature))``."""
    out[:] = 0.0
    for slot in range(out.shape[0]):
        if shown[slot, ID] == NO_KERNEL:
            return
        tenant = int(shown[slot, RunningColumn.TENANT])
        blocks = max(1.0, shown[slot, RunningColumn.BLOCKS])
        profiled_us = shown[slot, RunningColumn.PROFILED_US]
        elapsed_us = shown[slot, RunningColumn.ELAPSED_US]
        out[slot, RunningFeature.PRESENT] = 1.0
        out[slot, RunningFeature.TENANT] = (tenant + 1.0) / tenant_slots
        out[slot, RunningFeature.URGENCY] = 1.0 / (1.0 + shown[slot, RunningColumn.PRIORITY])
        out[slot, RunningFeature.STREAM_URGENCY] = saturate(-shown[slot, RunningColumn.STREAM_PRIORITY], 1.0)
        out[slot, RunningFeature.STARTED] = shown[slot, RunningColumn.STARTED]
        out[slot, RunningFeature.PREEMPTING] = shown[slot, RunningColumn.PREEMPTING]
        out[slot, RunningFeature.IDEMPOTENT] = shown[slot, RunningColumn.IDEMPOTENT]
        out[slot, RunningFeature.PROFILED] = log_us(profiled_us)
        out[slot, RunningFeature.ELAPSED] = log_us(elapsed_us)
        out[slot, RunningFeature.LEFT] = log_us(profiled_us - elapsed_us)
        out[slot, RunningFeature.OVERDUE] = saturate(elapsed_us, profiled_us) if profiled_us > 0.0 else 0.0
        out[slot, RunningFeature.WAITING] = clip(shown[slot, RunningColumn.BLOCKS_WAITING] / blocks)
        out[slot, RunningFeature.RESIDENT] = clip(shown[slot, RunningColumn.BLOCKS_RESIDENT] / blocks)
        out[slot, RunningFeature.ISSUE] = clip(shown[slot, RunningColumn.PROFILED_ISSUE])
        out[slot, RunningFeature.DRAM] = clip(shown[slot, RunningColumn.PROFILED_DRAM])
        out[slot, RunningFeature.SLACK] = _slack(
            shown[slot, RunningColumn.DEADLINE_US] - scalars[Scalar.TIME_US], tenants[tenant, TenantColumn.SLO_US]
        )
        out[slot, RunningFeature.POLICY] = shown[slot, RunningColumn.POLICY] / LAST_POLICY
        out[slot, RunningFeature.POSTS] = shown[slot, RunningColumn.POSTS] / LAST_POLICY


@called
def encode_tenants(tenants: Floats, scalars: Floats, out: Features) -> None:
    """Write the ``tenants`` table, ``out`` ``(slots, len(TenantFeature))``."""
    now = scalars[Scalar.TIME_US]
    sms = scalars[Scalar.SMS]
    out[:] = 0.0
    for tenant in range(tenants.shape[0]):
        slo_us = tenants[tenant, TenantColumn.SLO_US]
        alone_us = max(tenants[tenant, TenantColumn.ALONE_US], 1e-9)
        jobs = tenants[tenant, TenantColumn.JOBS_WAITING]
        kernels = tenants[tenant, TenantColumn.KERNELS_PENDING] + tenants[tenant, TenantColumn.KERNELS_LAUNCHED]
        arrived_us = tenants[tenant, TenantColumn.OLDEST_ARRIVED_US]
        age_us = max(now - arrived_us, 0.0)
        out[tenant, TenantFeature.PRESENT] = 1.0
        out[tenant, TenantFeature.URGENCY] = 1.0 / (1.0 + tenants[tenant, TenantColumn.PRIORITY])
        out[tenant, TenantFeature.WEIGHT] = saturate(tenants[tenant, TenantColumn.WEIGHT], 1.0)
        out[tenant, TenantFeature.HAS_SLO] = 1.0 if slo_us < math.inf else 0.0
        out[tenant, TenantFeature.SLO] = log_us(slo_us) if slo_us < math.inf else 0.0
        out[tenant, TenantFeature.ALONE] = log_us(alone_us)
        out[tenant, TenantFeature.JOBS] = saturate(jobs, COUNT_HALF)
        out[tenant, TenantFeature.PENDING] = saturate(tenants[tenant, TenantColumn.KERNELS_PENDING], COUNT_HALF)
        out[tenant, TenantFeature.LAUNCHED] = saturate(tenants[tenant, TenantColumn.KERNELS_LAUNCHED], COUNT_HALF)
        out[tenant, TenantFeature.LAUNCHED_LEFT] = log_us(tenants[tenant, TenantColumn.LAUNCHED_LEFT_US])
        out[tenant, TenantFeature.STARTED] = 1.0 if tenants[tenant, TenantColumn.RUNNING_LEFT_US] < math.inf else 0.0
        out[tenant, TenantFeature.HOST_BUSY] = 1.0 if jobs > 0.0 and kernels == 0.0 else 0.0
        out[tenant, TenantFeature.OLDEST_AGE] = log_us(age_us)
        out[tenant, TenantFeature.OLDEST_SLOWDOWN] = saturate(age_us, alone_us)
        waits = arrived_us < math.inf
        out[tenant, TenantFeature.OLDEST_SLACK] = _slack(slo_us - age_us, slo_us) if waits else 1.0
        out[tenant, TenantFeature.LAST_SLOWDOWN] = saturate(tenants[tenant, TenantColumn.LAST_TURNAROUND_US], alone_us)
        out[tenant, TenantFeature.MEAN_SLOWDOWN] = saturate(tenants[tenant, TenantColumn.MEAN_TURNAROUND_US], alone_us)
        out[tenant, TenantFeature.PARTITION_FIRST] = clip(tenants[tenant, TenantColumn.PARTITION_FIRST] / sms)
        out[tenant, TenantFeature.PARTITION_SMS] = clip(tenants[tenant, TenantColumn.PARTITION_SMS] / sms)
        out[tenant, TenantFeature.REJECTABLE] = 1.0 if tenants[tenant, TenantColumn.NEWEST_REJECTABLE] >= 0.0 else 0.0


@called
def encode_device(pending_shown: Floats, tenants: Floats, scalars: Floats, running_slots: int, out: Features) -> None:
    """Write the ``device`` vector, ``out`` ``(len(DeviceFeature),)``."""
    launchable = 0.0
    soonest = math.inf
    longest = 0.0
    launched = 0.0
    for slot in range(pending_shown.shape[0]):
        if pending_shown[slot, ID] != NO_KERNEL:
            launchable += pending_shown[slot, PendingColumn.LAUNCHABLE]
    for tenant in range(tenants.shape[0]):
        launched += tenants[tenant, TenantColumn.KERNELS_LAUNCHED]
        left_us = tenants[tenant, TenantColumn.RUNNING_LEFT_US]
        if left_us < math.inf:
            soonest = min(soonest, left_us)
            longest = max(longest, left_us)
    out[DeviceFeature.TIME] = clip(scalars[Scalar.TIME_US] / scalars[Scalar.HORIZON_US])
    out[DeviceFeature.SMS] = clip(math.log2(scalars[Scalar.SMS]) / 8.0)
    out[DeviceFeature.BUSY_SMS] = clip(scalars[Scalar.BUSY_SMS] / scalars[Scalar.SMS])
    out[DeviceFeature.OCCUPANCY] = clip(scalars[Scalar.OCCUPANCY])
    out[DeviceFeature.DRAM] = clip(scalars[Scalar.DRAM])
    out[DeviceFeature.LAUNCHABLE] = clip(launchable / pending_shown.shape[0])
    out[DeviceFeature.LAUNCHED] = saturate(launched, COUNT_HALF)
    out[DeviceFeature.HIDDEN] = saturate(max(0.0, launched - running_slots), COUNT_HALF)
    out[DeviceFeature.SOONEST_LEFT] = log_us(soonest) if soonest < math.inf else 0.0
    out[DeviceFeature.LONGEST_LEFT] = log_us(longest)


@cached()
def encode(
    pending_shown: Floats,
    running_shown: Floats,
    tenants: Floats,
    scalars: Floats,
    out_pending: Features,
    out_running: Features,
    out_tenants: Features,
    out_device: Features,
) -> None:
    """Write one observation. The launches that are not shown count through the tenants' columns.

    Args:
        pending_shown: float64, shape ``(pending slots, len(PendingColumn))``, as :func:`gather_pending` writes it; a
            multiple of the tenant slots.
        running_shown: float64, shape ``(running_slots, len(RunningColumn))``, as :func:`gather_running` does.
        tenants: a View's table, float64, shape ``(tenants, len(TenantColumn))``; at most as many as tenant slots.
        scalars: shape ``(len(Scalar),)``.
        out_pending: shape ``(pending slots, len(PendingFeature))``.
        out_running: shape ``(running_slots, len(RunningFeature))``.
        out_tenants: shape ``(tenant slots, len(TenantFeature))``.
        out_device: shape ``(len(DeviceFeature),)``.
    """
    tenant_slots = out_tenants.shape[0]
    encode_pending(pending_shown, tenants, scalars, tenant_slots, out_pending)
    encode_running(running_shown, tenants, scalars, tenant_slots, out_running)
    encode_tenants(tenants, scalars, out_tenants)
    encode_device(pending_shown, tenants, scalars, running_shown.shape[0], out_device)
