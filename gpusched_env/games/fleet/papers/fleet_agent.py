"""One agent for placement and co-location of a fleet, against GPUColo's first fit and best fit, on unseen days.

The agent is the [fleet rule](policies.md#fleet): which jobs share a GPU by predicted interference, and which GPU is
emptied. GPUColo's controller of the worst inference job runs on each GPU. Its weights were searched by CMA-ES on random
days of random size and load. The [game](fleet.md#as-a-game) says what a day is and what it costs.

This is how it is judged. It was written down before the days were played.

* *Days*: the four named ones with the jobs of 32 seeds each, from 1,000 on: 128 days. No training, validation or search
  for options draws them.
* *GPUs*: the mean over a day of the GPUs in use, and over all days; differences are paired day by day, with 95 %
  intervals. *Violations*: of all inference jobs of all days, the share whose mean latency is more than 2 % above the
  SLO.
* *The agent wins* against an opponent if the interval of the difference in GPUs lies below 0 and its share of
  violations is no higher. Its costs (GPUs, late and waiting jobs in one number) are compared likewise, beside it.
* *Opponents*: GPUColo with first fit and with best fit, as published, and each with the options that a search found on
  random days for no fewer days than the agent's training played. Other systems of the paper stand beside them.
* *Controls*: the agent without moves; and *predicted fit*, a rule by hand that knows as much as the agent. It places
  jobs where no SLO is predicted to be missed, and empties GPUs; its options were searched likewise. What the agent
  gains over it is what learning adds. These two decide nothing.
* *Shipped* if it wins against the four.

*Energy* was added later and decides nothing. A GPU that has jobs takes 40 W, and up to 300 W in proportion to how much
of the time its jobs are on it. One without jobs is off. The law is that of a V100 (300 W from its data sheet, the rest
a guess). Nothing is known of how many SMs a job keeps busy, so that full power is an upper bound.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from gpusched_env.baselines.tuning import Tuning, tuning_for
from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.criteria import Criterion, CriterionMark, Kind
from gpusched_env.experiments.lib.statistics import PairedDifference, known, paired_difference
from gpusched_env.experiments.lib.trained import LEARNED
from gpusched_env.experiments.lib.verdicts import Simulation
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.games.fleet.agents.rule import NAME, LearnedFleet
from gpusched_env.games.fleet.environment.problems import DAYS, fleet_cost, fleet_problem
from gpusched_env.games.fleet.experiments.game import new_dispatcher, run_day
from gpusched_env.games.fleet.windows import TOLERANCE
from gpusched_env.hardware.power import J_A_KWH

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

FIRST_SEED, SEEDS = 1000, 32
MARKS: Final = (
    CriterionMark(
        "against *",
        Kind.PREDICTED,
        "It was written down before the days were played, and no training or search drew them; but GPUs follow the "
        "very model that the agent predicts with.",
        "a rule by hand that knows as much (predicted fit, tuned): -0.06 GPUs",
    ),
)
WITHOUT_MOVES: Final = "learned, without moves"
PLAIN: Final = "predicted-fit"
FIRST_TUNED, BEST_TUNED = "GPUColo, first fit, tuned", "GPUColo, best fit, tuned"
OUTCOME: Final = """\
The agent needs {gpus:.2f} GPUs on average, GPUColo with first fit and searched options {theirs:.2f}. The difference is
{first} GPUs, and {best} against best fit, at {violations:.2%} violations against {of_first:.2%} and
{of_best:.2%}. Without moving jobs the agent differs from first fit by {still} GPUs.

How much of this is learning, a rule by hand says that knows as much and moves jobs too (*predicted fit*, its options
searched). The agent's cost differs from its cost by {learning}, which is {chance} chance. The rest comes from
predicting who disturbs whom, and from emptying GPUs.

In energy the agent differs by {energy} from first fit with searched options, and by {of_default} from it as published.
GPUs that are off save their idle power; the work itself takes what it takes.

