"""Atos (Chen et al., ICPP 2022): work on graphs that schedules itself, from queues in device memory.

The paper's system runs a search, a ranking and a colouring on a V100, in three forms: persistent workers that poll a
queue, kernels that the host launches for what is new (discrete), and level by level. Here the same steps act on real
graphs at the simulated moment ([task queues](task-queues.md)): work done twice comes out of the order of events.

The graphs are not the paper's. They are drawn by class: a lattice with holes for road_usa, a configuration model for
hollywood-2009, a Kronecker graph for soc-LiveJournal1, sites and hubs for indochina-2004. Searches in the two forms
that are compared have graphs of their size (*whole*), and are judged on those; other runs have a thirty-second to a
quarter of it. The mesh of atmosmodd has its full size. *Overwork* is tasks over the vertices that have a result.
As the authors chose theirs by hand, the number of polls before a vote is the smallest with which the run is complete.

On several GPUs each owns a range of the vertices, and pushes tasks over NVLink, or over InfiniBand in batches (Chen et
al., *Scalable Irregular Parallelism with GPUs*, SC 2022).

Here a form stands for a whole run. What there is to gain by choosing it by the graph, and what a trained agent gains,
is on [a page of its own](task-queue-agent.md).

The BSP gains of the abstract (3.44 for searches, 2.1, 2.77) are against Gunrock, whose times are not public. Beside
them stand those against our own level-by-level form, which is another program: they are not scored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from gpusched_env.display.table import Table
from gpusched_env.errors import DeadlockError
from gpusched_env.experiments.lib.verdicts import Simulation, Target, as_row, table_of, targets_table
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.hardware.machine import V100
from gpusched_env.games.task_queues.papers.atos import several
from gpusched_env.games.task_queues.papers.atos.marks import MARKS
from gpusched_env.games.task_queues.papers.atos.several import (
    HOLLYWOOD,
    HUBS,
    MESH,
    RANKED,
    ROAD,
    SMALL_MESH,
    SMALL_ROAD,
    SMALL_SOCIAL,
    SOCIAL,
    WEB,
    WHOLE,
    OnGpus,
    SeveralGpus,
    graph,
    overwork_of,
    problem_on,
)
from gpusched_env.games.task_queues.problem import Application, Form, TaskProblem
from gpusched_env.games.task_queues.session import fault_of, run_tuned

STAND_FOR: Final = {ROAD: "road_usa", HOLLYWOOD: "hollywood-2009", SOCIAL: "soc-LiveJournal1", WEB: "indochina-2004"}
OTHERS: Final = {
    MESH: "atmosmodd",
    HUBS: "large_twitch",
    RANKED: "soc-LiveJournal1",
    **{WHOLE[name]: stands for name, stands in STAND_FOR.items()},
}
BLOCK, WARP = Form("persistent", "block", 32), Form("persistent", "warp", 32)
DISCRETE, SYNCHRONOUS = Form("discrete", "block", 32), Form("bulk-synchronous", "block", 32)
SEARCHES = (BLOCK, DISCRETE, replace(DISCRETE, threshold=4), SYNCHRONOUS)
COLOURINGS = (
    *(Form("persistent", "block", fetch) for fetch in (32, 128, 256)),
    WARP,
    *(Form("discrete", "block", fetch) for fetch in (32, 256)),
    SYNCHRONOUS,
)
PRICES: Final = {
    "atomic": ("atomic_ps",),
    "poll": ("poll_ps", "warp_poll_ps"),
    "slot": ("slot_ps",),
    "push": ("push_ps", "warp_push_ps"),
    "load": ("load_ps", "vertex_ps", "grab_ps"),
    "crowding": ("crowding",),
    "host": ("host_launch_ps", "launch_ps", "copy_ps", "sync_ps"),
}
RATIO = "searches, discrete over persistent time: {}"
DISCRETE_FETCH: Final = {ROAD: 64, WEB: 64}
"""Tasks a block of the authors' logged discrete searches, where it is not 32; persistent ones have 32 on all four."""
TIMES: Final[dict[str, tuple[float, float]]] = {
    ROAD: (40.9961, 173.534),
    HOLLYWOOD: (6.12901, 4.71076),
    SOCIAL: (12.1939, 10.8798),
    WEB: (10.6501, 7.52666),
    "twitter": (1353.15, 1257.85),
    "osm-eur": (215.914, 613.357),
}
"""Milliseconds of a persistent and a discrete search. The last two are not run: 2.0 and 0.35 billion edges."""
DISCRETE_OVERWORK: Final = {ROAD: 1.0005, HOLLYWOOD: 1.0703, SOCIAL: 1.0058, WEB: 1.0002}
MESH_NS: Final = {"blocks, fetch 32": 1.334, "blocks, fetch 128": 0.762, "blocks, fetch 256": 0.619, "warps": 1.603}
"""Nanoseconds a task of the mesh's colouring; a colouring is two tasks."""


