"""GPUColo's fleet (Chen, Subramaniyan, Wang, ICDCS 2024, Section 6): 57 days of 6,500 GPUs.

Jobs are drawn with the published statistics of Alibaba's PAI trace: they are no trace. None of the paper's counts of
GPUs is among these statistics but that without co-location, which is the number of jobs at a time. GPUs follow a rate
model that is fitted block by block ([its page](fleet-rates.md)), and beside which a small fleet was run block by block
([its page](fleet-blocks.md)); *as published* has what training does to batches from the paper's Figure 6 instead.
Reports, and decisions of the dispatcher, come every minute (in the paper every second).

The paper lets a job's SLO be 0.96 of its length in the trace, at which its simulator then runs it. Here a latency
follows from who shares the GPU: alone it is 0.59 of the SLO, as that of the twelve jobs of Figure 11. Inference stays
for as long as in the trace and is asked at its rate; training takes longer the more it is slowed. A job violates its
SLO if the mean latency of its batches, over its life, is more than 2 % above it. Late requests also count those that
come during a restart of inference, which only GSLICE has.

Controllers are at what they settle at: GPUColo's sleep, and share where sleep is not enough; GSLICE's shares, which add
up to 100 %. Measured latencies have a noise of 2 %, derived from the paper's R^2, which restarts jobs.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gpusched_env.display.frame import frame
from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.lib.criteria import CriterionMark, Kind
from gpusched_env.experiments.lib.verdicts import Simulation, Target, targets_table
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.games.fleet.baselines.registry import make_dispatcher
from gpusched_env.games.fleet.co_location import published_fleet, shipped_rates
from gpusched_env.games.fleet.device import run_fleet
from gpusched_env.games.fleet.problem import FleetProblem, GpuKind
from gpusched_env.games.fleet.workload.jobs import DAY_US, MOST_GB, RUN_TIME_SIGMA, SLO_STRETCH, FleetTrace

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

DAYS, GPUS = 57, 6500
COMPARED: Final = ("no-colocation", "separate", "gslice", "gpucolo")
SAFE: Final = "gpucolo(worst=True, inference=0.6)"
NAMES: Final = {
    "no-colocation": "No co-location",
    "separate": "Separate, 5 to 1",
    "first-fit": "First fit, no control",
    "gslice": "GSLICE",
    "gpucolo": "GPUColo",
    "gpucolo(worst=True)": "GPUColo, the worst job at its SLO",
    "gpucolo(best=True)": "GPUColo, best fit",
    SAFE: "GPUColo, the worst job, inference up to 60 %",
}
VIOLATIONS: Final = {"gslice": (20.0, 100.0), "gpucolo": (0.0, 2.0)}
"""Violations that hold, per cent."""
RATIOS: Final = (0.5, 1.0, 2.0, 3.0)
RATIO_SCALE, ABLATION_SCALE = 0.25, 0.5
TOLERANCE: Final = 0.15
DISTURBANCE_FACTORS: Final = (0.9, 1.1)
"""The mean error of batches on random mixes, as a factor on what others do to them."""

MARKS: Final = (
    CriterionMark(
        "GPUs in use, No co-location",
        Kind.FITTED,
        "Jobs are drawn so that this many are there at a time in the mean.",
    ),
    CriterionMark(
        "GPUs in use, Separate, 5 to 1",
        Kind.FITTED,
        "That classes are 3 to 1 at any time, and not only in jobs, was taken from this count.",
    ),
    *(
        CriterionMark(
            f"GPUs in use, {name}",
            Kind.PREDICTED,
            "Utilisations and memory are the trace's, and no count of a system that shares GPUs was used.",
            "nobody shares: 3080",
        )
        for name in ("GSLICE", "GPUColo")
    ),
    CriterionMark(
        "% of GPUs saved over *",
        Kind.PREDICTED,
        "It is the quotient of two other criteria, and says little beyond them.",
        "nobody shares: 0",
    ),
    CriterionMark(
        "% of violations, GSLICE",
        Kind.VACUOUS,
        "The range goes to 100 %, and GPUs that nobody controls lie within.",
        "first fit without control: 47, inside",
    ),
    CriterionMark(
        "% of violations, GPUColo",
        Kind.PREDICTED,
        "Rates are fitted block by block, and no share of violations was used.",
        "first fit without control: 47",
    ),
)

OUTCOME: Final = """\
Why: GPUColo needs {gpus:.0f} GPUs and saves {saved:.0f} % of those without co-location, a little more than
published: first fit on utilisation packs {packed:.1f} jobs with the published utilisations on a GPU, where the
paper's counts come to 4.0. Which jobs the paper kept, and how long they are by class, is not published.

