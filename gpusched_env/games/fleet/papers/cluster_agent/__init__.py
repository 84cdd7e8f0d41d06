"""An agent that places pods on a cluster, against FGD (Weng et al., USENIX ATC 2023), on published workloads.

Pods come to a cluster of nodes with GPUs, until they have asked for 130 % of the GPUs; none leaves, and what fits
nowhere is dropped ([FGD](fgd.md) has the details). Whoever places them chooses the node and the GPUs. What counts is
the *allocation*: the per cent of the GPUs that is in use at the end.

The agent is a rule: a number for each candidate node, linear in what the node would be after the pod, with weights by
the class of the pod, by how full the cluster is, and by how tight CPU is. With all weights 0 it is FGD. The weights
were learned by policy gradients (REINFORCE, with the mean of episodes of the same arrivals as a baseline) in the
environment `gpusched/ClusterPlacement-v0`, on clusters and workloads that are drawn from distributions of our own.
Their ranges were chosen to hold those of the published lists of pods, with FGD's results on both in view; no agent's
result on a published workload was.

This is how it is judged. It was written down before the agent played a published workload.

* *Workloads*: the nine whose results are published, each with the published seeds 42 to 51. No training, validation or
  search for options plays them.
* *The agent wins* against an opponent if the mean difference in allocation is above 0 with its whole 95 % interval,
  over the 90 runs and over the means of the nine workloads.
* *Opponents*: FGD as published, and FGD with options that a search on drawn problems found: how many pods are typical,
  and weights with which the scores of BestFit, DotProd and Packing are added. The search placed 37 million pods, the
  training 15 million. The agent also knows how many pods are to come, which none of these does.
* *What is left*: a packing that knows all pods beforehand and may refuse some, and a bound by a linear programme
  (`gpusched lab cluster --offline`), for the pods of seed 42. A quarter of the gap between FGD and that packing is to
  be closed. No policy can have all of it, as each pod that fits must be placed when it comes. The packing searches at
  most three seconds for what a node holds: a busy machine packs a little worse.
* *Time*: at most 1 ms a placement on all 1,523 nodes of the cluster.
* *Drawn problems* with seeds that nothing else uses stand beside the published ones. They decide nothing.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpusched_env.agents.shipped import FOLDER as AGENTS
from gpusched_env.agents.training.folder import LearningCurve
from gpusched_env.baselines.tuning import tuning_for
from gpusched_env.display.frame import frame
from gpusched_env.display.palette import COLOURS
from gpusched_env.display.table import Table
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.criteria import Criterion, CriterionMark, Kind
from gpusched_env.experiments.lib.pages import drawing
from gpusched_env.experiments.lib.statistics import Interval, mean_interval
from gpusched_env.experiments.lib.trained import LEARNED
from gpusched_env.experiments.lib.verdicts import Simulation, Target, as_row
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.games.fleet.agents.cluster.rule import NAME, LearnedPlacement
from gpusched_env.games.fleet.environment.cluster.problems import JUDGED, RANDOM
from gpusched_env.games.fleet.papers.cluster_agent.ppo import BUDGET, PpoTraining
from gpusched_env.games.fleet.papers.cluster_agent.runs import (
    DRAWN_SEEDS,
    LONGER,
    SEEDS,
    LongerList,
    Offline,
    Placed,
    Timed,
)
from gpusched_env.reading import decoded, read_bytes

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

FGD, BEST_FIT, KNOBS = "fgd", "best-fit", "weighted-fgd"
CURVE: Final = Path(__file__).parents[2] / "data" / "cluster-agent-validation.json"
"""Validations of the training that the shipped agent comes from."""
QUARTER: Final = 0.25
"""Of the gap to the packing, at least."""
MOST_US: Final = 1000.0
"""Microseconds a placement, at most."""
MARKS: Final = (
    CriterionMark(
        "against *",
        Kind.PREDICTED,
        "It was written down before the published workloads were played; nothing was chosen by them.",
        "all weights 0: FGD, no difference",
    ),
    CriterionMark(
        "share of the gap *",
        Kind.PREDICTED,
        "As above. The packing is ours, and may be short of the best by what the bound leaves.",
        "all weights 0: none of it",
    ),
    CriterionMark(
        "microseconds a placement", Kind.PREDICTED, "A limit of our own, for one core.", "FGD stands beside it"
    ),
)
OUTCOME: Final = """\
With the agent {agent:.2f} % of the GPUs are in use at the end, in the mean over nine published workloads, and with FGD
{fgd:.2f} %. The difference is {points} points over 90 runs, and {by_workload} over the workloads. It is above 0 in the
mean of {better} of {workloads} workloads. With FGD as searched it is {tuned:.2f} %; the agent differs from that by
{over_tuned}.

On {drawn_count} drawn problems that nothing else has seen the agent gains {drawn} points over FGD, the searched FGD
{drawn_tuned}.

A packing that knows all pods and may refuse some has {packed:.2f} % in use, and none can have more than {bound:.2f} %
(seed {seed}). Of the gap between FGD and that packing the agent closes {closed:.0%}.