def near(what: str, published: float, ours: float) -> Target:
    """A time that holds within a quarter of the published one."""
    return Target(what, 0.75 * published, 1.25 * published, ours, published=f"{published:.4g}")


def compared(name: str) -> tuple[Form, Form]:
    """A graph's persistent and discrete search, as in the authors' logs."""
    return BLOCK, replace(DISCRETE, fetch=DISCRETE_FETCH.get(name, 32))


@dataclass(frozen=True)
class FormRun:
    """An application in a form."""

    form: str
    ms: float
    """Simulated time; NaN: the queue is too small for its overwork."""
    tasks: int
    overwork: float
    kernels: int
    polls: int
    """Polls before a vote, or empty copies."""


@dataclass(frozen=True)
class Runs:
    """Runs of a graph, and its size."""

    vertices: int
    edges: int
    most_degree: int
    runs: tuple[FormRun, ...]

    def of(self, form: Form) -> FormRun:
        """The run of a form."""
        return next(run for run in self.runs if run.form == form.name)


@dataclass(frozen=True)
class OnGraph:
    """An application on a graph, in some forms."""

    graph: str
    application: Application
    forms: tuple[Form, ...]
    scaled: tuple[str, float] = ("", 1.0)
    """A price of :data:`PRICES`, times a factor."""

    def run(self, device: str) -> Runs:
        made = graph(self.graph)
        prices = {name: getattr(V100, name) for name in PRICES.get(self.scaled[0], ())}
        prices = {name: type(price)(price * self.scaled[1]) for name, price in prices.items()}
        problem = problem_on(self.graph, self.application, machine=replace(V100, **prices))
        runs = tuple(self._run(problem, form, device) for form in self.forms)
        return Runs(len(made.degree), len(made.neighbour), int(made.degree.max()), runs)

    def _run(self, problem: TaskProblem, form: Form, device: str) -> FormRun:
        on = make_task_device(device)
        try:
            tuned = run_tuned(problem, form, on)
        except DeadlockError:
            return FormRun(form.name, math.nan, 0, math.nan, 0, 0)
        wrong = fault_of(problem, on.data)
        if wrong:
            raise AssertionError(f"{self}: {wrong}")
        tasks, kernels = int(on.totals["tasks"]), int(on.totals["kernels"])
        overwork = overwork_of(problem, on.data, tasks)
        return FormRun(form.name, on.time_ps / 1e9, tasks, overwork, kernels, problem.polls_of(tuned))


SENSITIVE: Final[tuple[tuple[str, Application, tuple[Form, ...]], ...]] = (
    (SMALL_ROAD, "bfs", (BLOCK, DISCRETE)),
    (SMALL_SOCIAL, "bfs", (BLOCK, DISCRETE)),
    (SMALL_MESH, "colouring", (BLOCK, WARP)),
)