Training takes {stretch:.2f} times its time alone; with first fit, searched, {their_stretch:.2f} times. GPUs follow a
rate model whose error on random mixes is 10 %. The agent predicts with that very model.
"""
OTHERS: Final = ("no-colocation", "separate", "first-fit", "gslice")


@functools.cache
def tuned() -> Tuning:
    """The search for options that is shipped.

    Raises:
        InputError: there is none.
    """
    found = tuning_for(NAME)
    if found is None:
        raise InputError(
            f"no options of {NAME} have been searched: gpusched tune {NAME} --json baselines/tuned/{NAME}.json"
        )
    return found


def tuned_fit(best: bool) -> str:
    """GPUColo's cheapest trial with best fit, or with first fit."""
    trials = [trial for trial in tuned().trials["gpucolo"] if (trial.drawn.get("best") == "true") == best]
    return min(trials, key=lambda trial: trial.cost).spec


@functools.cache
def opponents() -> dict[str, str]:
    """What the agent has to win against: names of the page, and dispatchers."""
    return {
        "GPUColo, first fit": "gpucolo",
        "GPUColo, best fit": "gpucolo(best=True)",
        FIRST_TUNED: tuned_fit(False),
        BEST_TUNED: tuned_fit(True),
    }


@functools.cache
def rows() -> dict[str, str]:
    """All dispatchers of the page."""
    controls = {"agent": LEARNED, "agent, without moves": WITHOUT_MOVES, "predicted fit": PLAIN}
    controls["predicted fit, tuned"] = tuned().best(PLAIN).spec
    return {**controls, **opponents(), **{name: name for name in OTHERS}}


@dataclass(frozen=True)
class DayFigures:
    """What comes out of the days of all seeds, each a tuple of one number a seed."""

    gpus: tuple[float, ...]
    cost: tuple[float, ...]
    late: tuple[int, ...]
    """Inference jobs that violate their SLO."""
    served: tuple[int, ...]
    """Inference jobs that were served."""
    late_requests: tuple[float, ...]
    training_stretch: tuple[float, ...]
    energy_j: tuple[float, ...]


@dataclass(frozen=True)
class AgentDays:
    """A dispatcher on one kind of day."""

    dispatcher: str
    day: str

    def run(self, device: str) -> DayFigures:
        found = [self._day(seed) for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)]
        return DayFigures(*zip(*found, strict=True))

    def _day(self, seed: int) -> tuple[float, float, int, int, float, float, float]:
        still = self.dispatcher == WITHOUT_MOVES
        dispatcher = LearnedFleet(moves=False) if still else new_dispatcher(self.dispatcher)
        run = run_day(dispatcher, fleet_problem(self.day, seed))
        served = run.state.served_us > 0
        late = run.state.ratio_us[served] > TOLERANCE * run.state.served_us[served]
        counts = int(late.sum()), int(served.sum())
        return run.gpus, fleet_cost(run), *counts, run.late_requests, run.training_stretch, run.energy_j


@dataclass(frozen=True)
class Win:
    """The agent against an opponent."""

    opponent: str
    gpus: PairedDifference
    cost: PairedDifference
    violations: float
    """Violations of the agent."""
    theirs: float

    @property
    def holds(self) -> bool:
        high = self.gpus.difference.high
        return high is not None and high < 0.0 and self.violations <= self.theirs

    def as_criterion(self) -> Criterion:
        ours = f"{_text(self.gpus)} GPUs, {self.violations:.2%} violations"
        return Criterion(f"against {self.opponent}", ours, f"below 0, at most {self.theirs:.2%}", math.nan, self.holds)


