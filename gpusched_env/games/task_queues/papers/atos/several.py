"""Graphs of the reproduction of Atos, by class; and Atos on several GPUs (SC 2022): cells, checks and tables."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Final

from gpusched_env.display.table import Table
from gpusched_env.errors import DeadlockError
from gpusched_env.experiments.lib.verdicts import Target, table_of
from gpusched_env.games.task_queues.applications import UNREACHED, Data
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.hardware.links import INFINIBAND, NVLINK, TaskLink
from gpusched_env.games.task_queues.problem import Application, Form, TaskProblem, cut_share
from gpusched_env.games.task_queues.session import fault_of, run_tuned
from gpusched_env.games.task_queues.suite import hubs, mesh, road, web
from gpusched_env.workload.graphs import Graph, citation, kronecker

ROAD, HOLLYWOOD, SOCIAL, WEB, MESH, HUBS = "road", "hollywood", "social", "web", "mesh", "hubs"
RANKED: Final = "social, an eighth"
WHOLE: Final = {name: f"{name}, whole" for name in (ROAD, HOLLYWOOD, SOCIAL, WEB)}
"""Names of graphs at the sizes of the papers'."""
SMALL_ROAD, SMALL_SOCIAL, SMALL_MESH = "small road", "small social", "small mesh"
GRAPHS: Final[dict[str, Callable[[], Graph]]] = {
    ROAD: lambda: road(1_496_709, seed=0),
    HOLLYWOOD: lambda: citation(284_976, 60.0, 1.1, seed=0),
    SOCIAL: lambda: kronecker(20, 16, seed=0),
    RANKED: lambda: kronecker(17, 16, seed=0),
    WEB: lambda: web(231_714, seed=0),
    MESH: lambda: mesh(108),
    HUBS: lambda: hubs(42_028, 60.0, seed=0),
    WHOLE[ROAD]: lambda: road(25_000_000, seed=0),
    WHOLE[HOLLYWOOD]: lambda: citation(1_139_905, 100.0, 1.1, seed=0),
    WHOLE[SOCIAL]: lambda: kronecker(22, 8, seed=0),
    WHOLE[WEB]: lambda: web(7_414_866, seed=0, directed=True),
    SMALL_ROAD: lambda: road(93_544, seed=0),
    SMALL_SOCIAL: lambda: kronecker(14, 16, seed=0),
    SMALL_MESH: lambda: mesh(40),
}
PLACES: Final[dict[Application, int]] = {"bfs": 16, "pagerank": 64, "colouring": 128}
"""Places of the queue a vertex: more than the papers', so that overwork shows and is no error."""


@functools.lru_cache(1)
def graph(name: str) -> Graph:
    """The graph of a name; the last one is kept."""
    return GRAPHS[name]()


def problem_on(name: str, application: Application, **options: Any) -> TaskProblem:
    """An application on a graph, from its first vertex with a neighbour; on a road from the middle of the row three
    quarters down, so that a search of the whole takes about as many levels as that of road_usa, 6,304 (Beamer et al.,
    *The GAP benchmark suite*, 2015)."""
    made = graph(name)
    vertices = len(made.degree)
    source = round(0.75 * vertices + 0.5 * vertices**0.5) if "road" in name else int((made.degree > 0).argmax())
    return TaskProblem(
        graph=made,
        application=application,
        capacity=PLACES[application] * vertices + 1000,
        source=source,
        name=name,
        **options,
    )


def overwork_of(problem: TaskProblem, data: Data, tasks: int) -> float:
    """Tasks over the vertices that have a result; a colouring takes two: the colour, and its check."""
    results = {"colouring": 2 * len(data.level), "pagerank": len(data.level)}
    return tasks / (results.get(problem.application) or int((data.level < UNREACHED).sum()))


