"""Where a block goes: most-room placement with a fixed tie order.

Gilman, Ogden, Guo, Walls, *Demystifying the Placement Policies of the NVIDIA GPU Thread Block
Scheduler for Concurrent Kernels* (2020): a block goes to the SM that can hold the most blocks of the
current kernel at that moment; ties follow a device-specific order of SMs; contention is ignored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import law
from gpusched_env.hardware.specs import GpuSpec


def sm_order(spec: GpuSpec) -> NDArray[np.int64]:
    """SM ids in tie order, shape ``(sms,)``."""
    if not isinstance(spec.sm_order, str):
        return np.array(spec.sm_order, np.int64)
    ids = np.arange(spec.sms)
    if spec.sm_order == "even-odd":
        return np.concatenate([ids[::2], ids[1::2]])
    return ids


@law
def fit(
    free_threads: int,
    free_warps: int,
    free_blocks: int,
    free_registers: int,
    free_shared: int,
    threads: int,
    warps: int,
    registers: int,
    shared_bytes: int,
) -> int:
    """Blocks that the free resources of an SM hold (>= 0).

    Args:
        free_threads, free_warps, free_blocks, free_registers, free_shared: what the SM has left.
        threads, warps, registers, shared_bytes: allocated amounts of one block
            (:class:`~gpusched_env.hardware.occupancy.BlockFootprint`).
    """
    room = min(free_threads // threads, free_warps // warps, free_blocks)
    room = min(room, free_registers // registers)
    if shared_bytes > 0:
        room = min(room, free_shared // shared_bytes)
    return room


@law
def within(rank: int, first: int, count: int, sms: int) -> bool:
    """Whether an SM is among the ``count`` ones from rank ``first`` on, wrapping around at ``sms``."""
    offset = rank - first
    return (offset if offset >= 0 else offset + sms) < count


@law
def block_noise(rank: int, serial: int, block: int) -> float:
    """A reproducible number of mean 0 and deviation 1, uniform, for a block of a grid on an SM (a hash).

    Args:
        rank: of the SM in placement order.
        serial: number of the grid in order of arrival.
        block: blocks of it that are left, this one included.
    """
    mixed = (rank * 2654435761 + serial * 40503 + block * 97561 + 12345) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 2246822519) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 13)) * 3266489917) & 0xFFFFFFFF
    mixed ^= mixed >> 16
    return (mixed / 4294967295.0 - 0.5) * 3.4641016151377544
