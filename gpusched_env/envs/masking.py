"""Which actions a device would accept: compiled, pure, in the order of the flat action numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import cached
from gpusched_env.envs.encoding import ID, NO_KERNEL, Bools, Floats
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn

DRAIN = 0
SAVE = 1
RESET = 2
"""Codes of the preemption modes in :func:`fill_mask`."""


@cached()
def partition_sms(sms: int, quarters: int) -> int:
    """SMs of ``quarters`` quarters of a GPU with ``sms`` SMs, rounded down, at least one."""
    return max(1, sms * quarters // 4)


@cached()
def partition_first(sms: int, quarters: int, tenant: int) -> int:
    """First SM of a tenant's partition: even rows are counted from rank 0, odd rows from the other end."""
    return sms - partition_sms(sms, quarters) if tenant % 2 == 1 else 0


@cached()
def fill_mask(
    pending_shown: Floats,
    running_shown: Floats,
    tenants: Floats,
    sms: int,
    priorities: int,
    modes: NDArray[np.int64],
    quarters: NDArray[np.int64],
    out: Bools,
) -> None:
    """Write which actions are legal.

    Args:
        pending_shown: float64, shape ``(slots, len(PendingColumn))``, as for
            :func:`~gpusched_env.envs.encoding.encode`.
        running_shown: float64, shape ``(running_slots, len(RunningColumn))``, likewise.
        tenants: a View's table, float64.
        sms: SMs of the GPU.
        priorities: stream priorities that a launch can choose from (all of them valid on the GPU).
        modes: preemption modes on offer (:data:`DRAIN`, :data:`SAVE`, :data:`RESET`); empty: none.
        quarters: partition sizes on offer, in quarters of the GPU; empty: none.
        out: written, shape ``(1 + slots * priorities + running_slots * modes.size + slots * quarters.size,)``.
    """
    out[0] = True
    action = 1
    slots = pending_shown.shape[0]
    for slot in range(slots):
        legal = (
            slot < tenants.shape[0]
            and pending_shown[slot, ID] != NO_KERNEL
            and pending_shown[slot, PendingColumn.LAUNCHABLE] == 1.0
        )
        for _ in range(priorities):
            out[action] = legal
            action += 1
    if modes.size > 0:
        for slot in range(running_shown.shape[0]):
            legal = running_shown[slot, ID] != NO_KERNEL and running_shown[slot, RunningColumn.PREEMPTIBLE] == 1.0
            for mode in modes:
                out[action] = legal and (mode != RESET or running_shown[slot, RunningColumn.IDEMPOTENT] == 1.0)
                action += 1
    if quarters.size > 0:
        for tenant in range(slots):
            legal = tenant < tenants.shape[0] and tenants[tenant, TenantColumn.PARTITIONABLE] == 1.0
            for size in quarters:
                out[action] = legal and (
                    tenants[tenant, TenantColumn.PARTITION_FIRST] != partition_first(sms, size, tenant)
                    or tenants[tenant, TenantColumn.PARTITION_SMS] != partition_sms(sms, size)
                )
                action += 1
