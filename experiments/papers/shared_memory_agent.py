"""Budgets of CPU cores by what the present kernel asks for: what an agent could gain, and what the trained one does.

BWLOCK++ (Ali and Yun, ECRTS 2018) gives every core one budget of cache misses while any real-time kernel runs. But
kernels differ in what they ask of the memory, and frames in how much time they have. `gpusched/SharedMemory-v0` lets an
agent set each core's budget once in a period of 1 ms: a budget counts from a core's next tick on, and kernels last one
and a half to five periods, so deciding more often would change nothing and less often would miss a kernel.

**The cost.** A frame, one iteration of several benchmarks of Parboil, is late 1.1 to 1.6 times its time alone after it
arrived. One that is late costs 100. Each millisecond for which a core stood because its budget was spent costs 1: its
processes lost it. Without regulation nothing is lost and frames are late; with hardly a miss allowed it is the other
way round.

**Mixes** are generated: kernels, objective, period, and on each of four cores a hog, a CPU-bound process or both. All
that is tuned or trained saw only training mixes. It is judged on held-out ones, each with a benchmark and a hog that no
training mix has.

* *Unlocked*: nothing is regulated.
* *bwlock*: one budget while the lock counts, the best of nine on training mixes. *static-budgets*: the same at all
  times. Both with TFS-3, the charge with the least throttled time.
* *bwlock, afterwards*: the one budget that is best on the held-out mixes themselves. *bwlock, by mix*: of each held-
  out mix the best budget, or none. No scheduler knows either.
* *By benchmark*: of each held-out mix the best budget of each benchmark, searched afterwards one after the other; a
  ceiling for budgets that depend on the kernel alone. An agent also sees how much time is left, so it can save more.
* *Agent*: a network of 129 weights that sees the observation of the environment, found by CMA-ES on training mixes
  (`python -m gpusched_env.agents.shared_memory.searching`). It plays as the scheduler
  `gpusched_env.agents.shared_memory.learned:LearnedBudgets`.

`gpusched train` learns on the scenario as well, with policy `mlp`; the other policies do not see the table of cores.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from gpusched_env.agents.shared_memory.learned import LearnedBudgets, mix_problem
from gpusched_env.baselines.bwlock import Bwlock
from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.baselines.static_budgets import StaticBudgets
from gpusched_env.baselines.unlocked import Unlocked
from gpusched_env.data.parboil import OTHERS
from gpusched_env.display.table import Table
from gpusched_env.envs.action_fields import BUDGETS
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.statistics import Interval, mean_interval
from gpusched_env.experiments.lib.verdicts import Simulation, as_row, table_of
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import Command, SetBudget
from gpusched_env.scheduling.cores import CoreColumn
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import RunningColumn, View
from gpusched_env.workload.cores.spec import MOST_EVENTS


class ByBenchmark(PassThrough):
    """Every core has the budget of the benchmark whose kernel was launched first and has not ended."""

    reads: Reads = ()
    set_up = SetUp(commands=("budget",))

    def __init__(self, budgets: Mapping[str, int]) -> None:
        """``budgets``: misses a period, by the first part of a kernel's name (``histo`` of ``histo_main``)."""
        self._budgets = budgets

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No core is regulated."""
        super().reset(knowledge, rng)
        self._of = [self._budgets.get(kernel.name.partition("_")[0], MOST_EVENTS) for kernel in knowledge.kernels]
        self._events = MOST_EVENTS

    def decide(self, view: View) -> Command:
        """Set budgets first, then launch whatever is pending."""
        running = view.running.array
        if len(running):
            oldest = running[int(running[:, RunningColumn.ID].argmin())]
            self._events = self._of[int(oldest[RunningColumn.IDENTITY])]
        for row, core in enumerate(view.cores.array):
            settable = core[CoreColumn.TASKS] > 0.0 and core[CoreColumn.SETTABLE] == 1.0
            if settable and core[CoreColumn.BUDGET] != self._events:
                return SetBudget(row, self._events)
        return super().decide(view)


Way = Literal["unlocked", "bwlock", "static-budgets", "agent"]
RHO: Final = load_scenario("SharedMemory").cores.rho  # type: ignore[union-attr]
REGULATED: Final = tuple(sorted((*BUDGETS[:-1], 12_288, 24_576, 49_152)))
"""Budgets that are tried for all kernels: those on offer, and some between them."""
TUNED: Final = range(40)
"""Seeds of training mixes that budgets are tuned on."""
JUDGED: Final = range(120)
"""Seeds of held-out mixes."""
FORESEEN: Final = range(30)
"""Seeds of held-out mixes for which budgets by benchmark are searched."""
FIXED: Final[tuple[Way, ...]] = ("bwlock", "static-budgets")


@dataclass(frozen=True, slots=True)
class EpisodeOutcome:
    """What an episode comes to."""

    cost: float
    late: int
    """Number of frames that were late."""
    throttled_ms: float


def took(scheduler: Any, seed: int, device: str, *, held_out: bool) -> EpisodeOutcome:
    """The outcome of a scheduler on a mix."""
    metrics = episode_metrics(play(scheduler, _problem(seed, held_out), 0, device=device))
    terms = metrics.terms
    return EpisodeOutcome(float(metrics.cost), int(terms["slo_miss"]), float(terms["throttled"]))


@functools.lru_cache(256)
def _problem(seed: int, held_out: bool) -> Any:
    return mix_problem(seed, held_out=held_out)


@dataclass(frozen=True, slots=True)
class AgentEpisode:
    """An episode of a mix."""

    way: Way
    seed: int
    held_out: bool = True
    events: int = MOST_EVENTS
    """The budget, where it is fixed."""

    def run(self, device: str) -> EpisodeOutcome:
        makers = {"bwlock": Bwlock, "static-budgets": StaticBudgets}
        if self.way in makers:
            scheduler: Any = makers[self.way](events=self.events, rho=RHO)
        else:
            scheduler = LearnedBudgets() if self.way == "agent" else Unlocked()
            # Unlocked schedules by CFS; without budgets no charge is ever due.
        return took(scheduler, self.seed, device, held_out=self.held_out)


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A held-out mix with the best budget of each benchmark, searched from the best budget for all."""

    seed: int

    def run(self, device: str) -> EpisodeOutcome:
        of = {name: kernel.partition("_")[0] for name, (kernel, *_) in OTHERS.items()} | {"histo": "histo"}
        program = _problem(self.seed, True).programs[0]
        names = program.tenant.workload.partition("=")[2].rstrip(")").split("+")

        def tried(budgets: dict[str, int]) -> tuple[float, EpisodeOutcome]:
            found = took(ByBenchmark(budgets), self.seed, device, held_out=True)
            return found.cost, found

        best_budgets: dict[str, int] = {}
        best = (np.inf, EpisodeOutcome(np.inf, 0, 0.0))
        for events in BUDGETS:
            same = {of[name]: events for name in names}
            found = tried(same)
            if found[0] < best[0]:
                best, best_budgets = found, same
        for name in names:
            for events in BUDGETS:
                other = {**best_budgets, of[name]: events}
                found = tried(other) if other != best_budgets else best
                if found[0] < best[0]:
                    best, best_budgets = found, other
        return best[1]