A placement on {nodes:,} nodes takes the agent {agent_us:.0f} us, and FGD {fgd_us:.0f} us. With {longer} times as many
candidates the allocation on drawn problems differs by {loss} points: that is what the shortlist loses.

MaskablePPO, a standard algorithm with a network that knows nothing of candidates being alike, ends {ppo:+.1f} points
from FGD after {ppo_decisions:,} decisions.
"""


@functools.cache
def tuned_spec() -> str:
    """The cheapest options that the search on drawn problems found.

    Raises:
        InputError: there is no such search.
    """
    found = tuning_for(NAME)
    if found is None:
        raise InputError(
            f"no options of {NAME} have been searched: gpusched tune {NAME} --json baselines/tuned/{NAME}.json"
        )
    return found.best(KNOBS).spec


@dataclass(frozen=True)
class WinOverFgd:
    """The agent against an opponent on the published workloads."""

    opponent: str
    runs: Interval
    """Points over all runs."""
    workloads: Interval
    """Points over the means of workloads."""

    @property
    def holds(self) -> bool:
        return all(each.low is not None and each.low > 0.0 for each in (self.runs, self.workloads))

    def as_criterion(self) -> Criterion:
        ours = f"{_text(self.runs)} points over runs, {_text(self.workloads)} over workloads"
        return Criterion(f"against {self.opponent}", ours, "above 0", math.nan, self.holds)


class Paper(Reproduction):
    """Whether the agent wins."""

    name = "cluster-agent"
    title = "An agent for a cluster"
    marks = MARKS

    @staticmethod
    def cells() -> Sequence[Simulation]:
        placed = [Placed(who, problem) for who in _everyone().values() for problem in (*JUDGED, RANDOM)]
        return [*placed, *map(Offline, JUDGED), LongerList(LONGER), Timed("default"), PpoTraining(0)]

    @staticmethod
    def reads() -> Sequence[Path]:
        return [AGENTS / f"{NAME}.npz", CURVE]

    def _allocations(self, who: str, problem: str) -> list[float]:
        return list(self.runs[Placed(_everyone()[who], problem)].allocation)

    def _mean(self, who: str) -> float:
        return statistics.fmean(statistics.fmean(self._allocations(who, problem)) for problem in JUDGED)

    def _points(self, problem: str, other: str, who: str = "agent") -> list[float]:
        """By seed, what one has more than another."""
        return [a - b for a, b in zip(self._allocations(who, problem), self._allocations(other, problem), strict=True)]

    def _win(self, other: str) -> WinOverFgd:
        points = {problem: self._points(problem, other) for problem in JUDGED}
        every = [point for each in points.values() for point in each]
        return WinOverFgd(
            other, mean_interval(every), mean_interval([statistics.fmean(each) for each in points.values()])
        )

    def checks(self) -> list[WinOverFgd | Target]:
        timed = self.runs[Timed("default")]
        limit = Target("microseconds a placement", 0.0, MOST_US, timed.agent_us)
        closed = Target("share of the gap to a packing that knows all pods", QUARTER, math.inf, self._closed())
        return [self._win("FGD"), self._win("FGD, searched"), closed, limit]

    def _first(self, who: str) -> float:
        """The mean over workloads for the first seed."""
        return statistics.fmean(self._allocations(who, problem)[0] for problem in JUDGED)

    def _offline(self, figure: str) -> float:
        """The mean over workloads of ``packed`` or ``bound``."""
        return statistics.fmean(getattr(self.runs[Offline(problem)], figure) for problem in JUDGED)

    def _closed(self) -> float:
        """Share of the gap between FGD and the packing that the agent closes."""
        return (self._first("agent") - self._first("FGD")) / (self._offline("packed") - self._first("FGD"))

    def summary(self) -> str:
        first, second = self._win("FGD"), self._win("FGD, searched")
        return (
            f"the agent has {_text(first.runs)} points more GPUs in use than FGD, "
            f"{_text(second.runs)} more than FGD with searched options"
        )

    def outcome(self) -> str:
        first, second, timed = self._win("FGD"), self._win("FGD, searched"), self.runs[Timed("default")]
        ppo = self.runs[PpoTraining(0)]
        longer = self.runs[LongerList(LONGER)].allocation
        loss = [a - b for a, b in zip(longer, self._allocations("agent", RANDOM), strict=True)]
        return OUTCOME.format(
            agent=self._mean("agent"),
            fgd=self._mean("FGD"),
            points=_text(first.runs),
            by_workload=_text(first.workloads),
            better=sum(statistics.fmean(self._points(problem, "FGD")) > 0.0 for problem in JUDGED),
            workloads=len(JUDGED),
            tuned=self._mean("FGD, searched"),
            over_tuned=_text(second.runs),
            drawn_count=len(DRAWN_SEEDS),
            drawn=_text(mean_interval(self._points(RANDOM, "FGD"))),
            drawn_tuned=_text(mean_interval(self._points(RANDOM, "FGD", "FGD, searched"))),
            packed=self._offline("packed"),
            bound=self._offline("bound"),
            seed=SEEDS[0],
            closed=self._closed(),
            nodes=timed.nodes,
            agent_us=timed.agent_us,
            fgd_us=timed.fgd_us,
            longer=LONGER,
            loss=_text(mean_interval(loss)),
            ppo=ppo.above_fgd[-1],
            ppo_decisions=ppo.decisions[-1],
        )

    def tables(self) -> list[Table]:
        return [self._by_workload(), self._left(), self._everyone(), self._learning()]

    def _left(self) -> Table:
        found = []
        for problem in JUDGED:
            offline = self.runs[Offline(problem)]
            agent, fgd = (self._allocations(who, problem)[0] for who in ("agent", "FGD"))
            closed = (agent - fgd) / (offline.packed - fgd)
            figures = (fgd, agent, offline.packed, offline.bound)
            found.append((problem, *(f"{figure:.2f}" for figure in figures), f"{closed:.0%}"))
        heads = ("workload", "FGD", "agent", "packed with all pods known", "bound", "closed")
        return Table("What is left", heads, found, f"Per cent of the GPUs in use, seed {SEEDS[0]}.")

    def _by_workload(self) -> Table:
        heads = ("workload", "agent", "FGD", "FGD, searched", "agent over FGD", "agent over FGD, searched")
        found = [
            (
                problem,
                *(f"{statistics.fmean(self._allocations(who, problem)):.2f}" for who in heads[1:4]),
                *(_text(mean_interval(self._points(problem, other))) for other in heads[2:4]),
            )
            for problem in JUDGED
        ]
        note = (
            f"Per cent of the GPUs in use when pods have asked for 130 %, means of seeds {SEEDS[0]} to {SEEDS[-1]}; "
            f"differences in points, with 95 % intervals.\n\n![The training]({self.name}-training.svg)"
        )
        return Table("GPUs in use by workload", heads, found, note)

    def _everyone(self) -> Table:
        found = []
        for who, spec in _everyone().items():
            points = [point for problem in JUDGED for point in self._points(problem, "FGD", who)]
            drawn = self._points(RANDOM, "FGD", who)
            cells = ("", "") if who == "FGD" else (_text(mean_interval(points)), _text(mean_interval(drawn)))
            found.append((f"{who} (`{spec}`)", f"{self._mean(who):.2f}", *cells))
        heads = ("scheduler", "GPUs in use, %", "over FGD", "over FGD, drawn problems")
        return Table("Everyone", heads, found, "Published workloads, but for the last column.")

    def _learning(self) -> Table:
        ppo = self.runs[PpoTraining(0)]
        found = [(f"{count:,}", f"{above:+.2f}") for count, above in zip(ppo.decisions, ppo.above_fgd, strict=True)]
        note = (
            f"MaskablePPO of sb3-contrib, {BUDGET:,} decisions on drawn problems, with fragmentation as shaping: "
            "points over FGD on drawn problems."
        )
        return Table("A standard algorithm", ("decisions", "over FGD"), found, note)

    def pictures(self) -> dict[str, bytes]:
        return {"training": training_svg()}

    def attachments(self) -> dict[str, DataFrame]:
        rows = [
            {"scheduler": who, "problem": problem, "seed": seed, "allocation": round(allocation, 4)}
            for who in _everyone()
            for problem in (*JUDGED, RANDOM)
            for seed, allocation in zip(
                DRAWN_SEEDS if problem == RANDOM else SEEDS, self._allocations(who, problem), strict=True
            )
        ]
        return {"runs": frame(rows)}

    def data(self) -> dict[str, Any]:
        cells = [{"cell": as_row(cell), "figures": as_row(found)} for cell, found in self.runs.items()]
        checks = [as_row(check.as_criterion()) for check in self.checks()]
        return {"checks": checks, "training": LearnedPlacement().describe(), "runs": cells}


def _everyone() -> dict[str, str]:
    """Schedulers by what the page calls them."""
    return {"agent": LEARNED, "FGD": FGD, "FGD, searched": tuned_spec(), "BestFit": BEST_FIT}


def training_svg() -> bytes:
    """GPUs that are free on drawn problems of validation, by decisions of the training, as SVG.

    Raises:
        InputError: matplotlib is not installed.
    """
    curve = decoded(read_bytes(CURVE), LearningCurve, str(CURVE))
    with drawing((6.4, 3.2)) as (figure, finished):
        axes = figure.subplots()
        decisions = [point.timesteps / 1e6 for point in curve.validations]
        axes.plot(decisions, [100.0 * point.cost for point in curve.validations], "o-", color=COLOURS[0], label="agent")
        for name, colour in ((FGD, COLOURS[1]), (BEST_FIT, COLOURS[2])):
            if name in curve.baselines:
                axes.axhline(100.0 * curve.baselines[name], color=colour, label=name)
        axes.set_xlabel("million decisions")
        axes.set_ylabel("% of GPUs free, validation")
        axes.legend(frameon=False)
        return finished()


def _text(interval: Interval) -> str:
    return interval.text("{:+z.2f}")
