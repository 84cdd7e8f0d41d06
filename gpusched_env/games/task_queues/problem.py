"""A problem: an application on a graph, a queue of so many places, the machine, and which GPU owns which vertex.

A form says how its tasks are run: that is what a scheduler chooses.

The released program of Atos on several GPUs has four schemes, by number: 0, ranges of as many vertices; 1, ranges with
as many edges; 2, random; 3, METIS, which cuts few edges, and whose parts are then numbered one after another. The
papers use the last one for all graphs but twitter, which gets random parts. METIS is not part of this project. Lattices
here are numbered by rows, so that ranges are strips with short borders, as METIS would make them. Kronecker graphs are
numbered at random, and have no parts that could be cut off cheaply.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.task_queues.applications import BFS, COLOURING, PAGERANK, UNREACHED, Data
from gpusched_env.games.task_queues.hardware.links import NVLINK, LinkTimes, TaskLink
from gpusched_env.games.task_queues.hardware.machine import V100, StepPrices, TaskMachine
from gpusched_env.workload.graphs import Graph

Strategy = Literal["persistent", "discrete", "bulk-synchronous"]
Worker = Literal["block", "warp"]
STRATEGIES: Final = ("persistent", "discrete", "bulk-synchronous")
WORKERS: Final = ("block", "warp")
FETCHES: Final = (32, 64, 128, 256)
"""Tasks that a worker takes at once, in the papers."""
MOST_FETCH: Final = 256
MOST: Final = 2**31
"""Bound that all numbers of a form are below."""
STREAMS: Final = 32
"""Streams that kernels of a discrete form go round."""


@dataclass(frozen=True, slots=True)
class Form:
    """A way to run tasks."""

    strategy: Strategy = "persistent"
    """``persistent``: one kernel whose workers poll the queue. ``discrete``: the host copies the queue's end and
    launches a kernel for what is new. ``bulk-synchronous``: it waits for that kernel's end first."""
    worker: Worker = "block"
    fetch: int = 32
    """Tasks that a worker takes at once (1 to 256)."""
    polls: int | None = None
    """Fruitless polls after which a worker votes for the end; empty copies in a row after which the host of a discrete
    form ends. ``None``: as the problem says."""
    threshold: int = 0
    """Depth of a discrete search from which items wait in a second queue; 0: there is none."""
    delta: int = 1
    """How much the threshold grows when the queues change places."""
    grid: int | None = None
    """Workers of a persistent kernel. ``None``: as many as the GPU has room for."""

    def __post_init__(self) -> None:
        for name, known in (("strategy", STRATEGIES), ("worker", WORKERS)):
            word = getattr(self, name)
            if type(word) is not str or word not in known:
                raise InputError(f"form: {name} is {word!r}; {did_you_mean(str(word), known)}")
        for name in ("fetch", "polls", "threshold", "delta", "grid"):
            number = getattr(self, name)
            if (type(number) is not int or number >= MOST) and not (number is None and name in ("polls", "grid")):
                raise InputError(f"form: {name} is {number!r}, must be a whole number below 2^31")
        if not 1 <= self.fetch <= MOST_FETCH:
            raise InputError(f"form: fetch is {self.fetch}, must be 1 to {MOST_FETCH}")
        for name, least in (("polls", 1), ("threshold", 0), ("delta", 1), ("grid", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"form: {name} is {value}, must be at least {least}")
        if self.threshold and self.strategy != "discrete":
            raise InputError(f"form: threshold is {self.threshold}, but only discrete forms have a second queue")

    @property
    def name(self) -> str:
        """The form in a word: ``persistent-block-32``."""
        threshold = f"-t{self.threshold}+{self.delta}" if self.threshold else ""
        return f"{self.strategy}-{self.worker}-{self.fetch}{threshold}"


BEST_FORM_OF_APPLICATION: Final[dict[str, Form]] = {
    "bfs": Form("persistent", "block", 32),
    "pagerank": Form("persistent", "block", 32),
    "colouring": Form("persistent", "block", 256),
}
"""The form of each application that is quickest in the mean of 100 random problems if the host looks for the end."""
ENDING_FORM: Final = Form("bulk-synchronous")
"""The form in which the host looks for the end: before it launches, it copies how much there is to do."""


Partition = Literal["vertices", "edges", "random"]
PARTITIONS: Final = ("vertices", "edges", "random")
SEED: Final = 12321
"""The released program's seed for random parts."""


def owners(graph: Graph, gpus: int, scheme: Partition) -> NDArray[np.int64]:
    """(vertices,) the GPU of each vertex; every GPU has one at least, if there are enough."""
    vertices = len(graph.degree)
    even = np.arange(vertices) * gpus // vertices
    if scheme == "random":
        return np.random.default_rng(SEED).permutation(even)
    if scheme == "vertices":
        return even
    wanted = np.searchsorted(graph.first[:-1], np.arange(1, gpus) * len(graph.neighbour) / gpus)
    place = np.arange(1, gpus)
    # Distances of one vertex at least, forwards and then backwards.
    starts = np.maximum.accumulate(wanted - place) + place
    starts = np.minimum(np.maximum(starts, place), vertices - gpus + place)
    return np.searchsorted(starts, np.arange(vertices), side="right").astype(np.int64)


def cut_share(graph: Graph, home: NDArray[np.int64]) -> float:
    """Share (0 to 1) of edges between two GPUs."""
    return float((home[graph.origin] != home[graph.neighbour]).mean()) if len(graph.neighbour) else 0.0


def vertices_kept(graph: Graph, home: NDArray[np.int64], gpu: int) -> int:
    """Vertices of which a GPU keeps a value: its own, and their neighbours."""
    known = home == gpu
    known[graph.neighbour[known[graph.origin]]] = True
    return int(known.sum())


Application = Literal["bfs", "pagerank", "colouring"]
KINDS: Final[dict[str, int]] = {"bfs": BFS, "pagerank": PAGERANK, "colouring": COLOURING}
BLOCK_WARPS: Final[dict[str, int]] = {"bfs": 20, "pagerank": 18, "colouring": 16}
"""Warps of a persistent block worker: grids of the authors' logs have 640, 576 and 512 threads a block."""
SEVERAL_WARPS: Final = 16
"""Warps of a persistent block worker in the programs for several GPUs: 512 threads a block."""
PLACES: Final[dict[str, int]] = {"bfs": 2, "pagerank": 32, "colouring": 128}
"""Places of the queue a vertex, as in the papers (BFS: 1.5 to 2)."""
EMPTY_COPIES: Final = 10
"""Empty copies after which the host of a discrete form ends, as in the papers."""


class WorkerShape(NamedTuple):
    """Workers of a form on each GPU."""

    workers: int
    """Workers that there is room for."""
    grid: int
    """Workers that are launched; of kernels that end, those there is room for."""
    warps: int
    """Warps of a worker."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskProblem:
    """An application on a graph, and the machine that it runs on."""

    graph: Graph
    application: Application
    machine: TaskMachine = V100
    gpus: int = 1
    """GPUs of the machine's kind; a search or ranking runs on several. Each has its queues, and a part of the graph."""
    link: TaskLink = NVLINK
    """The link between any two of the GPUs."""
    partition: Partition = "vertices"
    """Which vertices a GPU owns (:mod:`gpusched_env.games.task_queues.problem`)."""
    source: int = 0
    """The first vertex of a search."""
    damping: float = 0.85
    epsilon: float = 0.01
    """The residual of a ranking below which values stay where they are."""
    capacity: int | None = None
    """Places of each queue, on each GPU; ``None``: :data:`PLACES` a vertex, and 64 more."""
    polls: int = 1000
    """Fruitless polls after which a worker of a persistent form votes, if the form does not say."""
    relaunch: bool = False
    """Whether the host looks if tasks are left when a form's workers have voted too early, and launches them again.
    Otherwise that is an error."""
    log: int = 0
    """Most events that are kept."""
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
        """Times of tasks on the way to another GPU."""
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
        return tuple(self.machine.ps_per_edge(vertices_kept(self.graph, self.home, gpu)) for gpu in range(self.gpus))

    @property
    def places(self) -> int:
        """Places of each queue."""
        if self.capacity is not None:
            return self.capacity
        return PLACES[self.application] * len(self.graph.degree) + 64

    def polls_of(self, form: Form) -> int:
        """Fruitless polls, or empty copies, that end a form."""
        if form.polls is not None:
            return form.polls
        return self.polls if form.strategy == "persistent" else EMPTY_COPIES

    def prices(self, form: Form) -> StepPrices:
        """What the workers of a form pay."""
        return self.machine.prices(form.worker)

    def shape(self, form: Form) -> WorkerShape:
        """The workers of a form."""
        machine, sms = self.machine, self.machine.gpu.sms
        if form.strategy == "persistent":
            blocks = form.worker == "block"
            workers = sms * (machine.persistent_blocks_per_sm if blocks else machine.persistent_warps_per_sm)
            block_warps = BLOCK_WARPS[self.application] if self.gpus == 1 else SEVERAL_WARPS
            return WorkerShape(workers, form.grid or workers, block_warps if blocks else 1)
        warps = machine.discrete_block_warps if form.worker == "block" else 1
        workers = max(1, sms * machine.discrete_warps_per_sm // warps)
        return WorkerShape(workers, workers, warps)

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
        """Number of tasks at the beginning, on all GPUs."""
        return 1 if self.kind == BFS else len(self.graph.degree)

    def initial(self) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """Tasks that are in each GPU's queue at the beginning."""
        tasks = np.array([self.source + 1]) if self.kind == BFS else np.arange(1, len(self.graph.degree) + 1)
        return [tasks[self.home[tasks - 1] == gpu] for gpu in range(self.gpus)]
