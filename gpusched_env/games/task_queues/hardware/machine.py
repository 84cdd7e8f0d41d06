"""A GPU for queues of tasks: laws of the queues and of the workers that take from them, its room for workers, and what
their steps cost.

A queue is a linear array with counters (Atos, ICPP 2022): ``start`` (up to where tasks are taken), ``alloc`` (up to
where room is reserved), ``count`` and ``top`` (how many entries are written, and the highest one that is), and ``end``
(up to where every entry is written). Workers read ahead: they take indices that nobody has written yet.

Devices: :mod:`gpusched_env.games.task_queues.devices`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Final, NamedTuple

from gpusched_env.compiling import law
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec, load_gpu

SLOT_EDGES: Final = 32
"""A slot: a warp looks at so many edges at once, one a lane."""


@law
def served(free_ps: int, now_ps: int, work_ps: int) -> int:
    """When something that takes one after another is done with what comes now (ps).

    Atomic operations on one address go one after another, and so do bytes through the memory.

    Args:
        free_ps: when it is done with what came before.
        now_ps: the present.
        work_ps: how long it takes for this.
    """
    return max(free_ps, now_ps) + work_ps


@law
def moved_ps(edges: int, ps_per_edge: float) -> int:
    """How long the memory of the GPU takes for the bytes of ``edges`` edges, to the nearest picosecond."""
    return math.floor(edges * ps_per_edge + 0.5)


@law
def missed(state_bytes: float, l2_bytes: float) -> float:
    """Share (0 to 1) of scattered accesses to ``state_bytes`` of data that L2 does not have."""
    return max(0.0, 1.0 - l2_bytes / state_bytes)


@law
def readable(index: int, limit: int, end: int) -> int:
    """Written tasks of the segment from ``index`` up to ``limit``: not those at ``end`` and above."""
    return max(0, min(limit, end) - index)


@law
def published(end: int, count: int, top: int) -> int:
    """The new ``end``: everything is readable if all entries below the highest written one are written."""
    return max(end, top) if count == top else end


@law
def slots_of(edges: int) -> int:
    """Slots that hold ``edges`` edges."""
    return (edges + SLOT_EDGES - 1) // SLOT_EDGES


@law
def rounds_of(slots: int, warps: int) -> int:
    """Slots of each of a worker's ``warps``, which get contiguous ones; at least 1."""
    return max(1, (slots + warps - 1) // warps)


@law
def edges_in_round(edges: int, rounds: int, number: int) -> int:
    """How many of a step's ``edges`` its warps look at in round ``number`` of ``rounds``: slots ``number``,
    ``number + rounds``, and so on; only the last slot of all may be short."""
    slots = (edges + SLOT_EDGES - 1) // SLOT_EDGES
    own = (slots - number + rounds - 1) // rounds
    short = slots * SLOT_EDGES - edges
    return own * SLOT_EDGES - (short if (slots - 1) % rounds == number else 0)


@law
def polled_at(since_ps: int, poll_ps: int, now_ps: int) -> int:
    """The first poll at ``now_ps`` or later of a worker that polls every ``poll_ps`` and did at ``since_ps``."""
    return since_ps + max(1, (now_ps - since_ps + poll_ps - 1) // poll_ps) * poll_ps


@law
def crowded(price_ps: int, crowding: float, edges: int, warps: int, worker: int, now_ps: int) -> int:
    """How long a round or push takes of which a lone warp's time is known: what is waited besides is drawn evenly.

    A worker waits for the slowest of its warps that have a slot, the longer the more these are.

    Args:
        price_ps: the time of a lone warp.
        crowding: the mean time over that, at least 1, if all warps have a slot.
        edges: of the round.
        warps: of the worker.
        worker: number of the worker.
        now_ps: the present; it and the worker's number decide what is drawn.
    """
    drawn = (now_ps % 2_147_483_647 + 7919 * worker + 1) * 48_271 % 2_147_483_647 * 48_271 % 2_147_483_647
    mean = (crowding - 1.0) * ((edges + SLOT_EDGES - 1) // SLOT_EDGES) / warps
    return price_ps + math.floor(price_ps * mean * drawn / 1_073_741_823.5)


STATE_BYTES: Final = 4
"""Bytes of a vertex's depth, colour or residual, and of a neighbour's index."""
SECTOR_BYTES: Final = 32
"""Bytes that DRAM moves for one scattered access."""


class StepPrices(NamedTuple):
    """What a kind of worker pays."""

    opening_ps: int
    """Before the first slot of a step, or of a warp's vertex."""
    push_ps: int
    poll_ps: int
    crowding: float
    """The mean time of a round or push over that of a lone warp (:func:`crowded`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMachine:
    """Times in picoseconds, of rounds and pushes those of lone warps. What is of a worker differs between *blocks* and
    *warps*."""

    gpu: GpuSpec
    persistent_blocks_per_sm: int
    persistent_warps_per_sm: int
    """Workers of one warp that a persistent kernel has on an SM."""
    discrete_warps_per_sm: int
    discrete_block_warps: int
    atomic_ps: int
    """Time between two atomic operations on one address."""
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
    """Time for each 32 tasks of a push: what is reserved first may be written last."""
    poll_ps: int
    """Time between two looks of an idle block at the queue."""
    warp_poll_ps: int
    refresh_ps: int
    """A worker whose segment is not at its end reads the queue's end again."""
    crowding: float = 1.0
    """What a block's round or push takes in the mean, over that of a lone warp, if all of its warps have a slot:
    barrier after barrier it waits for the slowest of them."""
    host_launch_ps: int
    """Time of the host for a launch."""
    launch_ps: int
    """Time from the launch to the kernel's start."""
    copy_ps: int
    """A copy of the queue's end to the host."""
    sync_ps: int
    """The host notices that the GPU is done."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("gpu", "crowding") and (type(value) is not int or value < 1):
                raise InputError(f"task machine: {field.name} is {value!r}, must be a whole number of at least 1")
        if not 1.0 <= self.crowding < math.inf:
            raise InputError(f"task machine: crowding is {self.crowding}, must be at least 1")

    @property
    def repair_ps(self) -> int:
        """A kernel of one warp that a host of a discrete form launches from half of its empty copies on."""
        return self.host_launch_ps + self.launch_ps

    def prices(self, worker: str) -> StepPrices:
        """Of a ``block`` or a ``warp``."""
        if worker == "warp":
            return StepPrices(self.vertex_ps, self.warp_push_ps, self.warp_poll_ps, 1.0)
        return StepPrices(self.load_ps, self.push_ps, self.poll_ps, self.crowding)

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
    discrete_block_warps=16,
    atomic_ps=654,
    grab_ps=200_000,
    load_ps=520_000,
    vertex_ps=370_000,
    slot_ps=510_000,
    push_ps=1_000_000,
    warp_push_ps=900_000,
    write_ps=21_000,
    poll_ps=528_000,
    warp_poll_ps=980_000,
    refresh_ps=126_000,
    crowding=3.65,
    host_launch_ps=5_000_000,
    launch_ps=3_500_000,
    copy_ps=1_000_000,
    sync_ps=5_000_000,
)
"""The GPU of the Atos papers.

* Room: their logs have grids of 160 blocks of persistent block workers and 80 of 24 warp workers on 80 SMs, and blocks
  of 512 threads in discrete kernels, with which an SM is full at 4.
* L2 answers after 193 cycles, DRAM after 375 (Jia et al., *Dissecting the NVIDIA Volta GPU architecture via
  microbenchmarking*, 2018): 126 and 245 ns at 1,530 MHz.
* ``atomic``: one a cycle, an estimate. ``grab``: L2, and a barrier. ``load``: L2 for the tasks, DRAM for their rows,
  and 150 ns for the prefix sum, an estimate; ``vertex``: without the last. ``slot``: DRAM for neighbours and for their
  state, 32 lanes one after another.
* ``push``: four trips to L2 (three counters and the end), 400 ns for writing and fence (what a consumer on an H100
  wakes later than its producer posts, measured), and for a block 100 ns for a sum over its threads, an estimate.
  ``write``: 32 lanes one after another.
* ``poll``: three trips, to the end, the votes and the flags of all blocks, and 150 ns for the least of these, as for
  the prefix sum. A warp sleeps for 600 ns and makes three trips.
* ``crowding``: fitted, so that the persistent search of hollywood-2009 takes 6.13 ms. The released program has four
  barriers a slot and six before the first, at which 16 to 20 warps meet; those without a slot are there at once.
* ``host_launch``: as measured for a launch call on an H100. ``launch``, ``copy``, ``sync``: as in ``v100-sxm.yaml``.
"""