def tuning_cells() -> list[AgentEpisode]:
    """Fixed budgets on training mixes."""
    return [AgentEpisode(way, seed, False, events) for way in FIXED for events in REGULATED for seed in TUNED]


def held_out_cells() -> list[Simulation]:
    """Whatever is played on held-out mixes, with every budget."""
    fixed = [AgentEpisode(way, seed, True, events) for way in FIXED for events in REGULATED for seed in JUDGED]
    others: list[Way] = ["unlocked", "agent"]
    return [*fixed, *(AgentEpisode(way, seed) for way in others for seed in JUDGED), *map(Foreseen, FORESEEN)]


class Paper(Reproduction):
    """How much there is to gain, and how much is gained."""

    name = "shared-memory-agent"
    title = "An agent for memory shared with the CPU"
    legend = (
        "*Cost*: mean of an episode. *Saved*: cost of tuned bwlock less that of the way, on the same mixes, over the "
        "mean cost of tuned bwlock, with a paired 95 % interval (bootstrap over mixes)."
    )

    @staticmethod
    def cells() -> Sequence[Simulation]:
        return [*tuning_cells(), *held_out_cells()]

    @functools.cached_property
    def tuned(self) -> dict[str, int]:
        """The budget that costs least on training mixes, of each fixed way."""

        def cost(way: Way, events: int) -> float:
            return float(np.mean([self.runs[AgentEpisode(way, seed, False, events)].cost for seed in TUNED]))

        return {way: min(REGULATED, key=lambda events: cost(way, events)) for way in FIXED}

    @functools.cached_property
    def afterwards(self) -> int:
        """The budget for all with which bwlock costs least on held-out mixes."""

        def cost(events: int) -> float:
            return float(np.mean([self.runs[AgentEpisode("bwlock", seed, True, events)].cost for seed in JUDGED]))

        return min(REGULATED, key=cost)

    def episodes(self, way: str, seeds: Iterable[int] = JUDGED) -> list[EpisodeOutcome]:
        """Outcomes of held-out mixes, in order."""
        if way == "bwlock, afterwards":
            return [self.runs[AgentEpisode("bwlock", seed, True, self.afterwards)] for seed in seeds]
        if way == "bwlock, by mix":
            choices = [[AgentEpisode("bwlock", seed, True, events) for events in REGULATED] for seed in seeds]
            return [
                min(
                    [self.runs[each] for each in (*row, AgentEpisode("unlocked", row[0].seed))],
                    key=lambda took: took.cost,
                )
                for row in choices
            ]
        if way == "by benchmark":
            return [self.runs[Foreseen(seed)] for seed in seeds]
        if way in FIXED:
            return [self.runs[AgentEpisode(way, seed, True, self.tuned[way])] for seed in seeds]
        return [self.runs[AgentEpisode(way, seed)] for seed in seeds]  # type: ignore[arg-type]

    def saved(self, way: str, over: str = "bwlock", seeds: Iterable[int] = JUDGED) -> Interval:
        """Cost saved over another way, of that way's mean cost."""
        seeds = list(seeds)
        costs, others = ([took.cost for took in self.episodes(each, seeds)] for each in (way, over))
        mean = float(np.mean(others))
        return mean_interval([(other - cost) / mean for cost, other in zip(costs, others, strict=True)])

    def summary(self) -> str:
        return (
            f"the agent saves {self.saved('agent').text('{:.0%}')} of the cost of tuned bwlock on {len(JUDGED)} "
            "held-out mixes"
        )

    def outcome(self) -> str:
        afterwards, by_mix = self.saved("agent", "bwlock, afterwards"), self.saved("agent", "bwlock, by mix")
        ceiling = self.saved("by benchmark", "bwlock, by mix", FORESEEN)
        beside = self.saved("agent", "by benchmark", FORESEEN)
        saves = (
            ("the one budget that is best on these mixes, chosen afterwards", afterwards, len(JUDGED)),
            ("the best budget of each mix", by_mix, len(JUDGED)),
            ("budgets by benchmark, searched afterwards", beside, len(FORESEEN)),
        )
        said = "; ".join(f"{name}: {gain.text('{:+.0%}')} ({mixes} mixes)" for name, gain, mixes in saves)
        return (
            "What the agent saves beside what nobody knows beforehand (below 0 it costs more): "
            f"{said}. Budgets by benchmark themselves save "
            f"{ceiling.text('{:+.0%}')} beside the best of each mix. Why: a fixed budget has to suit the most "
            "demanding kernel and the tightest frame; the agent regulates where a frame would be late otherwise."
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row a way."""
        known = {**self.tuned, "bwlock, afterwards": self.afterwards}
        found = []
        for way, seeds in (
            ("unlocked", JUDGED), ("static-budgets", JUDGED), ("bwlock", JUDGED), ("bwlock, afterwards", JUDGED),
            ("bwlock, by mix", JUDGED), ("agent", JUDGED), ("by benchmark", FORESEEN), ("agent", FORESEEN),
        ):  # fmt: skip
            episodes = self.episodes(way, seeds)
            row = {"way": way, "mixes": len(seeds), "events": str(known.get(way, "-"))}
            row |= {
                name: float(np.mean([getattr(each, name) for each in episodes])) for name in EpisodeOutcome.__slots__
            }
            found.append({**row, "saved": self.saved(way, seeds=seeds).text("{:+.1%}")})
        return found

    def tables(self) -> list[Table]:
        form = (
            "way = {way} | mixes = {mixes} | misses a period = {events} | cost = {cost:.1f} | "
            "late frames = {late:.2f} | cores stood, ms = {throttled_ms:.1f} | saved = {saved}"
        )
        return [table_of("Held-out mixes", self.rows(), form), table_of("Fixed budgets", self._budgets(), BUDGET_FORM)]

    def _budgets(self) -> list[dict[str, Any]]:
        def mean(way: Way, events: int, seeds: range, held_out: bool) -> float:
            return float(np.mean([self.runs[AgentEpisode(way, seed, held_out, events)].cost for seed in seeds]))

        return [
            {"way": way, "events": events, "train": mean(way, events, TUNED, False),
             "held_out": mean(way, events, JUDGED, True)}
            for way in FIXED for events in REGULATED
        ]  # fmt: skip

    def data(self) -> dict[str, Any]:
        runs = [{**as_row(each), **as_row(found)} for each, found in self.runs.items()]
        return {"ways": self.rows(), "runs": runs}


BUDGET_FORM: Final = (
    "way = {way} | misses a period = {events} | training mixes = {train:.1f} | held-out mixes = {held_out:.1f}"
)
