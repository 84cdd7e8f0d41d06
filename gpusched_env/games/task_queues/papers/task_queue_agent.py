"""The form in which tasks run: what there is to gain by choosing it, and what the trained agent gains.

Atos (Chen et al., ICPP 2022) fixes for a run how tasks are run: the strategy, a block or a warp a worker, how many
tasks are taken at once. Which form is quickest depends on the application and on the graph. `gpusched/TaskQueue-v0`
lets an agent choose it, at the start and every 50 us.

**The cost** of a run is its time over that of the level-by-level form with 32 tasks a block. Means are geometric.

**Early ends.** Persistent workers vote for the end after 50 fruitless polls, and a discrete form's host after ten empty
copies. On small graphs that is half of the run. Who is asked every 50 us sees that nothing is left, and can ask for a
level-by-level kernel: the host looks, and the run is over. An agent finds that out, and so would anybody. So rules
have it too: *early* forms do so. To be asked costs nothing here, in the environment either.

**Problems** are random: searches, rankings and colourings on graphs of six classes with 500 to 60,000 vertices. All
that is tuned saw the tuning problems, all that is trained other ones. Judged are random problems that neither saw, and
the suite: other graphs, most of them larger (10,000 to 374,000 vertices).

* *Guideline*: Atos's. Persistent below a mean degree, discrete above; degree, fetch size and early ends tuned.
* *One form*: the best for all tuning problems. *By application*: the best for each application. Early or not.
* *By application, afterwards*: the same, chosen on the judged problems.
* *Offline*: of each problem the best fixed form. *Offline, early*: the best early one. Nobody knows either.
* *Switched*: offline and early, with one change of the form at the best of a few times.
* *Agent*: the shipped rule of 96 weights, fitted to the costs of all forms on random problems (`gpusched train
  TaskQueue`). It chooses a form by the graph, and ends early.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.statistics import Interval, mean_interval
from gpusched_env.experiments.lib.verdicts import Simulation, as_row, table_of
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.games.task_queues.agents.rule import LearnedForms
from gpusched_env.games.task_queues.device import knowledge_of
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.environment.env import FORMS, RANDOM
from gpusched_env.games.task_queues.environment.level_by_level import level_by_level_us
from gpusched_env.games.task_queues.problem import Form
from gpusched_env.games.task_queues.session import run_tasks_of, time_in
from gpusched_env.games.task_queues.suite import SUITE, kept_problem

Costs = NDArray[np.float64]
TUNING_SEEDS: Final = range(1_000_000, 1_000_100)
JUDGED_SEEDS: Final = range(8_000_000, 8_000_256)
SWITCHED: Final = JUDGED_SEEDS[:24]
"""Problems for which a change on the way is searched."""
SUITE_SEEDS: Final = range(2)
DEGREES: Final = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0)
"""Degrees of the guideline that are tried."""
FIRST_FORMS: Final = 5
"""The number of the quickest forms from which a change is tried."""
TIMES_US: Final = (50.0, 100.0, 150.0, 200.0, 300.0, 500.0, 1000.0, 2000.0, 4000.0)
"""Times at which the change is tried."""


def run_form(name: str, seed: int, form: Form, *, early: bool, then: tuple[Form, float] | None = None) -> float:
    """The cost of a problem, by name and seed, as :func:`~gpusched_env.games.task_queues.session.time_in` finds it."""
    return time_in(kept_problem(name, seed), form, make_task_device("compiled"), early=early, then=then)


@dataclass(frozen=True, slots=True)
class FormCosts:
    """What is found of a problem."""

    application: str
    degree: float
    """Edges a vertex of the graph."""
    costs: tuple[float, ...]
    """Costs of every form, then of every early form; of an agent or a change, one."""


@dataclass(frozen=True, slots=True)
class EveryForm:
    """A problem in all forms on offer, early and not."""

    name: str
    seed: int

    def run(self, device: str) -> FormCosts:
        whole_us = level_by_level_us(self.name, self.seed)
        knowledge = knowledge_of(kept_problem(self.name, self.seed))
        fits = [form.threshold == 0 or knowledge.application == "bfs" for form in FORMS]
        times = [
            run_form(self.name, self.seed, form, early=early) if fit else math.inf
            for early in (False, True)
            for form, fit in zip(FORMS, fits, strict=True)
        ]
        return FormCosts(
            knowledge.application, knowledge.edges / knowledge.vertices, tuple(t / whole_us for t in times)
        )


@dataclass(frozen=True, slots=True)
class ByAgent:
    """A problem under the shipped agent."""

    name: str
    seed: int

    def run(self, device: str) -> FormCosts:
        problem = kept_problem(self.name, self.seed)
        run = run_tasks_of(LearnedForms(), problem, make_task_device(device))
        knowledge = knowledge_of(problem)
        cost = run.time_us / level_by_level_us(self.name, self.seed)
        return FormCosts(knowledge.application, knowledge.edges / knowledge.vertices, (cost,))


@dataclass(frozen=True, slots=True)
class WithOneChange:
    """A problem with the best early form, or the best change of it on the way."""

    name: str
    seed: int

    def run(self, device: str) -> FormCosts:
        found = EveryForm(self.name, self.seed).run(device)
        early = np.array(found.costs[len(FORMS) :])
        whole_us = level_by_level_us(self.name, self.seed)
        best, fit = float(early.min()), [form for form, cost in zip(FORMS, early, strict=True) if math.isfinite(cost)]
        for first in (FORMS[number] for number in early.argsort()[:FIRST_FORMS]):
            for at_us in (each for each in TIMES_US if each < best * whole_us):
                for other in fit:
                    then = (other, at_us)
                    best = min(best, run_form(self.name, self.seed, first, early=True, then=then) / whole_us)
        return FormCosts(found.application, found.degree, (best,))


def judged(suite: bool) -> list[tuple[str, int]]:
    """Problems that are judged: those of the suite, or random ones."""
    if suite:
        return [(name, seed) for name in SUITE for seed in SUITE_SEEDS]
    return [(RANDOM, seed) for seed in JUDGED_SEEDS]


class Paper(Reproduction):
    """How much there is to gain, and how much is gained."""

    name = "task-queue-agent"
    title = "An agent for task queues"
    legend = (
        "*Cost*: geometric mean. *Agent*: its cost beside that way's on the same problems (below 0: it is quicker), "
        "with a paired 95 % interval (bootstrap over problems)."
    )

    @staticmethod
    def cells() -> Sequence[Simulation]:
        problems = [*judged(suite=False), *judged(suite=True)]
        forms = [EveryForm(RANDOM, seed) for seed in TUNING_SEEDS] + [EveryForm(*problem) for problem in problems]
        changes = [WithOneChange(RANDOM, seed) for seed in SWITCHED]
        return [*forms, *(ByAgent(*problem) for problem in problems), *changes]

    def table(self, problems: Sequence[tuple[str, int]]) -> Costs:
        """Costs of all forms, then of all early ones, shape ``(problems, 2 * forms)``."""
        return np.array([self.runs[EveryForm(*problem)].costs for problem in problems])

    def applications(self, problems: Sequence[tuple[str, int]]) -> NDArray[np.str_]:
        """The application of each problem."""
        return np.array([self.runs[EveryForm(*problem)].application for problem in problems])

    @functools.cached_property
    def tuning(self) -> list[tuple[str, int]]:
        """The tuning problems."""
        return [(RANDOM, seed) for seed in TUNING_SEEDS]

    @functools.cached_property
    def one(self) -> int:
        """The column that costs least on tuning problems."""
        return best_column(self.table(self.tuning))

    def of_applications(self, problems: Sequence[tuple[str, int]]) -> dict[str, int]:
        """The column that costs least, by application."""
        table, kinds = self.table(problems), self.applications(problems)
        return {str(kind): best_column(table[kinds == kind]) for kind in np.unique(kinds)}

    def guided(self, problems: Sequence[tuple[str, int]], setting: tuple[float, int, bool]) -> Costs:
        """Costs of the guideline with a mean degree, a fetch size, and early ends or not."""
        degree, fetch, early = setting
        persistent, discrete = (
            FORMS.index(Form(strategy, "block", fetch)) + early * len(FORMS) for strategy in ("persistent", "discrete")
        )
        degrees = np.array([self.runs[EveryForm(*problem)].degree for problem in problems])
        table = self.table(problems)
        return np.where(degrees < degree, table[:, persistent], table[:, discrete])

    @functools.cached_property
    def guideline(self) -> tuple[float, int, bool]:
        """The setting of the guideline that costs least on tuning problems."""
        fetches = sorted({form.fetch for form in FORMS})
        settings = [(degree, fetch, early) for early in (False, True) for fetch in fetches for degree in DEGREES]
        return min(settings, key=lambda setting: float(np.log(self.guided(self.tuning, setting)).mean()))

    def costs(self, way: str, problems: Sequence[tuple[str, int]]) -> Costs:
        """Costs of judged problems, in order."""
        table, kinds = self.table(problems), self.applications(problems)

        def chosen(columns: dict[str, int]) -> Costs:
            return np.array([row[columns[str(kind)]] for row, kind in zip(table, kinds, strict=True)])

        def single(kind: Callable[..., Any]) -> Costs:
            return np.array([self.runs[kind(*problem)].costs[0] for problem in problems])

        of_ways: dict[str, Callable[[], Costs]] = {
            "guideline": lambda: self.guided(problems, (4.0, 32, False)),
            "guideline, tuned": lambda: self.guided(problems, self.guideline),
            "one form": lambda: table[:, self.one],
            "by application": lambda: chosen(self.of_applications(self.tuning)),
            "by application, afterwards": lambda: chosen(self.of_applications(problems)),
            "offline": lambda: table[:, : len(FORMS)].min(1),
            "offline, early": lambda: table.min(1),
            "switched": lambda: single(WithOneChange),
            "agent": lambda: single(ByAgent),
        }
        return of_ways[way]()

    def beside(self, way: str, problems: Sequence[tuple[str, int]]) -> Interval:
        """What the agent costs more than a way, relative."""
        ratios = np.log(self.costs("agent", problems) / self.costs(way, problems))
        found = mean_interval(ratios.tolist())
        low, high = (None if bound is None else math.expm1(bound) for bound in (found.low, found.high))
        return Interval(math.expm1(found.mean), low, high, found.seeds)

    def summary(self) -> str:
        unseen = f"{len(JUDGED_SEEDS)} unseen graphs"
        return (
            f"beside the best form of each application the agent costs "
            f"{self.beside('by application', judged(suite=False)).text('{:+.0%}')} on {unseen}, "
            f"{self.beside('by application', judged(suite=True)).text('{:+.0%}')} on the suite"
        )

    def outcome(self) -> str:
        random, suite = judged(suite=False), judged(suite=True)

        def both(way: str) -> str:
            return f"{self.beside(way, random).text('{:+.0%}')} and {self.beside(way, suite).text('{:+.0%}')}"

        few = [(RANDOM, seed) for seed in SWITCHED]
        ceiling = np.log(self.costs("switched", few) / self.costs("offline, early", few)).mean()
        return (
            "The agent's cost beside others', on random graphs and on the suite: "
            f"Atos's guideline {both('guideline')}, tuned and with early ends {both('guideline, tuned')}; "
            f"the best form of each application, chosen afterwards {both('by application, afterwards')}; "
            f"the best fixed form of each graph {both('offline')}, with early ends {both('offline, early')}. "
            f"A change of the form on the way, searched for each of {len(few)} graphs, saves "
            f"{-math.expm1(ceiling):.1%} beside the best early form."
        )

    def rows(self, suite: bool) -> list[dict[str, Any]]:
        """A row a way."""
        problems = judged(suite)
        ways = [
            "guideline", "guideline, tuned", "one form", "by application", "by application, afterwards", "agent",
            "offline", "offline, early",
        ]  # fmt: skip
        found = [self._row(way, problems) for way in ways]
        few = [(RANDOM, seed) for seed in SWITCHED]
        return found if suite else [*found, *(self._row(way, few) for way in ("agent", "offline, early", "switched"))]

    def _row(self, way: str, problems: Sequence[tuple[str, int]]) -> dict[str, Any]:
        cost = math.exp(float(np.log(self.costs(way, problems)).mean()))
        beside = "" if way == "agent" else self.beside(way, problems).text("{:+.1%}")
        return {"way": way, "problems": len(problems), "cost": cost, "agent": beside, "what": self._what(way, problems)}

    def _what(self, way: str, problems: Sequence[tuple[str, int]]) -> str:
        if way == "one form":
            return column_name(self.one)
        if way.startswith("by application"):
            columns = self.of_applications(self.tuning if way == "by application" else problems)
            return ", ".join(f"{kind}: {column_name(number)}" for kind, number in columns.items())
        if way == "guideline, tuned":
            degree, fetch, early = self.guideline
            return f"below {degree:g} edges a vertex, fetch {fetch}{', early' if early else ''}"
        return ""

    def tables(self) -> list[Table]:
        form = "way = {way} | problems = {problems} | cost = {cost:.3f} | agent = {agent} | chosen = {what}"
        return [
            table_of("Random graphs", self.rows(suite=False), form),
            table_of("The suite", self.rows(suite=True), form),
            table_of(
                "The suite, problem by problem", self._by_problem(),
                "problem = {problem} | by application = {by_application:.3f} | agent = {agent:.3f} | "
                "offline, early = {offline:.3f}",
            ),
        ]  # fmt: skip

    def _by_problem(self) -> list[dict[str, Any]]:
        def mean(way: str, name: str) -> float:
            return math.exp(float(np.log(self.costs(way, [(name, seed) for seed in SUITE_SEEDS])).mean()))

        columns = {"by_application": "by application", "agent": "agent", "offline": "offline, early"}
        return [{"problem": name, **{key: mean(way, name) for key, way in columns.items()}} for name in SUITE]

    def data(self) -> dict[str, Any]:
        runs = [{"kind": type(each).__name__, **as_row(each), **as_row(found)} for each, found in self.runs.items()]
        return {"random": self.rows(suite=False), "suite": self.rows(suite=True), "runs": runs}


def best_column(table: Costs) -> int:
    """The column with the least geometric mean among those that are finite on all problems."""
    with np.errstate(divide="ignore"):
        means = np.log(table).mean(0)
    return int(means.argmin())


def column_name(number: int) -> str:
    """The name of a form, early or not."""
    early, form = divmod(number, len(FORMS))
    return FORMS[form].name + (", early" if early else "")
