"""A GPU for queues of tasks: its room for workers, and what their steps cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Final

from gpusched_env.errors import InputError
from gpusched_env.games.task_queues.hardware.laws import missed
from gpusched_env.hardware.specs import GpuSpec, load_gpu

STATE_BYTES: Final = 4
"""Of a vertex's depth, colour or residual, and of a neighbour's index."""
SECTOR_BYTES: Final = 32
"""What DRAM moves for one scattered access."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMachine:
    """Times in picoseconds. What is of a worker differs between *blocks* and *warps*."""

    gpu: GpuSpec
    persistent_blocks_per_sm: int
    persistent_warps_per_sm: int
    """Workers of one warp that a persistent kernel has on an SM."""
    discrete_warps_per_sm: int
    discrete_block_warps: int
    atomic_ps: int
    """Between two atomic operations on one address."""
    grab_ps: int
    """The round trip of a reservation, as the worker sees it."""
    load_ps: int
    """A block's step before its first slot: tasks, where their edges are, prefix sums over these."""
    vertex_ps: int
    """A warp's vertex before its first slot."""
    slot_ps: int
    """A slot: 32 neighbours and what is kept of each."""
    push_ps: int
    """A block's push, from the reservation to the publication."""
    warp_push_ps: int
    write_ps: int
    """For each 32 tasks of a push: what is reserved first may be written last."""
    poll_ps: int
    """Between two looks of an idle block at the queue."""
    warp_poll_ps: int
    refresh_ps: int
    """A worker whose segment is not at its end reads the queue's end again."""
    host_launch_ps: int
    """Of the host, for a launch."""
    launch_ps: int
    """From there to the kernel's start."""
    copy_ps: int
    """A copy of the queue's end to the host."""
    sync_ps: int
    """The host notices that the GPU is done."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "gpu" and (type(value) is not int or value < 1):
                raise InputError(f"task machine: {field.name} is {value!r}, must be a whole number of at least 1")

    def ps_per_edge(self, vertices: int) -> float:
        """What an edge costs the memory of the GPU: a neighbour's index, and an access to its state, for which L2
        misses as often as the state of ``vertices`` does not fit."""
        share = missed(float(vertices * STATE_BYTES), float(self.gpu.l2_bytes or math.inf))
        return (STATE_BYTES + SECTOR_BYTES * share) / self.gpu.dram_bytes_per_us * 1e6


V100: Final = TaskMachine(
    gpu=load_gpu("v100-sxm"),
    persistent_blocks_per_sm=2,
    persistent_warps_per_sm=24,
    discrete_warps_per_sm=64,
    discrete_block_warps=8,
    atomic_ps=654,
    grab_ps=200_000,
    load_ps=520_000,
    vertex_ps=370_000,
    slot_ps=510_000,
    push_ps=1_000_000,
    warp_push_ps=900_000,
    write_ps=21_000,
    poll_ps=5_857_000,
    warp_poll_ps=980_000,
    refresh_ps=126_000,
    host_launch_ps=5_000_000,
    launch_ps=3_500_000,
    copy_ps=1_000_000,
    sync_ps=5_000_000,
)
"""The GPU of the Atos papers.

* Room: their logs have grids of 160 blocks of persistent block workers and 80 of 24 warp workers on 80 SMs, and blocks
  of 256 threads in discrete kernels, with which an SM is full at 8.
* L2 answers after 193 cycles, DRAM after 375 (Jia et al., *Dissecting the NVIDIA Volta GPU architecture via
  microbenchmarking*, 2018): 126 and 245 ns at 1,530 MHz.
* ``atomic``: one a cycle, an estimate. ``grab``: L2, and a barrier. ``load``: L2 for the tasks, DRAM for their rows,
  and 150 ns for the prefix sum, an estimate; ``vertex``: without the last. ``slot``: DRAM for neighbours and for their
  state, 32 lanes one after another.
* ``push``: four trips to L2 (three counters and the end), 400 ns for writing and fence (what a consumer on an H100
  wakes later than its producer posts, measured), and for a block 100 ns for a sum over its threads, an estimate.
  ``write``: 32 lanes one after another.
* ``poll``: one row. The authors chose 7,000 polls for a search of road_usa, which takes 41.0 ms, most of it with most
  workers idle: at most 5.857 us a poll. Their idle block walks over the flags of all blocks. A warp sleeps for 600 ns
  and makes three trips.
* ``host_launch``: as measured for a launch call on an H100. ``launch``, ``copy``, ``sync``: as in ``v100-sxm.yaml``.
"""
