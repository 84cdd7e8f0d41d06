"""A problem: an application on a graph, a queue of so many places, and the machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, NamedTuple

import numpy as np

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.task_queues.applications import BFS, COLOURING, PAGERANK, UNREACHED, Data
from gpusched_env.games.task_queues.form import Form
from gpusched_env.games.task_queues.hardware.links import NVLINK, LinkTimes, TaskLink
from gpusched_env.games.task_queues.hardware.machine import V100, TaskMachine
from gpusched_env.games.task_queues.partition import PARTITIONS, Partition, owners, touched
from gpusched_env.workload.graphs import Graph

Application = Literal["bfs", "pagerank", "colouring"]
KINDS: Final[dict[str, int]] = {"bfs": BFS, "pagerank": PAGERANK, "colouring": COLOURING}
BLOCK_WARPS: Final[dict[str, int]] = {"bfs": 20, "pagerank": 18, "colouring": 16}
"""Of a persistent block worker: grids of the authors' logs have 640, 576 and 512 threads a block."""
PLACES: Final[dict[str, int]] = {"bfs": 2, "pagerank": 32, "colouring": 128}
"""Places of the queue a vertex, as in the papers (BFS: 1.5 to 2)."""
EMPTY_COPIES: Final = 10
"""After which the host of a discrete form ends, as in the papers."""


