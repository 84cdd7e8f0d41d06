"""A fleet block by block beside its rate model: what the model misses when it is fed with its own consequences.

The [rate model](fleet-rates.md) is judged on mixes of programs that stay as they are. In a fleet a dispatcher acts on
what it says: a job that takes longer stays longer, and fills a GPU that the next job would have had. Here the same
jobs come to the same dispatchers twice. Once GPUs follow rates; once each of them is a simulated H100, with MPS or
GPUColo's controller on it, that runs the recorded programs block by block. The difference says how far off figures of
larger fleets can be, whose GPUs follow rates only.

Fleets are small: 16 GPUs, 40 jobs and 5 seconds, with two reports a second. Half of the jobs are there at the start.
Three of four are inference, of an activity of 0.1 to 0.5; they stay for 0.5 to 2.5 seconds, and training has as much
work. SLOs are 1.69 times the latency alone, as in GPUColo's fleet. GPUColo's inner tier acts four times a second, in
place of every 4 seconds, and its outer tier not at all; rates have it settled from the first report on. Figures are
means of two draws of jobs.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.lib.criteria import CriterionMark, Kind
from gpusched_env.experiments.lib.verdicts import Simulation, Target, targets_table
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.games.fleet.device import FleetRun, run_fleet
from gpusched_env.games.fleet.experiments.game import new_dispatcher
from gpusched_env.games.fleet.experiments.levels import BlockLevel, SmallFleet

LEVELS: Final = ("blocks", "rates")
SEEDS: Final = (0, 1)
"""Seeds of the jobs."""
SECONDS: Final = 5.0
NAMES: Final = {
    "no-colocation": "No co-location",
    "separate(inference=3)": "Separate, 3 to 1",
    "first-fit": "First fit, no control",
    "gpucolo": "GPUColo",
}
RATIO: Final = (0.9, 1.1)
"""Ratio of a figure by rates over that block by block that holds."""
POINTS: Final = 0.1
"""Difference of shares that holds."""
SHARED: Final = ("First fit, no control", "GPUColo")
"""Dispatchers with which jobs share a GPU."""
MARKS: Final = (
    *(
        CriterionMark(f"*, {name}", Kind.DEFINITIONAL, "Nobody shares a GPU, so that rates are those of jobs alone.")
        for name in NAMES.values()
        if name not in SHARED
    ),
    *(
        mark
        for name in SHARED
        for mark in (
            CriterionMark(
                f"GPUs in use, rates over blocks, {name}",
                Kind.PREDICTED,
                "Rates are fitted to other mixes; how long training stays was open, how long inference does is given.",
            ),
            CriterionMark(
                f"latency of batches, rates over blocks, {name}",
                Kind.PREDICTED,
                "Rates are fitted to other mixes of programs that stay as they are.",
                "nobody disturbs anybody: about 0.7",
            ),
            CriterionMark(
                f"work of training, rates over blocks, {name}",
                Kind.VACUOUS,
                "All work is done at either level, as there is time enough.",
                "nobody disturbs anybody: 1.00, inside",
            ),
            CriterionMark(
                f"violations, rates less blocks, {name}",
                Kind.PREDICTED,
                "Rates are fitted to other mixes of programs that stay as they are.",
                "nobody disturbs anybody: 0 less what there are block by block",
            ),
        )
    ),
)


@dataclass(frozen=True)
class LevelFigures:
    """What comes out of a run."""

    gpus: float
    """GPUs in use, mean."""
    running: float
    """Jobs on GPUs, mean."""
    violations: float
    late_requests: float
    latency: float
    """Latency of batches over their SLO, mean over the time in which they were served."""
    training_stretch: float
    training_done: float
    """Part of all work of training that was done."""
    decisions: float
    """Decisions of the schedulers on the GPUs."""

    @classmethod
    def mean(cls, found: Sequence[LevelFigures]) -> LevelFigures:
        """The mean of several runs' figures."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: statistics.fmean(getattr(one, name) for one in found) for name in names})

    @classmethod
    def of(cls, run: FleetRun, decisions: int) -> LevelFigures:
        """``decisions``: 0 with rates."""
        state, jobs = run.state, run.problem.jobs
        served, trained = state.served_us > 0, jobs["training"] == 1
        work_us = jobs["work_us"][trained]
        return cls(
            gpus=run.gpus,
            running=float(run.running.mean()),
            violations=run.violations,
            late_requests=run.late_requests,
            latency=float(state.ratio_us[served].sum() / state.served_us[served].sum()) if served.any() else math.nan,
            training_stretch=run.training_stretch,
            training_done=float((work_us - state.left_us[trained]).sum() / work_us.sum())
            if trained.any()
            else math.nan,
            decisions=decisions,
        )


