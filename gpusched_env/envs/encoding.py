"""The compiled encoder: from a View's tables to the fixed-shape float32 tables of an observation.

The functions are pure: they read float64 arrays and write into arrays that the caller owns, so that a
batched device can call them for thousands of environments without going through Python. The columns
that they write are documented in :mod:`gpusched_env.envs.features`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpusched_env.envs.features import DeviceFeature, PendingFeature, RunningFeature, Scalar, TenantFeature
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn

Floats = NDArray[np.float64]
Features = NDArray[np.float32]
Rows = NDArray[np.int64]

LOG_SCALE = math.log1p(1e6)
"""Durations are ``log1p(us) / LOG_SCALE``: 1 at a second."""
COUNT_HALF = 4.0
"""A count ``n`` is written as ``n / (n + COUNT_HALF)``."""


@njit(cache=True)
def select_pending(pending: Floats, rows: Rows) -> None:
    """For each tenant the row of ``pending`` that its slot shows: its launchable kernel, else its oldest.

    Args:
        pending: shape ``(n, len(PendingColumn))``.
        rows: written, shape ``(slots,)``; -1 where a tenant has no pending kernel.
    """
    rows[:] = -1
    for row in range(pending.shape[0]):
        tenant = int(pending[row, PendingColumn.TENANT])
        shown = rows[tenant]
        if shown < 0 or (
            pending[row, PendingColumn.LAUNCHABLE] == 1.0 and pending[shown, PendingColumn.LAUNCHABLE] != 1.0
        ):
            rows[tenant] = row


@njit(cache=True)
def select_running(running: Floats, rows: Rows) -> None:
    """The rows of ``running`` that its slots show, in their order.

    Started kernels first (only they can be preempted), then the oldest kernel of each other tenant (it
    is at the head of its stream), then the rest; oldest launch first within each group.

    Args:
        running: shape ``(n, len(RunningColumn))``, in order of launch.
        rows: written, shape ``(running_slots,)``; -1 behind the last kernel.
    """
    rows[:] = -1
    filled = 0
    for group in range(3):
        for row in range(running.shape[0]):
            if filled == rows.size:
                return
            rank = 2
            if running[row, RunningColumn.STARTED] == 1.0:
                rank = 0
            elif _heads_its_stream(running, row):
                rank = 1
            if rank == group:
                rows[filled] = row
                filled += 1


@njit(cache=True)
def _heads_its_stream(running: Floats, row: int) -> bool:
    for earlier in range(row):  # noqa: SIM110 (Numba has no all() over generators)
        if running[earlier, RunningColumn.TENANT] == running[row, RunningColumn.TENANT]:
            return False
    return True


@njit(cache=True)
def _log_us(us: float) -> float:
    return min(1.0, math.log1p(max(us, 0.0)) / LOG_SCALE)


@njit(cache=True)
def _saturate(x: float, half: float) -> float:
    if x <= 0.0:
        return 0.0
    return x / (x + half) if x < math.inf else 1.0


@njit(cache=True)
def _clip(x: float) -> float:
    return min(1.0, max(-1.0, x))


@njit(cache=True)
def _left_us(running: Floats, row: int) -> float:
    """Predicted time left of a launched kernel: its profile, less the time it has run."""
    left: float = running[row, RunningColumn.PROFILED_US] - running[row, RunningColumn.ELAPSED_US]
    return max(0.0, left)


@njit(cache=True)
def encode_pending(
    pending: Floats, running: Floats, tenants: Floats, scalars: Floats, rows: Rows, out: Features
) -> None:
    """Write the ``pending`` table, shape ``(slots, len(PendingFeature))``; ``rows`` by :func:`select_pending`."""
    now = scalars[Scalar.TIME_US]
    sms = scalars[Scalar.SMS]
    launched = math.inf
    for row in range(running.shape[0]):
        launched = min(launched, running[row, RunningColumn.PRIORITY])
    active = math.inf
    for tenant in range(tenants.shape[0]):
        if tenants[tenant, TenantColumn.JOBS_WAITING] > 0.0:
            active = min(active, tenants[tenant, TenantColumn.PRIORITY])
    out[:] = 0.0
    for slot in range(out.shape[0]):
        row = rows[slot]
        if row < 0:
            continue
        priority = pending[row, PendingColumn.PRIORITY]
        per_sm = max(1.0, pending[row, PendingColumn.BLOCKS_PER_SM])
        age_us = now - pending[row, PendingColumn.JOB_ARRIVED_US]
        left_us = pending[row, PendingColumn.JOB_LEFT_US]
        out[slot, PendingFeature.PRESENT] = 1.0
        out[slot, PendingFeature.LAUNCHABLE] = pending[row, PendingColumn.LAUNCHABLE]
        out[slot, PendingFeature.URGENCY] = 1.0 / (1.0 + priority)
        out[slot, PendingFeature.PROFILED] = _log_us(pending[row, PendingColumn.PROFILED_US])
        out[slot, PendingFeature.GAP] = _log_us(pending[row, PendingColumn.PROFILED_GAP_US])
        out[slot, PendingFeature.WAVES] = _saturate(pending[row, PendingColumn.BLOCKS], per_sm * sms)
        out[slot, PendingFeature.SMS] = _clip(pending[row, PendingColumn.SMS] / sms)
        out[slot, PendingFeature.BLOCK_SHARE] = 1.0 / per_sm
        out[slot, PendingFeature.THREADS] = _clip(pending[row, PendingColumn.THREADS] / 1024.0)
        out[slot, PendingFeature.ISSUE] = _clip(pending[row, PendingColumn.PROFILED_ISSUE])
        out[slot, PendingFeature.DRAM] = _clip(pending[row, PendingColumn.PROFILED_DRAM])
        out[slot, PendingFeature.WAITED] = _log_us(pending[row, PendingColumn.WAITED_US])
        out[slot, PendingFeature.JOB_AGE] = _log_us(age_us)
        out[slot, PendingFeature.JOB_SLOWDOWN] = _saturate(
            max(age_us, 0.0) + left_us, tenants[slot, TenantColumn.ALONE_US]
        )
        out[slot, PendingFeature.JOB_LEFT] = _log_us(left_us)
        out[slot, PendingFeature.SLACK] = _slack(
            pending[row, PendingColumn.DEADLINE_US] - now - left_us, tenants[slot, TenantColumn.SLO_US]
        )
        out[slot, PendingFeature.PREEMPTED] = pending[row, PendingColumn.PREEMPTED]
        out[slot, PendingFeature.MORE_URGENT_LAUNCHED] = 1.0 if launched < priority else 0.0
        out[slot, PendingFeature.MORE_URGENT_ACTIVE] = 1.0 if active < priority else 0.0


@njit(cache=True)
def _slack(left_us: float, slo_us: float) -> float:
    return _clip(left_us / slo_us) if slo_us < math.inf else 1.0


@njit(cache=True)
def encode_running(
    running: Floats, tenants: Floats, scalars: Floats, rows: Rows, tenant_slots: int, out: Features
) -> None:
    """Write the ``running`` table, shape ``(running_slots, len(RunningFeature))``.

    ``rows`` come from :func:`select_running`; ``tenant_slots`` is the number of tenant rows.
    """
    out[:] = 0.0
    for slot in range(out.shape[0]):
        row = rows[slot]
        if row < 0:
            return
        tenant = int(running[row, RunningColumn.TENANT])
        blocks = max(1.0, running[row, RunningColumn.BLOCKS])
        out[slot, RunningFeature.PRESENT] = 1.0
        out[slot, RunningFeature.TENANT] = (tenant + 1.0) / tenant_slots
        out[slot, RunningFeature.URGENCY] = 1.0 / (1.0 + running[row, RunningColumn.PRIORITY])
        out[slot, RunningFeature.STREAM_URGENCY] = _saturate(-running[row, RunningColumn.STREAM_PRIORITY], 1.0)
        out[slot, RunningFeature.STARTED] = running[row, RunningColumn.STARTED]
        out[slot, RunningFeature.PREEMPTING] = running[row, RunningColumn.PREEMPTING]
        out[slot, RunningFeature.IDEMPOTENT] = running[row, RunningColumn.IDEMPOTENT]
        out[slot, RunningFeature.PROFILED] = _log_us(running[row, RunningColumn.PROFILED_US])
        out[slot, RunningFeature.ELAPSED] = _log_us(running[row, RunningColumn.ELAPSED_US])
        out[slot, RunningFeature.LEFT] = _log_us(_left_us(running, row))
        out[slot, RunningFeature.OVERDUE] = _saturate(
            running[row, RunningColumn.ELAPSED_US], running[row, RunningColumn.PROFILED_US]
        )
        out[slot, RunningFeature.WAITING] = _clip(running[row, RunningColumn.BLOCKS_WAITING] / blocks)
        out[slot, RunningFeature.RESIDENT] = _clip(running[row, RunningColumn.BLOCKS_RESIDENT] / blocks)
        out[slot, RunningFeature.ISSUE] = _clip(running[row, RunningColumn.PROFILED_ISSUE])
        out[slot, RunningFeature.DRAM] = _clip(running[row, RunningColumn.PROFILED_DRAM])
        out[slot, RunningFeature.SLACK] = _slack(
            running[row, RunningColumn.DEADLINE_US] - scalars[Scalar.TIME_US], tenants[tenant, TenantColumn.SLO_US]
        )


@njit(cache=True)
def encode_tenants(running: Floats, tenants: Floats, scalars: Floats, out: Features) -> None:
    """Write the ``tenants`` table, ``out`` ``(slots, len(TenantFeature))``."""
    now = scalars[Scalar.TIME_US]
    sms = scalars[Scalar.SMS]
    out[:] = 0.0
    for row in range(running.shape[0]):
        tenant = int(running[row, RunningColumn.TENANT])
        out[tenant, TenantFeature.LAUNCHED_LEFT] += _left_us(running, row)
        if running[row, RunningColumn.STARTED] == 1.0:
            out[tenant, TenantFeature.STARTED] = 1.0
    for tenant in range(tenants.shape[0]):
        slo_us = tenants[tenant, TenantColumn.SLO_US]
        alone_us = max(tenants[tenant, TenantColumn.ALONE_US], 1e-9)
        jobs = tenants[tenant, TenantColumn.JOBS_WAITING]
        kernels = tenants[tenant, TenantColumn.KERNELS_PENDING] + tenants[tenant, TenantColumn.KERNELS_LAUNCHED]
        arrived_us = tenants[tenant, TenantColumn.OLDEST_ARRIVED_US]
        age_us = max(now - arrived_us, 0.0)
        out[tenant, TenantFeature.PRESENT] = 1.0
        out[tenant, TenantFeature.URGENCY] = 1.0 / (1.0 + tenants[tenant, TenantColumn.PRIORITY])
        out[tenant, TenantFeature.WEIGHT] = _saturate(tenants[tenant, TenantColumn.WEIGHT], 1.0)
        out[tenant, TenantFeature.HAS_SLO] = 1.0 if slo_us < math.inf else 0.0
        out[tenant, TenantFeature.SLO] = _log_us(slo_us) if slo_us < math.inf else 0.0
        out[tenant, TenantFeature.ALONE] = _log_us(alone_us)
        out[tenant, TenantFeature.JOBS] = _saturate(jobs, COUNT_HALF)
        out[tenant, TenantFeature.PENDING] = _saturate(tenants[tenant, TenantColumn.KERNELS_PENDING], COUNT_HALF)
        out[tenant, TenantFeature.LAUNCHED] = _saturate(tenants[tenant, TenantColumn.KERNELS_LAUNCHED], COUNT_HALF)
        out[tenant, TenantFeature.LAUNCHED_LEFT] = _log_us(out[tenant, TenantFeature.LAUNCHED_LEFT])
        out[tenant, TenantFeature.HOST_BUSY] = 1.0 if jobs > 0.0 and kernels == 0.0 else 0.0
        out[tenant, TenantFeature.OLDEST_AGE] = _log_us(age_us)
        out[tenant, TenantFeature.OLDEST_SLOWDOWN] = _saturate(age_us, alone_us)
        waits = arrived_us < math.inf
        out[tenant, TenantFeature.OLDEST_SLACK] = _slack(slo_us - age_us, slo_us) if waits else 1.0
        out[tenant, TenantFeature.LAST_SLOWDOWN] = _saturate(tenants[tenant, TenantColumn.LAST_TURNAROUND_US], alone_us)
        out[tenant, TenantFeature.MEAN_SLOWDOWN] = _saturate(tenants[tenant, TenantColumn.MEAN_TURNAROUND_US], alone_us)
        out[tenant, TenantFeature.PARTITION_FIRST] = _clip(tenants[tenant, TenantColumn.PARTITION_FIRST] / sms)
        out[tenant, TenantFeature.PARTITION_SMS] = _clip(tenants[tenant, TenantColumn.PARTITION_SMS] / sms)


@njit(cache=True)
def encode_device(
    pending: Floats, running: Floats, scalars: Floats, tenant_slots: int, running_slots: int, out: Features
) -> None:
    """Write the ``device`` vector, ``out`` ``(len(DeviceFeature),)``."""
    launchable = 0.0
    for row in range(pending.shape[0]):
        launchable += pending[row, PendingColumn.LAUNCHABLE]
    soonest = math.inf
    longest = 0.0
    for row in range(running.shape[0]):
        if running[row, RunningColumn.STARTED] == 1.0:
            soonest = min(soonest, _left_us(running, row))
            longest = max(longest, _left_us(running, row))
    launched = float(running.shape[0])
    out[DeviceFeature.TIME] = _clip(scalars[Scalar.TIME_US] / scalars[Scalar.HORIZON_US])
    out[DeviceFeature.SMS] = _clip(math.log2(scalars[Scalar.SMS]) / 8.0)
    out[DeviceFeature.BUSY_SMS] = _clip(scalars[Scalar.BUSY_SMS] / scalars[Scalar.SMS])
    out[DeviceFeature.OCCUPANCY] = _clip(scalars[Scalar.OCCUPANCY])
    out[DeviceFeature.DRAM] = _clip(scalars[Scalar.DRAM])
    out[DeviceFeature.LAUNCHABLE] = _clip(launchable / tenant_slots)
    out[DeviceFeature.LAUNCHED] = _saturate(launched, COUNT_HALF)
    out[DeviceFeature.HIDDEN] = _saturate(max(0.0, launched - running_slots), COUNT_HALF)
    out[DeviceFeature.SOONEST_LEFT] = _log_us(soonest) if soonest < math.inf else 0.0
    out[DeviceFeature.LONGEST_LEFT] = _log_us(longest)


@njit(cache=True)
def encode(
    pending: Floats,
    running: Floats,
    tenants: Floats,
    scalars: Floats,
    pending_rows: Rows,
    running_rows: Rows,
    out_pending: Features,
    out_running: Features,
    out_tenants: Features,
    out_device: Features,
) -> None:
    """Write one observation.

    Args:
        pending, running, tenants: a View's tables, float64, in the order of its columns.
        scalars: shape ``(len(Scalar),)``.
        pending_rows, running_rows: what :func:`select_pending` and :func:`select_running` chose.
        out_pending: shape ``(slots, len(PendingFeature))``; ``slots`` is at least the number of tenants.
        out_running: shape ``(running_slots, len(RunningFeature))``.
        out_tenants: shape ``(slots, len(TenantFeature))``.
        out_device: shape ``(len(DeviceFeature),)``.
    """
    slots = out_pending.shape[0]
    encode_pending(pending, running, tenants, scalars, pending_rows, out_pending)
    encode_running(running, tenants, scalars, running_rows, slots, out_running)
    encode_tenants(running, tenants, scalars, out_tenants)
    encode_device(pending, running, scalars, slots, out_running.shape[0], out_device)
