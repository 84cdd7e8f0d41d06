"""What synchronising costs a block: counted in operations of the released code, priced by what they took elsewhere.

* A *post* is a barrier of the block, a fence for the system and an atomic addition; a *wait* a read of a semaphore and
  a barrier. Both were timed on an H100 (``data/measurements/h100/tiles.json``), and latencies are taken to be equal in
  clocks. Blocks of any length pay the same there: those that spin for an eighth of the time gain by rows what this
  price predicts within 1.1 points, long ones and products of 128 x 128 elements within 0.8 (``docs/cusync-gpu.md``).
  The paper bounds the cost by 2 to 3 % of two copy kernels; their released program has no fence, and no time is given.
* The *order* of its own is an atomic addition whose result is waited for, a read that depends on it, and a barrier: two
  waits. In a kernel's first wave it takes 2.5 us (5 us for two kernels of a wave each, Table V), as nothing of it is in
  a cache. A GPU's description has one price for all blocks; so it is the mean over the waves of the kernels.
* The *wait kernel* takes 5 us (Table V).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import msgspec

from gpusched_env.experiments.measure.tile_page import shipped
from gpusched_env.experiments.measure.tile_rows import CostTime, read_tiles
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.dependent import TiledKernel

READS_OF_ORDER = 2
"""Reads, one after the other, of a block that takes its tile from a counter."""


@functools.cache
def measured_clocks() -> dict[str, float]:
    """Clocks of a ``post`` and of a ``wait`` of a block, as timed on an H100."""
    recording = read_tiles(shipped())
    return {row.of: row.median_us * recording.clock_mhz for row in recording.rows if isinstance(row, CostTime)}


def priced(gpu: GpuSpec, kernels: Sequence[TiledKernel]) -> GpuSpec:
    """``gpu`` with what its blocks pay for synchronising, in microseconds, where ``kernels`` run on it."""
    clocks = measured_clocks()
    post_us, wait_us = (clocks[of] / gpu.clock_mhz for of in ("post", "wait"))
    waves = sum(kernel.waves(gpu.sms) for kernel in kernels)
    first, later_us = len(kernels), READS_OF_ORDER * wait_us
    order_us = (first * gpu.tiles.order_us + (waves - first) * later_us) / waves
    tiles = msgspec.structs.replace(gpu.tiles, post_us=post_us, wait_us=wait_us, order_us=order_us)
    return msgspec.structs.replace(gpu, tiles=tiles)