Violations are not 1.1 %, but {late:.0%} ({free:.0%} without control). Sleep of training takes away what
training adds, no more. First fit also fills GPUs with inference, whose batches then slow each other beyond
their SLO whatever training does; and a mean that is held at the SLO leaves some of its jobs above. In the
paper's simulator a job runs at its SLO unless the controller is saturated. If the worst job is held, and
inference has 60 % of a GPU at most, violations are {safe_late:.1%} with {safe:.0f} GPUs, which still saves
{safe_saved:.0f} %.

GSLICE needs {gslice:.0f} GPUs, so that GPUColo saves {saved_gslice:.0f} % and not 50.2 %. With shares that add
up to 100 %, one inference job with such an SLO needs half of the SMs, and first fit puts several on a GPU:
{gslice_late:.0%} of them violate it, and training takes {gslice_stretch:.1f} times as long. How the paper's
GSLICE admits jobs is not given.

Separate needs {separate:.0f}: a unit of six stays in use while one long job is there. Without co-location the
count is that of the jobs drawn, and checks no more than that they are placed.
"""


@dataclass(frozen=True)
class FleetFigures:
    """What comes out of a run."""

    gpus: float
    """GPUs in use, mean."""
    running: float
    """Jobs on GPUs, mean."""
    violations: float
    late_requests: float
    training_stretch: float
    gpus_by_day: tuple[float, ...]


@dataclass(frozen=True)
class FleetDays:
    """57 days of a dispatcher."""

    dispatcher: str
    rates: str = "block-level"
    seed: int = 0
    ratio: float = 3.0
    """Ratio of inference to training."""
    scale: float = 1.0
    disturbance: float = 1.0
    """Factor on what others do to batches."""
    noise: float | None = None
    """Noise of measured latencies, in place of the model's."""
    slo: float = SLO_STRETCH
    """SLO of a batch, over its time alone."""
    run_time_sigma: float = RUN_TIME_SIGMA

    def run(self, device: str) -> FleetFigures:
        model = shipped_rates(self.rates)
        model = model._replace(
            inference_by_inference=model.inference_by_inference * self.disturbance,
            inference_by_training=model.inference_by_training * self.disturbance,
            noise=model.noise if self.noise is None else self.noise,
        )
        jobs = FleetTrace(inference_to_training=self.ratio, scale=self.scale, run_time_sigma=self.run_time_sigma).draw(
            self.seed
        )
        jobs["slo_us"] *= self.slo / SLO_STRETCH
        kinds = (GpuKind("V100M32", round(GPUS * self.scale), MOST_GB),)
        problem = FleetProblem("PAI, drawn", jobs, kinds, model, DAYS * DAY_US)
        run = run_fleet(make_dispatcher(self.dispatcher), problem)
        by_day = run.used.reshape(DAYS, -1).mean(axis=1) / self.scale
        return FleetFigures(
            run.gpus / self.scale,
            float(run.running.mean()) / self.scale,
            run.violations,
            run.late_requests,
            run.training_stretch,
            tuple(np.round(by_day, 1).tolist()),
        )


ABLATIONS: Final[dict[str, dict[str, Any]]] = {
    "as above": {},
    "batches are disturbed 10 % less": {"disturbance": DISTURBANCE_FACTORS[0]},
    "batches are disturbed 10 % more": {"disturbance": DISTURBANCE_FACTORS[1]},
    "latencies are measured without noise": {"noise": 0.0},
    "what training does to batches is as published": {"rates": "published"},
    "an SLO of 1.80 times the latency alone (the motivating example)": {"slo": 1.80},
    "a 90th percentile of run times at 5 times the median": {"run_time_sigma": 1.256},
}


def ablation(dispatcher: str, what: str) -> FleetDays:
    """A run with other assumptions."""
    return FleetDays(dispatcher, scale=ABLATION_SCALE, **ABLATIONS[what])