class Paper(Reproduction):
    """Ratios of one GPU, and of several."""

    name = "atos"
    title = "Atos"
    marks = MARKS

    @property
    def several(self) -> SeveralGpus:
        """What came out on several GPUs."""
        return SeveralGpus(self.of(OnGpus))

    @staticmethod
    def cells() -> Sequence[Simulation]:
        found = [OnGraph(name, "bfs", SEARCHES) for name in STAND_FOR]
        found += [OnGraph(whole, "bfs", compared(name)) for name, whole in WHOLE.items()]
        found += [OnGraph(name, "pagerank", (BLOCK, DISCRETE, SYNCHRONOUS)) for name in (ROAD, RANKED)]
        found += [OnGraph(name, "colouring", COLOURINGS) for name in (MESH, HUBS)]
        scaled = [("", 1.0), *((price, factor) for price in PRICES for factor in (0.5, 2.0))]
        found += [OnGraph(*small, price) for small in SENSITIVE for price in scaled]
        return [*found, *several.cells()]

    def _runs(self, name: str, application: str, price: tuple[str, float] = ("", 1.0)) -> Runs:
        found: Runs = next(
            runs
            for cell, runs in self.of(OnGraph).items()
            if (cell.graph, cell.application, cell.scaled) == (name, application, price)
        )
        return found

    def _ratio(self, name: str, price: tuple[str, float] = ("", 1.0)) -> float:
        """Discrete over persistent time of a graph's first two runs."""
        persistent, discrete = self._runs(name, "bfs", price).runs[:2]
        return discrete.ms / persistent.ms

    def _times(self) -> list[Target]:
        """Milliseconds and discrete overwork of searches, nanoseconds a task of colourings."""
        found = []
        for name, theirs in TIMES.items():
            runs = self._runs(WHOLE[name], "bfs").runs if name in WHOLE else ()
            ours = [run.ms for run in runs] or [math.nan, math.nan]
            found += [
                near(f"{form} search, ms: {name}", *both)
                for form, *both in zip(("persistent", "discrete"), theirs, ours, strict=True)
            ]
        for name, overwork in DISCRETE_OVERWORK.items():
            discrete = self._runs(WHOLE[name], "bfs").of(compared(name)[1])
            found.append(
                Target.of_figure(f"overwork of a discrete search: {name}", overwork, discrete.overwork, slack=0.15)
            )
        mesh = self._runs(MESH, "colouring")
        for (name, theirs_ns), form in zip(MESH_NS.items(), COLOURINGS[:4], strict=True):
            run = mesh.of(form)
            found.append(near(f"colouring the mesh, ns a task: {name}", theirs_ns, run.ms * 1e6 / run.tasks))
        return found

    def checks(self) -> list[Target]:
        """What the paper's figures say, as ranges."""
        published = {ROAD: "4.23", HOLLYWOOD: "0.77", SOCIAL: "0.89", WEB: "0.71"}
        overwork = {name: self._runs(whole, "bfs").of(BLOCK).overwork for name, whole in WHOLE.items()}
        theirs = {ROAD: "1.032", HOLLYWOOD: "1.152", SOCIAL: "1.056", WEB: "1.000"}
        found = [Target(RATIO.format(ROAD), 2.5, math.inf, self._ratio(WHOLE[ROAD]), published=published[ROAD])]
        found += [
            Target(RATIO.format(name), 0.6, 1.0, self._ratio(WHOLE[name]), published=published[name])
            for name in (HOLLYWOOD, SOCIAL, WEB)
        ]
        found += [
            Target(f"overwork of a persistent search: {name}", 1.0, 1.3, value, published=theirs[name])
            for name, value in overwork.items()
        ]
        order = overwork[HOLLYWOOD] - overwork[SOCIAL], overwork[SOCIAL] - overwork[ROAD]
        found += [
            Target("overwork: hollywood-like above social", 0.0, math.inf, order[0], published="0.10"),
            Target("overwork: social above road-like", 0.0, math.inf, order[1], published="0.02"),
        ]
        mesh_runs, hub_runs = self._runs(MESH, "colouring"), self._runs(HUBS, "colouring")
        found += [
            Target(
                "colouring the mesh, blocks, fetch 32: work",
                8.0,
                math.inf,
                mesh_runs.of(BLOCK).overwork,
                published="15.6",
            ),
            Target("blocks, fetch 128: work", 4.0, 6.5, mesh_runs.of(COLOURINGS[1]).overwork, published="5.26"),
            Target("warps: work", 1.0, 1.05, mesh_runs.of(WARP).overwork, published="1.00"),
            Target(
                "blocks, fetch 32, over warps: time", 8.0, math.inf, _times(mesh_runs, BLOCK, WARP), published="13.0"
            ),
            Target("hubs, warps over blocks: time", 3.0, math.inf, _times(hub_runs, WARP, BLOCK), published="4.71"),
        ]
        return found + self._times() + self.several.checks()

    def summary(self) -> str:
        road, hollywood, social = (self._ratio(WHOLE[name]) for name in (ROAD, HOLLYWOOD, SOCIAL))
        return (
            f"{self.tally()}; discrete over persistent "
            f"search: road {road:.2f} (4.23), hollywood {hollywood:.2f} (0.77), social {social:.2f} (0.89)"
        )

    def outcome(self) -> str:
        return (
            "Why: what a block's push waits is drawn, so with many pushing the queue's end stands still until few do, "
            "and then jumps. That is a barrier of sorts, and much less is done twice than if pushes came through in "
            "their order. What is left on the social and the hollywood-like graph is done at the beginning: a few "
            "vertices with many neighbours are under way in one block, and others go on from what they have found. "
            "In the released graphs levels grow more slowly.\n\n"
            "The social-like search is too quick in both forms. The published one looks at 6.3 edges a nanosecond, "
            "hollywood's at 27 (discrete, edges as logged): depths of soc-LiveJournal1 do not fit into L2, and "
            "scattered atomic operations that miss it have no price of their own here, but for 32 bytes. Twitter and "
            "osm-eur are not run.\n\n"
            "A whole road's search needs three times the 7,000 polls that the authors give theirs: idle blocks look "
            "too often here, or are idle too long. Much is still done twice there by persistent workers, for which no "
            "cause has been found.\n\n"
            "What a block waits besides is in proportion to its warps that have a slot. With the same factor for all "
            "steps the mesh's tasks take 1.63, 0.71 and 0.52 ns, near those published, but the road's persistent "
            "search 99 ms and the web's 14.7: no one factor serves both, and a colouring has barriers that a search "
            "has not. Neighbours of the mesh are coloured at one time less often than published, as blocks here drift "
            "apart.\n\n"
            "Several GPUs: a road's search waits for one vertex after another, and more GPUs bring it trips over the "
            "link and work done twice, no speed. The program for several GPUs takes 128 tasks at a time there, that "
            "for one 32; here that costs more than on the papers' machine. On the social-like "
            "graph half to three quarters of the edges are cut: METIS is not part of this project, and a Kronecker "
            "graph has no communities to find. Over NVLink a searching block waits four trips in each round with finds "
            "for others, where the released program fences once a step; so searches with many cut edges are slower "
            "than over InfiniBand, where none waits, and their overwork hardly grows. The published times of both "
            "links are alike. nan: more was on the way than the link has places for."
        )

    def tables(self) -> list[Table]:
        found = [targets_table("What is judged", self.checks())]
        for title, application in (("Searches", "bfs"), ("Rankings", "pagerank"), ("Colourings", "colouring")):
            rows = [
                {"graph": cell.graph, **asdict(run)}
                for cell, runs in self.of(OnGraph).items()
                if (cell.application, cell.scaled[0]) == (application, "") and not cell.graph.startswith("small")
                for run in runs.runs
            ]
            columns = "graph = {graph} | form = {form} | ms = {ms:.3f} | tasks = {tasks:,} | overwork = {overwork:.3f}"
            found.append(table_of(title, rows, columns + " | kernels = {kernels:,} | polls = {polls:,}"))
        found += [self._graphs(), self._gains(), self._sensitivity(), _constants()]
        return found + self.several.tables()

    def _graphs(self) -> Table:
        named = {cell.graph: runs for cell, runs in self.of(OnGraph).items()}
        rows = [
            {
                "graph": name,
                "stands": {**STAND_FOR, **OTHERS}[name],
                **asdict(runs),
            }
            for name, runs in named.items()
            if not name.startswith("small")
        ]
        columns = "graph = {graph} | stands for = {stands} | vertices = {vertices:,} | edges = {edges:,}"
        return table_of("Graphs", rows, columns + " | largest degree = {most_degree:,}")

    def _gains(self) -> Table:
        published = {"bfs": 3.44, "pagerank": 2.1, "colouring": 2.77}
        rows = []
        for application, theirs in published.items():
            gains = [
                runs.of(SYNCHRONOUS).ms
                / min(run.ms for run in runs.runs if run.form != SYNCHRONOUS.name and run.ms == run.ms)
                for cell, runs in self.of(OnGraph).items()
                if (cell.application, cell.scaled[0]) == (application, "") and SYNCHRONOUS in cell.forms
            ]
            ours = math.exp(sum(map(math.log, gains)) / len(gains))
            rows.append({"application": application, "theirs": theirs, "ours": ours})
        columns = "application = {application} | against Gunrock = {theirs:g} | against our own = {ours:.2f}"
        return table_of("Gains over level by level, geometric means (not scored)", rows, columns)

    def _sensitivity(self) -> Table:
        rows = []
        for price in [("", 1.0), *((price, factor) for price in PRICES for factor in (0.5, 2.0))]:
            coloured = self._runs("small mesh", "colouring", price)
            rows.append(
                {
                    "price": f"{price[0]} x {price[1]:g}" if price[0] else "as it is",
                    "road": self._ratio("small road", price),
                    "social": self._ratio("small social", price),
                    "over": self._runs("small social", "bfs", price).of(BLOCK).overwork,
                    "work": coloured.of(BLOCK).overwork,
                }
            )
        columns = "price = {price} | discrete / persistent, road = {road:.2f} | social = {social:.2f}"
        columns += " | overwork, social = {over:.3f} | colouring, blocks: work = {work:.2f}"
        return table_of("What hangs on which price, on small graphs", rows, columns)

    def data(self) -> dict[str, Any]:
        runs = [{**asdict(cell), **asdict(found)} for cell, found in self.of(OnGraph).items()]
        checks = [as_row(check) for check in self.checks()]
        return {"checks": checks, "runs": runs, "several_gpus": self.several.data()}