class Paper(Reproduction):
    """Whether the agent wins."""

    name = "fleet-agent"
    title = "An agent for a fleet"
    marks = MARKS

    @staticmethod
    def cells() -> Sequence[Simulation]:
        return [AgentDays(spec, day) for spec in dict.fromkeys(rows().values()) for day in DAYS]

    def _all(self, spec: str, what: str) -> list[float]:
        """The figures of all days of all seeds."""
        return [value for day in DAYS for value in getattr(self.runs[AgentDays(spec, day)], what)]

    def _violations(self, spec: str) -> float:
        return float(sum(self._all(spec, "late")) / sum(self._all(spec, "served")))

    def _win(self, name: str, who: str = LEARNED) -> Win:
        other = rows()[name]
        gpus, cost = (paired_difference(self._all(who, what), self._all(other, what)) for what in ("gpus", "cost"))
        return Win(name, gpus, cost, self._violations(who), self._violations(other))

    def _energy(self, name: str) -> str:
        """What the agent takes less or more than another, relative, with its interval."""
        found = paired_difference(self._all(LEARNED, "energy_j"), self._all(rows()[name], "energy_j"))
        return found.relative.text("{:+z.1%}")

    def checks(self) -> list[Win]:
        return [self._win(name) for name in opponents()]

    def summary(self) -> str:
        wins = self.checks()
        first, best = wins[:2]
        return (
            f"the agent wins against {sum(win.holds for win in wins)} of {len(wins)}: "
            f"{_text(first.gpus)} GPUs against GPUColo with first fit and {_text(best.gpus)} with best fit, "
            f"at {first.violations:.2%} violations against {first.theirs:.1%} and {best.theirs:.1%}"
        )

    def outcome(self) -> str:
        wins, learned = {win.opponent: win for win in self.checks()}, self._win("predicted fit, tuned")
        first, best = wins[FIRST_TUNED], wins[BEST_TUNED]

        def mean(spec: str, what: str) -> float:
            return float(np.nanmean(self._all(spec, what)))

        return OUTCOME.format(
            gpus=mean(LEARNED, "gpus"),
            theirs=mean(rows()[FIRST_TUNED], "gpus"),
            first=_text(first.gpus),
            best=_text(best.gpus),
            violations=first.violations,
            of_first=first.theirs,
            of_best=best.theirs,
            still=_text(self._win(FIRST_TUNED, WITHOUT_MOVES).gpus),
            learning=learned.cost.relative.text("{:+z.1%}"),
            chance="beyond" if known(learned.cost.difference) else "within",
            energy=self._energy(FIRST_TUNED),
            of_default=self._energy("GPUColo, first fit"),
            stretch=mean(LEARNED, "training_stretch"),
            their_stretch=mean(rows()[FIRST_TUNED], "training_stretch"),
        )

    def tables(self) -> list[Table]:
        return [self._judged(), self._everyone(), self._by_day()]

    def _judged(self) -> Table:
        heads = ("against", "GPUs", "violations", "theirs", "cost", "verdict")
        judged = [(win, "wins" if win.holds else "does not win") for win in self.checks()]
        controls = [(self._win(name), "a control") for name in ("predicted fit", "predicted fit, tuned")]
        found = [
            (
                *(win.opponent, _text(win.gpus), f"{win.violations:.2%}", f"{win.theirs:.2%}"),
                *(win.cost.relative.text("{:+z.1%}"), verdict),
            )
            for win, verdict in [*judged, *controls]
        ]
        note = "Differences of the agent, paired over 128 days, with 95 % intervals; costs relative."
        return Table("The agent against others", heads, found, note)

    def _everyone(self) -> Table:
        found = []
        for name, spec in rows().items():
            names = ("gpus", "cost", "late_requests", "training_stretch", "energy_j")
            gpus, cost, late, stretch, energy_j = (np.nanmean(self._all(spec, what)) for what in names)
            label = f"{name} (`{spec}`)" if "tuned" in name else name
            shown = f"{late:.2%}", f"{stretch:.2f}", f"{energy_j / J_A_KWH:.1f}", f"{cost:.4f}"
            found.append((label, f"{gpus:.2f}", f"{self._violations(spec):.2%}", *shown))
        late_and_long = ("late requests", "length of training")
        heads = ("dispatcher", "GPUs in use", "violations", *late_and_long, "energy, kWh a day", "cost")
        note = "Means over all days. Late requests also count those during a restart, which moves bring."
        return Table("Everyone", heads, found, note)

    def _by_day(self) -> Table:
        shown = ("agent", "predicted fit, tuned", *opponents())
        found = [
            (day, *(f"{np.mean(self.runs[AgentDays(rows()[name], day)].gpus):.2f}" for name in shown)) for day in DAYS
        ]
        return Table("GPUs in use by kind of day", ("day", *shown), found)

    def attachments(self) -> dict[str, DataFrame]:
        found = [
            {
                "dispatcher": cell.dispatcher,
                "day": cell.day,
                "seed": FIRST_SEED + at,
                "gpus": gpus,
                "cost": cost,
                "energy_j": energy_j,
            }
            for cell, run in self.runs.items()
            for at, (gpus, cost, energy_j) in enumerate(zip(run.gpus, run.cost, run.energy_j, strict=True))
        ]
        return {"days": frame(found)}


def _text(difference: PairedDifference) -> str:
    return difference.difference.text("{:+z.2f}")