FETCHES: Final[dict[tuple[str, str], tuple[int, int]]] = {
    ("bfs", ROAD): (32, 128),
    ("bfs", RANKED): (32, 64),
    ("bfs", WEB): (32, 64),
    ("pagerank", ROAD): (256, 256),
    ("pagerank", RANKED): (32, 64),
}
"""Tasks a block in the authors' logs, of the program for one GPU and of that for several; of other graphs 32."""
GPUS: Final = (1, 2, 3, 4)
SEARCHED: Final = (ROAD, RANKED, WEB)
PUBLISHED: Final[dict[tuple[Application, str], tuple[float, ...]]] = {
    ("bfs", ROAD): (40.9961, 57.53, 63.41, 62.05),
    ("bfs", RANKED): (12.1939, 8.64, 6.87, 6.33),
    ("bfs", WEB): (10.6501, 9.44, 8.43, 6.94),
    ("pagerank", ROAD): (126.453, 69.64, 47.35, 36.18),
    ("pagerank", RANKED): (119.816, 58.45, 40.07, 32.47),
}
"""Milliseconds on 1 to 4 GPUs over NVLink, persistent."""
PUBLISHED_OVERWORK: Final = {ROAD: "1.032, 1.151, 1.162, 1.170", RANKED: "1.056, 1.265, 1.341, 1.427"}
CHANGES: Final[dict[str, tuple[TaskLink, dict[str, float]]]] = {
    "NVLink as it is": (NVLINK, {}),
    "NVLink, latency x 0.5": (NVLINK, {"latency_ps": 0.5}),
    "NVLink, latency x 2": (NVLINK, {"latency_ps": 2.0}),
    "NVLink, bandwidth x 0.5": (NVLINK, {"bytes_per_us": 0.5}),
    "NVLink, bandwidth x 2": (NVLINK, {"bytes_per_us": 2.0}),
    "NVLink, sorting x 0": (NVLINK, {"sort_ps": 0.0}),
    "NVLink, sorting x 4": (NVLINK, {"sort_ps": 4.0}),
    "InfiniBand as it is": (INFINIBAND, {}),
    "InfiniBand, latency x 2": (INFINIBAND, {"latency_ps": 2.0}),
    "InfiniBand, bandwidth x 0.5": (INFINIBAND, {"bytes_per_us": 0.5}),
    "InfiniBand, batch x 0.25": (INFINIBAND, {"batch": 0.25}),
    "InfiniBand, batch x 64": (INFINIBAND, {"batch": 64.0}),
    "InfiniBand, wait x 0.25": (INFINIBAND, {"wait": 0.25}),
    "InfiniBand, wait x 16": (INFINIBAND, {"wait": 16.0}),
}


def changed(name: str) -> TaskLink:
    """A link of :data:`CHANGES`."""
    link, factors = CHANGES[name]
    kinds = {field: type(getattr(link, field)) for field in factors}
    return replace(link, **{field: kinds[field](getattr(link, field) * factor) for field, factor in factors.items()})


@dataclass(frozen=True)
class GpusRun:
    """An application on several GPUs."""

    ms: float
    """Simulated time; NaN: more is on the way than the link has places for."""
    tasks: int
    overwork: float
    sent: int
    """Number of tasks sent to other GPUs."""
    sendings: int
    cut: float
    """Share of edges between two GPUs."""
    polls: int
    """Polls before a vote."""


@dataclass(frozen=True)
class OnGpus:
    """A persistent application on a graph and so many GPUs."""

    graph: str
    application: Application
    gpus: int
    link: str = "NVLink as it is"
    """Name of the link, one of :data:`CHANGES`."""

    def run(self, device: str) -> GpusRun:
        problem = problem_on(self.graph, self.application, gpus=self.gpus, link=changed(self.link))
        fetch = FETCHES.get((self.application, self.graph), (32, 32))[self.gpus > 1]
        on = make_task_device(device)
        cut = cut_share(problem.graph, problem.home)
        try:
            tuned = run_tuned(problem, Form("persistent", "block", fetch), on)
        except DeadlockError:
            return GpusRun(math.nan, 0, math.nan, 0, 0, cut, 0)
        wrong = fault_of(problem, on.data)
        if wrong:
            raise AssertionError(f"{self}: {wrong}")
        tasks = int(on.totals["tasks"])
        return GpusRun(
            ms=on.time_ps / 1e9,
            tasks=tasks,
            overwork=overwork_of(problem, on.data, tasks),
            sent=int(on.totals["sent"]),
            sendings=int(on.totals["sendings"]),
            cut=cut,
            polls=problem.polls_of(tuned),
        )


def cells() -> Sequence[OnGpus]:
    """Everything that is simulated."""
    found = [OnGpus(graph, application, gpus) for application, graph in PUBLISHED for gpus in GPUS]
    found += [
        OnGpus(graph, application, gpus, "InfiniBand as it is") for application, graph in PUBLISHED for gpus in (2, 4)
    ]
    for application, graph in (("bfs", SMALL_ROAD), ("pagerank", SMALL_SOCIAL)):
        found.append(OnGpus(graph, application, 1))  # type: ignore[arg-type]
        found += [OnGpus(graph, application, 4, link) for link in CHANGES]  # type: ignore[arg-type]
    return found