def _times(runs: Runs, above: Form, below: Form) -> float:
    return runs.of(above).ms / runs.of(below).ms


def _constants() -> Table:
    sources = {
        "atomic_ps": "one a cycle, an estimate",
        "grab_ps": "L2 latency and a barrier",
        "load_ps": "L2, DRAM, and an estimate of a prefix sum",
        "vertex_ps": "L2 and DRAM",
        "slot_ps": "DRAM twice, 32 lanes",
        "push_ps": "four trips to L2, a fence, and an estimate of a sum",
        "warp_push_ps": "four trips to L2, and a fence",
        "write_ps": "32 lanes one after another, an estimate",
        "poll_ps": "three trips to L2, and an estimate of a least of flags",
        "warp_poll_ps": "its sleep of 600 ns, three trips to L2",
        "refresh_ps": "L2 latency",
        "host_launch_ps": "measured on an H100",
        "launch_ps": "the V100's data",
        "copy_ps": "the V100's data",
        "sync_ps": "the V100's data, a guess",
    }
    rows = [
        {"what": name.removesuffix("_ps"), "ns": getattr(V100, name) / 1e3, "source": said}
        for name, said in sources.items()
    ]
    columns = "constant = {what} | ns = {ns:,.4g} | source = {source}"
    return table_of(
        f"Time constants of lone warps; rounds and pushes of full blocks times {V100.crowding:g} in the mean",
        rows,
        columns,
    )
