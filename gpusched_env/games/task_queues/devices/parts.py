"""Parts of the reference device: a queue, a worker, a kernel, and how a step is dealt to warps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.task_queues.device import FOREVER
from gpusched_env.games.task_queues.hardware.machine import SLOT_EDGES, published, rounds_of, served, slots_of


@dataclass
class TaskQueue:
    """A queue and its counters, each of which takes one atomic operation at a time."""

    items: NDArray[np.int64]
    start: int = 0
    alloc: int = 0
    count: int = 0
    top: int = 0
    end: int = 0
    start_free_ps: int = 0
    alloc_free_ps: int = 0
    written_free_ps: int = 0

    def reserve(self, tasks: Sequence[int], now_ps: int, atomic_ps: int) -> tuple[int, int]:
        """Room for ``tasks``: the first place, and when the reservation has gone through.

        Raises:
            IndexError: there is no room.
        """
        first = self.alloc
        if first + len(tasks) > len(self.items):
            raise IndexError
        self.alloc += len(tasks)
        self.items[first : self.alloc] = tasks
        self.alloc_free_ps = served(self.alloc_free_ps, now_ps, atomic_ps)
        return first, self.alloc_free_ps

    def publish(self, first: int, count: int, now_ps: int, atomic_ps: int) -> int:
        """Entries are written; when the three operations that say so have gone through."""
        self.top = max(self.top, first + count)
        self.count += count
        self.end = published(self.end, self.count, self.top)
        self.written_free_ps = served(self.written_free_ps, now_ps, 3 * atomic_ps)
        return self.written_free_ps

    def append(self, tasks: Sequence[int]) -> None:
        """Put ``tasks`` at the back at once.

        Raises:
            IndexError: there is no room.
        """
        self.reserve(tasks, 0, 0)
        self.top = self.count = self.end = self.alloc


@dataclass
class TaskWorker:
    """A block or a warp."""

    number: int
    gpu: int = 0
    queue: int = 0
    """Number of its queue on its GPU: 0 or 1."""
    index: int = 0
    limit: int = 0
    """End of its segment, which goes from the next task up to there."""
    threshold: int = 0
    idle: bool = False
    fruitless: int = 0


@dataclass
class TaskKernel:
    """A kernel of a form with launches."""

    number: int
    queue: int
    """Number of its queue on its GPU: 0 or 1."""
    next: int
    limit: int
    """End of its tasks, which go from the first that no block has up to there."""
    threshold: int
    arrives_ps: int = FOREVER
    running: int = 0

    @property
    def over(self) -> bool:
        """Whether all its blocks have ended."""
        return self.next == self.limit and self.running == 0


@dataclass
class TaskHost:
    """What launches the kernels of a GPU, and its memory."""

    gpu: int
    queues: tuple[TaskQueue, TaskQueue]
    ps_per_edge: float
    memory_free_ps: int = 0
    read_ps: int = FOREVER
    """The time at which the host takes its next copy of the queue's end."""
    active: int = 0
    threshold: int = 0
    empty: int = 0
    """Copies in a row without news."""
    kernels: list[TaskKernel] = field(default_factory=list)
    arrived: int = 0
    head: int = 0
    """The first kernel with blocks that have no place."""
    ended: int = 0
    free: list[int] = field(default_factory=list)
    """Workers without a block; the last one is taken first."""

    def begin(self, threshold: int, workers: list[TaskWorker]) -> None:
        """Start another form."""
        self.active, self.threshold, self.empty = 0, threshold, 0
        self.kernels, self.arrived, self.head, self.ended = [], 0, 0, 0
        self.read_ps = FOREVER
        self.free = [worker.number for worker in workers if worker.gpu == self.gpu][::-1]

    @property
    def arrival_ps(self) -> int:
        """When the next kernel reaches the GPU."""
        return self.kernels[self.arrived].arrives_ps if self.arrived < len(self.kernels) else FOREVER

    @property
    def next_ps(self) -> int:
        """The time at which the host does something next."""
        return min(self.read_ps, self.arrival_ps)

    @property
    def rests(self) -> bool:
        """Whether the host waits for nothing."""
        return self.read_ps == FOREVER and self.ended == len(self.kernels)


@dataclass
class Round:
    """What the warps of a worker do at once."""

    edges: int = 0
    """Edges of the round, at least one a task that ends here."""
    pieces: list[tuple[int, int, int]] = field(default_factory=list)
    """Task of the step, and its edges from the first up to the last, of those that it has."""
    ending: list[int] = field(default_factory=list)
    """Tasks of the step whose last slot is here."""
    opens: bool = False
    """Something has to be loaded before: the whole step of a block, or the vertex of a warp."""


def deal_to_block(degrees: Sequence[int], warps: int) -> list[Round]:
    """A block's step: all edges in slots, contiguous ones to each warp."""
    firsts = np.concatenate([[0], np.cumsum(np.maximum(degrees, 1))]).tolist()
    total = firsts[-1]
    slots = slots_of(total)
    rounds = [Round() for _ in range(rounds_of(slots, warps))]
    rounds[0].opens = True
    for number, part in enumerate(rounds):
        for slot in range(number, slots, len(rounds)):
            low, high = slot * SLOT_EDGES, min((slot + 1) * SLOT_EDGES, total)
            part.edges += high - low
            for task, (first, after) in enumerate(itertools.pairwise(firsts)):
                if first < high and low < after:
                    part.pieces.append((task, max(low, first) - first, min(high, after, first + degrees[task]) - first))
    for task, after in enumerate(firsts[1:]):
        rounds[(after - 1) // SLOT_EDGES % len(rounds)].ending.append(task)
    return rounds


def deal_to_warp(degrees: Sequence[int]) -> Iterator[Round]:
    """A warp's step: vertex by vertex, slot by slot."""
    for task, degree in enumerate(degrees):
        slots = max(1, slots_of(degree))
        for slot in range(slots):
            low, high = slot * SLOT_EDGES, min((slot + 1) * SLOT_EDGES, degree)
            ending = [task] if slot == slots - 1 else []
            yield Round(max(1, high - low), [(task, low, high)], ending, slot == 0)