class SeveralGpus:
    """What runs on several GPUs came to."""

    def __init__(self, runs: Mapping[OnGpus, GpusRun]) -> None:
        self.runs = dict(runs)

    def _on(self, application: Application, graph: str) -> list[GpusRun]:
        return [self.runs[OnGpus(graph, application, gpus)] for gpus in GPUS]

    def checks(self) -> list[Target]:
        """What the paper's figures say, as ranges."""
        road = self._on("bfs", ROAD)
        theirs = PUBLISHED["bfs", ROAD]
        found = [
            Target(
                f"search of a road on {gpus} GPUs over 1: time",
                1.3,
                1.7,
                road[gpus - 1].ms / road[0].ms,
                published=f"{theirs[gpus - 1] / theirs[0]:.2f}",
            )
            for gpus in GPUS[1:]
        ]
        for graph in (ROAD, RANKED):
            one, *_, four = self._on("pagerank", graph)
            first, *_, last = PUBLISHED["pagerank", graph]
            what, said = f"ranking on 1 GPU over 4: time, {graph}", f"{first / last:.2f}"
            found.append(Target(what, 2.5, 4.5, one.ms / four.ms, published=said))
        for graph, said in PUBLISHED_OVERWORK.items():
            least = min(after.overwork - before.overwork for before, after in pairwise(self._on("bfs", graph)))
            what = f"overwork of a search grows with each GPU: {graph}"
            found.append(Target(what, 0.0, math.inf, least, published=said))
        return found

    def tables(self) -> list[Table]:
        """Times and work by graph, GPUs and link; what hangs on the link; its constants."""
        return [self._runs(), self._sensitivity(), _constants()]

    def _runs(self) -> Table:
        rows = []
        for cell, run in self.runs.items():
            theirs = PUBLISHED.get((cell.application, cell.graph))
            if theirs is None:
                continue
            one = self.runs[replace(cell, gpus=1, link="NVLink as it is")]
            known = f"{theirs[0] / theirs[cell.gpus - 1]:.2f}" if cell.link.startswith("NVLink") else "-"
            own = {**asdict(cell), **asdict(run), "gain": one.ms / run.ms, "theirs": known}
            rows.append({**own, "link": cell.link.split()[0]})
        columns = "graph = {graph} | application = {application} | GPUs = {gpus} | link = {link} | ms = {ms:.3f}"
        columns += " | times as quick as 1 = {gain:.2f} | measured = {theirs} | overwork = {overwork:.3f}"
        columns += " | edges cut = {cut:.1%} | tasks sent = {sent:,} | sendings = {sendings:,} | polls = {polls:,}"
        return table_of("Several GPUs", rows, columns)

    def _sensitivity(self) -> Table:
        one: dict[str, GpusRun] = {
            graph: self.runs[OnGpus(graph, application, 1)]  # type: ignore[arg-type]
            for graph, application in ((SMALL_ROAD, "bfs"), (SMALL_SOCIAL, "pagerank"))
        }
        rows = []
        for link in CHANGES:
            search = self.runs[OnGpus(SMALL_ROAD, "bfs", 4, link)]
            ranking = self.runs[OnGpus(SMALL_SOCIAL, "pagerank", 4, link)]
            rows.append(
                {
                    "link": link,
                    "road": search.ms / one[SMALL_ROAD].ms,
                    "over": search.overwork,
                    "social": one[SMALL_SOCIAL].ms / ranking.ms,
                    "sendings": ranking.sendings,
                }
            )
        columns = "link = {link} | search of a road, 4 GPUs over 1: time = {road:.3f} | its overwork = {over:.3f}"
        columns += " | ranking, social, 1 GPU over 4: time = {social:.2f} | its sendings = {sendings:,}"
        return table_of("What hangs on the link, on small graphs", rows, columns)

    def data(self) -> list[dict[str, Any]]:
        """The runs as rows."""
        return [{**asdict(cell), **asdict(run)} for cell, run in self.runs.items()]


def _constants() -> Table:
    sources = (
        ("NVLink: latency, ns a trip", NVLINK.latency_ps / 1e3, "an estimate"),
        ("NVLink: bandwidth, GB/s a direction", NVLINK.bytes_per_us / 1e3, "V100 data sheet, one NVLink 2.0 a pair"),
        ("NVLink: bytes an operation", NVLINK.operation_bytes, "a header and a payload of 16 each"),
        ("both: sorting, ns a round", NVLINK.sort_ps / 1e3, "three barriers, an estimate"),
        ("InfiniBand: latency, ns", INFINIBAND.latency_ps / 1e3, "PCIe twice, 1 us each, and 1 us, an estimate"),
        ("InfiniBand: bandwidth, GB/s", INFINIBAND.bytes_per_us / 1e3, "EDR, 100 Gbit/s"),
        ("InfiniBand: bytes a task", INFINIBAND.operation_bytes, "the released program: a vertex and a value"),
        ("InfiniBand: batch, tasks", INFINIBAND.batch, "the released program (INTERBATCHSIZE)"),
        ("InfiniBand: wait, looks", INFINIBAND.wait, "the released program (WAITTIMES)"),
        ("InfiniBand: between looks, ns", INFINIBAND.look_ps / 1e3, "four trips to L2"),
    )
    rows = [{"what": what, "value": value, "source": source} for what, value, source in sources]
    return table_of("Constants of the links", rows, "constant = {what} | value = {value:,.4g} | source = {source}")
