"""What packing pods onto GPUs costs the pods: placements of a cluster, played as co-location on its GPUs.

FGD, as any policy that packs, puts pods with a part of a GPU together. The [cluster](fgd.md) counts GPUs only. Here the
pods that share one are jobs of the [fleet](fleet.md), whose model says how jobs on a GPU slow each other: all such
pods of a run by [fitted rates](fleet-rates.md), and a cut of eight GPUs with several pods each block by block.

The default workload comes until it has asked for half, or for eight tenths, of the GPUs, so that every policy has the
same pods (but for a few that Random drops) and only puts them elsewhere. Random is the one that spreads.

The table of pods says which part of a GPU a pod asks for, and whether it is latency-sensitive. It does not say what
kernels it runs, whether it uses its part, or what its SLO is. So figures hold for these readings, and for no pod of
the recording:

* *services*: each pod is inference, which is on the GPU for the part of the time that it asks for;
* *by class*: latency-sensitive pods are (a quarter of those that share), best-effort ones train, and take the GPU
  whenever they can: nothing holds them to their part.

Programs are five recorded networks on an H100, drawn for each pod, and a mean latency may be 1.69 times that alone, as
in [GPUColo's fleet](gpucolo-fleet.md). Nothing controls who gets the GPU. Jobs are watched for two seconds.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.lib.criteria import CriterionMark, Kind
from gpusched_env.experiments.lib.statistics import Interval, mean_interval
from gpusched_env.experiments.lib.verdicts import Simulation, Target
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.games.fleet.cluster.policies.registry import POLICIES
from gpusched_env.games.fleet.cluster.run import run_cluster
from gpusched_env.games.fleet.cluster.shipped import FOLDER, shipped_problem
from gpusched_env.games.fleet.device import FleetRun, run_fleet
from gpusched_env.games.fleet.experiments.levels import BlockLevel
from gpusched_env.games.fleet.experiments.shared_gpus import (
    BY_CLASS,
    READINGS,
    SERVICES,
    fleet_of_cut,
    shared_gpus,
)
from gpusched_env.games.fleet.papers.fgd.runs import NAMES
from gpusched_env.games.fleet.papers.fleet_blocks import LEVELS, POINTS, RATIO

SHOWN: Final = ("random", "packing", "best-fit", "fgd")
RATIOS: Final = (0.5, 0.8)
SEEDS: Final = tuple(range(43, 53))
CUT_SEED, CUT_RATIO, CUT_GPUS = 43, 0.8, 8
CUT_POLICIES: Final = ("random", "best-fit", "fgd")
MARKS: Final = (
    CriterionMark(
        "latency, rates over blocks, *",
        Kind.PREDICTED,
        "Rates are fitted to other mixes of the same programs. That they hold for these was open.",
        "nobody disturbs anybody: about 0.6",
    ),
    CriterionMark(
        "violations, rates less blocks, *",
        Kind.PREDICTED,
        "As above; of some sixteen jobs, each is six points.",
        "nobody disturbs anybody: 0 less what there are block by block",
    ),
    CriterionMark(
        "length of training, rates over blocks, *",
        Kind.VACUOUS,
        "Training is slowed by so little that the control passes as well.",
        "nobody disturbs anybody: 0.88 to 0.93, inside for two of three",
    ),
)
OUTCOME: Final = """\
At a demand of 80 % FGD has pods with a part of a GPU on {gpus} fewer GPUs than Random, which spreads, and on {beside}
fewer than BestFit. If all these pods are services, their latency is {fgd} times that alone, {best_fit} with BestFit and
{random} with Random; {late} % of them miss their SLO, {late_best} % with BestFit and {late_random} % with Random. FGD
less BestFit: {latency} of the latency alone, {violations} points of missed SLOs.

If best-effort pods train, services beside them take {class_fgd} times as long as alone, {class_best} with BestFit and
{class_random} with Random; {class_late} %, {class_late_best} % and {class_late_random} % miss their SLO. Training takes
{train_fgd}, {train_best} and {train_random} times as long.