@dataclass(frozen=True)
class FleetAtLevel:
    """A dispatcher on a small fleet."""

    dispatcher: str
    level: str
    """How GPUs are simulated, one of :data:`LEVELS`."""
    seed: int = SEEDS[0]
    seconds: float = SECONDS
    gpus: int = 16
    jobs: int = 40

    def run(self, device: str) -> LevelFigures:
        problem = SmallFleet(gpus=self.gpus, jobs=self.jobs, seconds=self.seconds).problem(self.seed)
        blocks = BlockLevel(device)(problem) if self.level == "blocks" else None
        run = run_fleet(new_dispatcher(self.dispatcher), problem, blocks=blocks)
        return LevelFigures.of(run, 0 if blocks is None else blocks.decisions)


OUTCOME: Final = """\
Why: many latencies lie near their SLO, so that small errors of latency move many violations. Rates have
{gpus_low:+.0%} to {gpus_high:+.0%} of the GPUs in use that there are block by block, {latency_low:+.0%} to
{latency_high:+.0%} of the mean latency of batches, and training does {done_low:+.0%} to {done_high:+.0%} of the work.
With GPUColo {late_blocks:.0%} of the inference jobs violate their SLO block by block, and {late_rates:.0%} by rates.
"""


class Paper(Reproduction):
    """The same fleet at two levels."""

    name = "fleet-blocks"
    title = "A fleet block by block"
    marks = MARKS

    @staticmethod
    def cells() -> Sequence[Simulation]:
        return [FleetAtLevel(who, level, seed) for who in NAMES for level in LEVELS for seed in SEEDS]

    @functools.cached_property
    def both(self) -> dict[str, tuple[LevelFigures, LevelFigures]]:
        """The figures block by block and by rates, by dispatcher."""
        return {who: (self._mean(who, "blocks"), self._mean(who, "rates")) for who in NAMES}

    def _mean(self, who: str, level: str) -> LevelFigures:
        return LevelFigures.mean([self.runs[FleetAtLevel(who, level, seed)] for seed in SEEDS])

    def _errors(self, figure: str) -> list[float]:
        """The error of each dispatcher: by rates over block by block, less one."""
        return [getattr(rates, figure) / getattr(blocks, figure) - 1.0 for blocks, rates in self.both.values()]

    def checks(self) -> list[Target]:
        figures = {"gpus": "GPUs in use", "latency": "latency of batches", "training_done": "work of training"}
        ratios = [
            Target(f"{what}, rates over blocks, {name}", *RATIO, 1.0 + error)
            for figure, what in figures.items()
            for name, error in zip(NAMES.values(), self._errors(figure), strict=True)
        ]
        points = [
            Target(
                f"violations, rates less blocks, {NAMES[who]}", -POINTS, POINTS, rates.violations - blocks.violations
            )
            for who, (blocks, rates) in self.both.items()
        ]
        return [*ratios, *points]

    def summary(self) -> str:
        errors = ", ".join(
            f"{what} {max(map(abs, self._errors(figure))):.0%}"
            for figure, what in (("gpus", "GPUs in use"), ("latency", "latency"), ("training_done", "work of training"))
        )
        return f"{self.tally()}; largest errors of rates: {errors}"

    def outcome(self) -> str:
        blocks, rates = self.both["gpucolo"]
        ends = {
            f"{short}_{end}": of(self._errors(figure))
            for short, figure in (("gpus", "gpus"), ("latency", "latency"), ("done", "training_done"))
            for end, of in (("low", min), ("high", max))
        }
        return OUTCOME.format(**ends, late_blocks=blocks.violations, late_rates=rates.violations)

    def tables(self) -> list[Table]:
        return [self._figures(), targets_table("What is judged", self.checks())]

    def _figures(self) -> Table:
        rows = []
        for who, both in self.both.items():
            for level, of in zip(LEVELS, both, strict=True):
                shares = (f"{of.violations:.1%}", f"{of.late_requests:.1%}", f"{of.latency:.2f}")
                stretch = NONE if math.isnan(of.training_stretch) else f"{of.training_stretch:.2f}"
                rows.append(
                    (
                        NAMES[who],
                        level,
                        f"{of.gpus:.1f}",
                        f"{of.running:.1f}",
                        *shares,
                        stretch,
                        f"{of.training_done:.0%}",
                    )
                )
        heads = (
            "dispatcher", "level", "GPUs in use", "jobs on GPUs", "violations", "late requests", "latency over SLO",
            "length of training", "work of training",
        )  # fmt: skip
        decisions = sum(found.decisions for found in self.runs.values())
        note = f"Block by block schedulers took {decisions:,.0f} decisions. Length of training: of what has finished."
        return Table("Both levels", heads, rows, note)