class Shape(NamedTuple):
    """Workers of a form on each GPU."""

    workers: int
    """That there is room for."""
    grid: int
    """That are launched; of kernels that end, those there is room for."""
    warps: int
    """Of a worker."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskProblem:
    """What a device runs."""

    graph: Graph
    application: Application
    machine: TaskMachine = V100
    gpus: int = 1
    """Of the machine's kind; a search or a ranking runs on several. Each has its queues, and a part of the graph."""
    link: TaskLink = NVLINK
    """Between any two of them."""
    partition: Partition = "vertices"
    """Which vertices a GPU owns (:mod:`gpusched_env.games.task_queues.partition`)."""
    source: int = 0
    """Of a search."""
    damping: float = 0.85
    epsilon: float = 0.01
    """Of a ranking: residuals below stay where they are."""
    capacity: int | None = None
    """Places of each queue, on each GPU; ``None``: :data:`PLACES` a vertex, and 64 more."""
    polls: int = 1000
    """Fruitless polls after which a worker of a persistent form votes, if the form does not say."""
    relaunch: bool = False
    """Whether the host looks if tasks are left when a form's workers have voted too early, and launches them again.
    Otherwise that is an error."""
    log: int = 0
    """Events that are kept."""
    name: str = field(default="tasks")

    def __post_init__(self) -> None:
        vertices = len(self.graph.degree)
        if self.application not in KINDS:
            raise InputError(f"application is {self.application!r}; {did_you_mean(self.application, KINDS)}")
        if vertices < 1:
            raise InputError(f"{self.name}: a graph without vertices; it needs at least 1")
        if not 1 <= self.gpus <= vertices:
            raise InputError(f"{self.name}: gpus is {self.gpus}, must be 1 to {vertices}: each owns a vertex at least")
        if self.gpus > 1 and self.application == "colouring":
            raise InputError(f"{self.name}: gpus is {self.gpus}, but a colouring runs on 1; others: bfs, pagerank")
        if self.partition not in PARTITIONS:
            raise InputError(
                f"{self.name}: partition is {self.partition!r}; {did_you_mean(self.partition, PARTITIONS)}"
            )
        if not 0 <= self.source < vertices:
            raise InputError(f"{self.name}: source is {self.source}, but the graph has vertices 0 to {vertices - 1}")
        if self.places < vertices:
            raise InputError(f"{self.name}: capacity is {self.places}, must be at least the {vertices} vertices")
        if not 0.0 < self.damping < 1.0:
            raise InputError(f"{self.name}: damping is {self.damping}, must be between 0 and 1")
        if not self.epsilon > 0.0:
            raise InputError(f"{self.name}: epsilon is {self.epsilon}, must be more than 0")
        if self.polls < 1:
            raise InputError(f"{self.name}: polls is {self.polls}, must be at least 1")

    @property
    def kind(self) -> int:
        """Code of the application."""
        return KINDS[self.application]

    @property
    def link_times(self) -> LinkTimes:
        """Of tasks on the way to another GPU."""
        return self.link.times(answered=self.application == "bfs")

    @property
    def slot_ps(self) -> int:
        """What a slot of edges takes, in a program for so many GPUs."""
        return self.machine.slot_ps + (self.link.sort_ps if self.gpus > 1 else 0)

    @property
    def link_places(self) -> int:
        """Tasks that one GPU can have on the way to another: as in the papers, twice its share of the vertices, and
        512 more."""
        return 2 * (len(self.graph.degree) // self.gpus + 256)

    @cached_property
    def home(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The GPU of each vertex."""
        return owners(self.graph, self.gpus, self.partition)

    @cached_property
    def ps_per_edge(self) -> tuple[float, ...]:
        """What an edge costs the memory of each GPU."""
        if self.gpus == 1:
            return (self.machine.ps_per_edge(len(self.graph.degree)),)
        return tuple(self.machine.ps_per_edge(touched(self.graph, self.home, gpu)) for gpu in range(self.gpus))

    @property
    def places(self) -> int:
        """Of each queue."""
        if self.capacity is not None:
            return self.capacity
        return PLACES[self.application] * len(self.graph.degree) + 64

    def polls_of(self, form: Form) -> int:
        """Fruitless polls, or empty copies, that end a form."""
        if form.polls is not None:
            return form.polls
        return self.polls if form.strategy == "persistent" else EMPTY_COPIES

    def shape(self, form: Form) -> Shape:
        """The workers of a form."""
        machine, sms = self.machine, self.machine.gpu.sms
        if form.strategy == "persistent":
            blocks = form.worker == "block"
            workers = sms * (machine.persistent_blocks_per_sm if blocks else machine.persistent_warps_per_sm)
            return Shape(workers, form.grid or workers, BLOCK_WARPS[self.application] if blocks else 1)
        warps = machine.discrete_block_warps if form.worker == "block" else 1
        workers = max(1, sms * machine.discrete_warps_per_sm // warps)
        return Shape(workers, workers, warps)

    def data(self) -> Data:
        """The graph and the values before anything has run."""
        vertices, kind = len(self.graph.degree), self.kind
        level = np.full(vertices, -1 if kind == COLOURING else UNREACHED, np.int64)
        if kind == BFS:
            level[self.source] = 0
        ranked = vertices if kind == PAGERANK else 0
        coloured = vertices if kind == COLOURING else 0
        several = self.gpus > 1
        kept = np.full((self.gpus, vertices) if several else (0, 0), float(UNREACHED) if kind == BFS else 0.0)
        if kind == BFS:
            kept[:, self.source : self.source + 1] = 0.0
        return Data(
            first=self.graph.first,
            neighbour=self.graph.neighbour.astype(np.int32, copy=False),
            level=level,
            waiting=np.ones(coloured, np.int64),
            rank=np.zeros(ranked),
            residual=np.full(ranked, 1.0 - self.damping),
            used=np.zeros(int(self.graph.degree.max(initial=0)) + 3, np.int64),
            home=self.home if several else np.zeros(0, np.int64),
            kept=kept.ravel(),
        )

    @property
    def first_tasks(self) -> int:
        """How many there are at the beginning, on all GPUs."""
        return 1 if self.kind == BFS else len(self.graph.degree)

    def initial(self) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """Tasks that are in each GPU's queue at the beginning."""
        tasks = np.array([self.source + 1]) if self.kind == BFS else np.arange(1, len(self.graph.degree) + 1)
        return [tasks[self.home[tasks - 1] == gpu] for gpu in range(self.gpus)]
