"""Which actions a device would accept: compiled, pure, in the order of the flat action numbers."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpusched_env.envs.encoding import Floats, Rows
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn

Bools = NDArray[np.bool_]

DRAIN = 0
SAVE = 1
RESET = 2
"""Codes of the preemption modes in :func:`fill_mask`."""


@njit(cache=True)
def partition_sms(sms: int, quarters: int) -> int:
    """SMs of ``quarters`` quarters of a GPU with ``sms`` SMs, rounded down, at least one."""
    return max(1, sms * quarters // 4)


@njit(cache=True)
def partition_first(sms: int, quarters: int, tenant: int) -> int:
    """First SM of a tenant's partition: even rows are counted from rank 0, odd rows from the other end."""
    return sms - partition_sms(sms, quarters) if tenant % 2 == 1 else 0


@njit(cache=True)
def fill_mask(
    pending: Floats,
    running: Floats,
    tenants: Floats,
    sms: int,
    pending_rows: Rows,
    running_rows: Rows,
    priorities: int,
    modes: NDArray[np.int64],
    quarters: NDArray[np.int64],
    out: Bools,
) -> None:
    """Write which actions are legal.

    Args:
        pending, running, tenants: a View's tables, float64.
        sms: SMs of the GPU.
        pending_rows: shape ``(slots,)``, from :func:`~gpusched_env.envs.encoding.select_pending`.
        running_rows: shape ``(running_slots,)``, from :func:`~gpusched_env.envs.encoding.select_running`.
        priorities: stream priorities that a launch can choose from (all of them valid on the GPU).
        modes: preemption modes on offer (:data:`DRAIN`, :data:`SAVE`, :data:`RESET`); empty: none.
        quarters: partition sizes on offer, in quarters of the GPU; empty: none.
        out: written, shape ``(1 + slots * priorities + running_slots * modes.size + slots * quarters.size,)``.
    """
    out[0] = True
    action = 1
    for slot in range(pending_rows.size):
        row = pending_rows[slot]
        legal = row >= 0 and pending[row, PendingColumn.LAUNCHABLE] == 1.0
        for _ in range(priorities):
            out[action] = legal
            action += 1
    if modes.size > 0:
        for slot in range(running_rows.size):
            row = running_rows[slot]
            legal = (
                row >= 0
                and running[row, RunningColumn.STARTED] == 1.0
                and running[row, RunningColumn.PREEMPTING] == 0.0
            )
            for mode in modes:
                out[action] = legal and (mode != RESET or running[row, RunningColumn.IDEMPOTENT] == 1.0)
                action += 1
    if quarters.size > 0:
        for tenant in range(pending_rows.size):
            for size in quarters:
                out[action] = tenant < tenants.shape[0] and (
                    tenants[tenant, TenantColumn.PARTITION_FIRST] != partition_first(sms, size, tenant)
                    or tenants[tenant, TenantColumn.PARTITION_SMS] != partition_sms(sms, size)
                )
                action += 1