class Paper(Reproduction):
    """Counts of GPUs and violations."""

    name = "gpucolo-fleet"
    title = "GPUColo's fleet"
    marks = MARKS

    @staticmethod
    def cells() -> Sequence[Simulation]:
        changed = [ablation(who, what) for what in ABLATIONS for who in ("gslice", "gpucolo")]
        ratios = [FleetDays(who, ratio=ratio, scale=RATIO_SCALE) for ratio in RATIOS for who in ("gslice", "gpucolo")]
        return [*map(FleetDays, NAMES), *changed, *ratios]

    @functools.cached_property
    def main(self) -> dict[str, FleetFigures]:
        """The figures by dispatcher."""
        return {name: self.runs[FleetDays(name)] for name in NAMES}

    def _saved(self, other: str) -> float:
        return 100.0 * (1.0 - self.main["gpucolo"].gpus / self.main[other].gpus)

    def checks(self) -> list[Target]:
        published = published_fleet()
        counts = [
            Target.of_figure(f"GPUs in use, {NAMES[name]}", gpus, self.main[name].gpus, TOLERANCE * gpus)
            for name, gpus in published["gpus"].items()
        ]
        savings = [
            Target.of_figure(f"% of GPUs saved over {NAMES[name]}", saved, self._saved(name), slack)
            for (name, saved), slack in zip(published["saved_pct"].items(), (5.0, 8.0), strict=True)
        ]
        return [
            *counts,
            *savings,
            *(
                Target(
                    f"% of violations, {NAMES[name]}",
                    *VIOLATIONS[name],
                    100.0 * self.main[name].violations,
                    published=f"{percent:g}",
                )
                for name, percent in published["violations_pct"].items()
            ),
        ]

    def summary(self) -> str:
        found = self.main
        return (
            f"{self.tally()}; "
            + ", ".join(f"{NAMES[name]} {found[name].gpus:.0f}" for name in COMPARED)
            + f" GPUs; GPUColo saves {self._saved('no-colocation'):.0f} % and {self._saved('gslice'):.0f} % of them"
        )

    def outcome(self) -> str:
        found = self.main
        colo, plain, slice_ = (found[name] for name in ("gpucolo", "no-colocation", "gslice"))
        safe = found[SAFE]
        return OUTCOME.format(
            gpus=colo.gpus,
            packed=colo.running / colo.gpus,
            saved=self._saved("no-colocation"),
            saved_gslice=self._saved("gslice"),
            gslice=slice_.gpus,
            gslice_late=slice_.violations,
            gslice_stretch=slice_.training_stretch,
            late=colo.violations,
            free=found["first-fit"].violations,
            safe=safe.gpus,
            safe_late=safe.violations,
            safe_saved=100.0 * (1.0 - safe.gpus / plain.gpus),
            separate=found["separate"].gpus,
        )

    def tables(self) -> list[Table]:
        return [
            targets_table("What is judged", self.checks()),
            self._dispatchers(),
            self._days(),
            self._changed(),
            self._ratios(),
        ]

    def _dispatchers(self) -> Table:
        rows = [
            (
                NAMES[name],
                f"{found.gpus:.0f}",
                f"{found.running:.0f}",
                f"{found.violations:.1%}",
                f"{found.late_requests:.1%}",
                NONE if found.training_stretch != found.training_stretch else f"{found.training_stretch:.2f}",
            )
            for name, found in self.main.items()
        ]
        heads = ("dispatcher", "GPUs in use", "jobs on GPUs", "violations", "late requests", "length of training")
        return Table("Dispatchers", heads, rows, "Length of training: in the queue and on GPUs, over that alone.")

    def _days(self) -> Table:
        spans = {"0 to 20": (0, 20), "20 to 40 (burst)": (20, 40), "40 to 57": (40, DAYS)}
        rows = [
            (name, *(f"{np.mean(self.main[who].gpus_by_day[first:last]):.0f}" for who in COMPARED))
            for name, (first, last) in spans.items()
        ]
        return Table("GPUs in use by days", ("days", *(NAMES[who] for who in COMPARED)), rows)

    def _changed(self) -> Table:
        rows = []
        for what in ABLATIONS:
            slice_, colo = (self.runs[ablation(who, what)] for who in ("gslice", "gpucolo"))
            rows.append(
                (what, f"{slice_.gpus:.0f}", f"{slice_.violations:.1%}", f"{colo.gpus:.0f}", f"{colo.violations:.1%}")
            )
        heads = ("with", "GPUs, GSLICE", "violations, GSLICE", "GPUs, GPUColo", "violations, GPUColo")
        note = "Half of the fleet and of its jobs. The mean error of the rate model on random mixes is 10 %."
        return Table("Other assumptions", heads, rows, note)

    def _ratios(self) -> Table:
        published = published_fleet()
        low, high = published["gpucolo_violations_pct_by_ratio"]
        rows = []
        for ratio in RATIOS:
            slice_, colo = (self.runs[FleetDays(w, ratio=ratio, scale=RATIO_SCALE)] for w in ("gslice", "gpucolo"))
            theirs = published["gslice_violations_pct_by_ratio"][f"{ratio:g}"]
            ours = (f"{slice_.violations:.1%}", f"{colo.violations:.1%}")
            rows.append((f"{ratio:g} to 1", f"{theirs:g} %", ours[0], f"{low:g} to {high:g} %", ours[1]))
        heads = ("inference to training", "GSLICE, published", "ours", "GPUColo, published", "ours")
        return Table("Violations by ratio", heads, rows, "A quarter of the fleet and of its jobs.")

    def attachments(self) -> dict[str, DataFrame]:
        rows = [{"day": day, **{who: self.main[who].gpus_by_day[day] for who in self.main}} for day in range(DAYS)]
        return {"days": frame(rows)}