Block by block, a cut of {cut} GPUs has latencies of {low:.2f} to {high:.2f} times those by rates, and {more} missed
SLOs: their shares above are too low, which is what does not come out.
"""


@dataclass(frozen=True)
class SharingFigures:
    """Pods that share GPUs, or could: what comes out for them."""

    gpus: int
    """GPUs with such pods."""
    pods: int
    with_others: float
    """The part of the pods that have others on their GPU."""
    latency: float
    """Latency of inference over that alone, mean over jobs."""
    violations: float
    """The part of the inference whose mean latency is later than its SLO."""
    training: float
    """Length of training over that alone, mean over jobs; 1 where nobody trains."""

    @property
    def violations_pct(self) -> float:
        """The same, per cent."""
        return 100.0 * self.violations

    @classmethod
    def of(cls, run: FleetRun, cut: list[list[int]]) -> SharingFigures:
        """What came out for the pods of ``cut``."""
        jobs, state = run.problem.jobs, run.state
        serves = jobs["training"] == 0
        ratio = state.ratio_us[serves] / state.served_us[serves]
        done_us = (jobs["work_us"] - state.left_us)[~serves]
        pods = sum(map(len, cut))
        return cls(
            gpus=len(cut),
            pods=pods,
            with_others=sum(len(own) for own in cut if len(own) > 1) / pods,
            latency=float((ratio * jobs["slo_us"][serves] / jobs["step_us"][serves]).mean()),
            violations=run.violations,
            training=float((run.problem.horizon_us / done_us).mean()) if len(done_us) else 1.0,
        )


@dataclass(frozen=True)
class AllShared:
    """All GPUs of a cluster that pods share, by rates."""

    policy: str
    ratio: float
    reading: str
    seed: int

    def run(self, device: str) -> SharingFigures:
        run = run_cluster(shipped_problem("default"), POLICIES[self.policy], self.seed, self.ratio)
        cut = shared_gpus(run)
        problem, dispatcher = fleet_of_cut(run, cut, self.reading, device)
        return SharingFigures.of(run_fleet(dispatcher, problem), cut)


@dataclass(frozen=True)
class SharedCut:
    """Some GPUs with several pods, evenly over all of them, at a level of simulation."""

    policy: str
    reading: str
    level: str

    def run(self, device: str) -> SharingFigures:
        run = run_cluster(shipped_problem("default"), POLICIES[self.policy], CUT_SEED, CUT_RATIO)
        several = [own for own in shared_gpus(run) if len(own) > 1]
        cut = [several[place] for place in np.linspace(0, len(several) - 1, CUT_GPUS).astype(int)]
        problem, dispatcher = fleet_of_cut(run, cut, self.reading, device)
        blocks = BlockLevel(device)(problem) if self.level == "blocks" else None
        return SharingFigures.of(run_fleet(dispatcher, problem, blocks=blocks), cut)


class Paper(Reproduction):
    """What packing costs."""

    name = "fgd-co-location"
    title = "What packing costs the pods"
    marks = MARKS

    @staticmethod
    def cells() -> Sequence[Simulation]:
        return [
            *(SharedCut(*of) for of in itertools.product(CUT_POLICIES, reversed(READINGS), LEVELS)),
            *(AllShared(*of) for of in itertools.product(SHOWN, RATIOS, READINGS, SEEDS)),
        ]

    @staticmethod
    def reads() -> Sequence[Path]:
        return sorted(FOLDER.glob("*.gz"))

    def mean(self, figure: str, policy: str, ratio: float, reading: str) -> Interval:
        """A figure's mean over seeds."""
        return mean_interval([getattr(self.runs[AllShared(policy, ratio, reading, seed)], figure) for seed in SEEDS])

    def less(self, figure: str, ratio: float, reading: str) -> Interval:
        """FGD's figure less BestFit's, seed by seed."""
        ours, theirs = (
            [getattr(self.runs[AllShared(policy, ratio, reading, seed)], figure) for seed in SEEDS]
            for policy in ("fgd", "best-fit")
        )
        return mean_interval([one - other for one, other in zip(ours, theirs, strict=True)])

    @functools.cached_property
    def both(self) -> dict[tuple[str, str], tuple[SharingFigures, SharingFigures]]:
        """Figures of a cut block by block and by rates, by policy and reading."""
        return {
            key: (self.runs[SharedCut(*key, "blocks")], self.runs[SharedCut(*key, "rates")])
            for key in itertools.product(CUT_POLICIES, READINGS)
        }

    def checks(self) -> list[Target]:
        found = []
        for (policy, reading), (blocks, rates) in self.both.items():
            where = f"{NAMES[policy]}, {reading}"
            more = rates.violations - blocks.violations
            found += [
                Target(f"latency, rates over blocks, {where}", *RATIO, rates.latency / blocks.latency),
                Target(f"violations, rates less blocks, {where}", -POINTS, POINTS, more),
            ]
            if reading == BY_CLASS:
                ratio = rates.training / blocks.training
                found.append(Target(f"length of training, rates over blocks, {where}", *RATIO, ratio))
        return found

    def summary(self) -> str:
        return f"{self.tally()}; services that miss their SLO with FGD less BestFit: {self._late()} points"

    def _late(self) -> str:
        """Per cent of the services that miss their SLO, FGD less BestFit."""
        return self.less("violations_pct", CUT_RATIO, SERVICES).text("{:+z.2f}")

    def outcome(self) -> str:
        def mean(figure: str, policy: str, reading: str) -> float:
            return self.mean(figure, policy, CUT_RATIO, reading).mean

        over = [blocks.latency / rates.latency for blocks, rates in self.both.values()]
        more = [blocks.violations > rates.violations for blocks, rates in self.both.values()]
        names = {"fgd": "fgd", "best": "best-fit", "random": "random"}
        fgd_gpus = mean("gpus", "fgd", SERVICES)
        return OUTCOME.format(
            gpus=f"{mean('gpus', 'random', SERVICES) - fgd_gpus:.0f}",
            beside=f"{mean('gpus', 'best-fit', SERVICES) - fgd_gpus:.0f}",
            fgd=f"{mean('latency', 'fgd', SERVICES):.2f}",
            best_fit=f"{mean('latency', 'best-fit', SERVICES):.2f}",
            random=f"{mean('latency', 'random', SERVICES):.2f}",
            late=f"{mean('violations_pct', 'fgd', SERVICES):.1f}",
            late_best=f"{mean('violations_pct', 'best-fit', SERVICES):.1f}",
            late_random=f"{mean('violations_pct', 'random', SERVICES):.1f}",
            latency=self.less("latency", CUT_RATIO, SERVICES).text("{:+z.3f}"),
            violations=self._late(),
            class_late=f"{mean('violations_pct', 'fgd', BY_CLASS):.1f}",
            class_late_best=f"{mean('violations_pct', 'best-fit', BY_CLASS):.1f}",
            class_late_random=f"{mean('violations_pct', 'random', BY_CLASS):.1f}",
            **{f"class_{short}": f"{mean('latency', name, BY_CLASS):.2f}" for short, name in names.items()},
            **{f"train_{short}": f"{mean('training', name, BY_CLASS):.2f}" for short, name in names.items()},
            cut=CUT_GPUS,
            low=min(over),
            high=max(over),
            more=f"in {sum(more)} of {len(more)} cases more",
        )

    def tables(self) -> list[Table]:
        rows = []
        for ratio, reading, policy in itertools.product(RATIOS, READINGS, SHOWN):
            gpus, pods, others, latency, late, training = (
                self.mean(figure, policy, ratio, reading)
                for figure in ("gpus", "pods", "with_others", "latency", "violations", "training")
            )
            rows.append(
                (
                    *(f"{ratio:.0%}", reading, NAMES[policy], f"{gpus.mean:.0f}", f"{pods.mean:.0f}"),
                    *(f"{others.mean:.0%}", latency.text("{:.3f}"), late.text("{:.1%}")),
                    training.text("{:.3f}") if reading == BY_CLASS else NONE,
                )
            )
        heads = (
            *("demand", "reading", "policy", "GPUs with shared pods", "pods", "not alone"),
            *("latency over alone", "SLOs missed", "length of training over alone"),
        )
        note = f"By rates, all pods with a part of a GPU; means over {len(SEEDS)} seeds, with 95 % intervals."
        cut = [
            (
                *(NAMES[policy], reading, level, str(of.pods), f"{of.latency:.2f}", f"{of.violations:.0%}"),
                f"{of.training:.2f}" if reading == BY_CLASS else NONE,
            )
            for (policy, reading), both in self.both.items()
            for level, of in zip(LEVELS, both, strict=True)
        ]
        cut_heads = (
            *("policy", "reading", "level", "pods", "latency over alone", "SLOs missed"),
            "length of training over alone",
        )
        return [
            Table("Pods that share GPUs", heads, rows, note),
            Table(f"{CUT_GPUS} GPUs with several pods, at both levels", cut_heads, cut),
        ]
