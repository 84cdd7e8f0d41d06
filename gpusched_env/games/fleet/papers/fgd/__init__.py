"""FGD (Weng et al., *Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent*,
USENIX ATC 2023) on the published cluster, beside the published results of six policies.

The cluster is Alibaba's: 1,213 nodes with CPU, memory and 6,212 GPUs of seven models. A *pod* asks for CPU, memory, and
for no GPU, a part of one (thousandths), or several; some pods allow some models only. Pods come until they have asked
for 1.3 times the GPUs. None leaves ([elsewhere](fgd-lifetimes.md) they do); what fits nowhere is dropped.

A *workload* is a list of pods. *Default* is the recorded one: 13 % of the pods need no GPU, pods that share a GPU are
28 % of the demand for GPUs, those with several 7 %, and none chooses a model. In the others that is different: *cpu200*
has 20 % of pods without GPU, in *gpushare40* pods that share are 40 % of the demand, in *multigpu40* those with several
GPUs are, and in *gpuspec25* 25 % of the pods with GPUs allow some models only.

What is free on a node is *fragmented* for a pod as far as the pod cannot use it: all of it if the pod does not fit,
else the GPUs with too little left. The expectation over the workload's typical pods counts. FGD puts a pod where that
grows least. The other policies are Random, DotProd, Clustering, Packing and BestFit.

Facts that the paper leaves open are those of its public simulator: scores are cut to whole hundredths, and of equal
nodes the first in an order drawn for the run is taken. Pods and nodes are shuffled by the simulator's generator from
the published seeds. Random alone draws in an order that its threads decide: its runs follow the same law, and differ.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.criteria import CriterionMark, Kind
from gpusched_env.experiments.lib.verdicts import Simulation, Target, as_row
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.games.fleet.cluster.shipped import FOLDER
from gpusched_env.games.fleet.papers.fgd.pictures import curves_svg
from gpusched_env.games.fleet.papers.fgd.runs import (
    DIGITS,
    NAMES,
    OTHER_SEEDS,
    SEEDS,
    WORKLOADS,
    AllocationCurves,
    PlacedWorkload,
    curves_of,
    equal_runs,
    published,
)

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

USED_POINTS, CURVE_POINTS = 0.3, 0.7
"""How far means may lie from the published ones: GPUs in use at 130 %, and anywhere on the curve; points."""
FRAGMENTED_PERCENT: Final = 6.0
"""The same of fragmentation, per cent of the published mean."""
STANDARD_ERRORS: Final = 2.0
DRAWS: Final = "random"
NEW_SEEDS: Final = slice(4, None)
"""Of the published seeds, those that nothing was found with."""
CONTROLS: Final = "BestFit in place of FGD: 0 of 9 hold; Clustering in place of Packing: 8 of 9"

MARKS: Final = (
    CriterionMark(
        "% of GPUs in use, *",
        Kind.PREDICTED,
        "Rules are the paper's and its simulator's; no constant was chosen by a published result.",
        CONTROLS,
    ),
    CriterionMark(
        "largest difference of the curve in points, *",
        Kind.PREDICTED,
        "As above. Where everything still fits, any policy would pass.",
        CONTROLS,
    ),
    CriterionMark(
        "largest difference of fragmentation in %, *",
        Kind.PREDICTED,
        "As above, for the measure: typical pods, their weights, what is fragmented for whom.",
        CONTROLS,
    ),
    CriterionMark(
        "pairs of policies out of order, *",
        Kind.PREDICTED,
        "Of pairs whose published means differ by more than two standard errors; it says little beyond the means.",
        "all policies equal: every pair",
    ),
    CriterionMark(
        "runs of new seeds equal to the last digit, *",
        Kind.PREDICTED,
        "One number was found with published curves of seeds 42 to 45: how many draws lie between the shuffles of pods "
        "and of nodes. Only seeds 46 to 51 count.",
        "one draw more or less: none is",
    ),
)

OUTCOME: Final = """\
{equal} of {runs} published runs of the five policies that draw nothing come out equal to the last published digit, at
every per cent of the demand, in GPUs in use and in fragmentation. So the rules that the paper leaves open are the right
ones: ties, rounding of scores, which GPU of a node a pod gets, which pods are typical.

FGD leaves the fewest GPUs idle on {first} of {workloads} workloads. When pods have asked for 130 %, {fgd_low:.1f} to
{fgd_high:.1f} % are in use, {gain_low:.1f} to {gain_high:.1f} points more than with the best other policy:
{others}. With seeds of our own, so other pods in another order, the gain is {own_low:.1f} to {own_high:.1f} points.

Random is judged by its means: the largest difference at 130 % is {random:.2f} points.
"""

LEGEND: Final = """\
## A cluster of your own

Two tables of comma-separated values, each with a line of names; they may be gzipped, and have more columns.

```sh
gpusched lab cluster --nodes nodes.csv --pods pods.csv --policies best-fit,fgd --json placed.json
```

| column | of | is |
|---|---|---|
| `cpu_milli` | both | thousandths of a core |
| `memory_mib` | both | memory in MiB |
| `gpu` | nodes | GPUs, 0 to 16 |
| `model` | nodes | the model of its GPUs; empty without GPUs |
| `num_gpu` | pods | GPUs, 0 to 16 |
| `gpu_milli` | pods | thousandths of each: 1000, less of a shared one, 0 without GPUs |
| `gpu_spec` | pods | models that it can run on, separated by `|`; empty or no such column: any |
| `count` | both | so many of them; no such column: one |

Policies divide CPU and GPUs by what the largest node has. A table with a mistake is refused, with line and column."""


class Paper(Reproduction):
    """Curves of allocation and fragmentation."""

    name = "fgd"
    title = "FGD: fragmentation gradient descent"
    legend = LEGEND
    marks = MARKS
    packed = ("curves",)

    @staticmethod
    def cells() -> Sequence[Simulation]:
        return [
            PlacedWorkload(workload, policy, seed)
            for workload in WORKLOADS
            for policy in NAMES
            for seed in (*SEEDS, *OTHER_SEEDS)
        ]

    @staticmethod
    def reads() -> Sequence[Path]:
        return sorted(FOLDER.glob("*.gz"))

    @functools.cached_property
    def ours(self) -> dict[tuple[str, str], AllocationCurves]:
        """Curves of the published seeds by workload and policy."""
        return {(w, p): curves_of(self.runs, w, p, SEEDS) for w in WORKLOADS for p in NAMES}

    @functools.cached_property
    def others(self) -> dict[tuple[str, str], AllocationCurves]:
        """Curves of our own seeds."""
        return {(w, p): curves_of(self.runs, w, p, OTHER_SEEDS) for w in WORKLOADS for p in NAMES}

    @functools.cached_property
    def theirs(self) -> dict[tuple[str, str], AllocationCurves]:
        """The published curves."""
        return {key: published(*key) for key in self.ours}

    def checks(self) -> list[Target]:
        found: list[Target] = []
        for key, theirs in self.theirs.items():
            ours, what = self.ours[key], f"{key[0]}, {NAMES[key[1]]}"
            slack = max(USED_POINTS, STANDARD_ERRORS * theirs.standard_error)
            found += [
                Target.of_figure(f"% of GPUs in use, {what}", theirs.used, ours.used, slack),
                Target(f"largest difference of the curve in points, {what}", 0.0, CURVE_POINTS, _points(ours, theirs)),
                Target(
                    f"largest difference of fragmentation in %, {what}", 0.0, FRAGMENTED_PERCENT, _percent(ours, theirs)
                ),
            ]
        found += [
            Target(f"pairs of policies out of order, {workload}", 0.0, 0.0, float(len(self._out_of_order(workload))))
            for workload in WORKLOADS
        ]
        runs = float(len(SEEDS[NEW_SEEDS]) * len(WORKLOADS))
        return found + [
            Target(f"runs of new seeds equal to the last digit, {NAMES[policy]}", runs, runs, self._equal(policy))
            for policy in NAMES
            if policy != DRAWS
        ]

    def _out_of_order(self, workload: str) -> list[tuple[str, str]]:
        """Pairs of policies whose published means differ beyond chance, the better first, which do not so here."""
        found = []
        for better in NAMES:
            for worse in NAMES:
                high, low = self.theirs[workload, better], self.theirs[workload, worse]
                noise = STANDARD_ERRORS * float(np.hypot(high.standard_error, low.standard_error))
                here = self.ours[workload, better].used - self.ours[workload, worse].used
                if high.used - low.used > noise and here <= 0.0:
                    found.append((better, worse))
        return found

    def _equal(self, policy: str, seeds: slice = NEW_SEEDS) -> float:
        """Runs of the seeds that are equal to the published ones."""
        equal = (equal_runs(self.ours[w, policy], self.theirs[w, policy])[seeds] for w in WORKLOADS)
        return float(sum(each.sum() for each in equal))

    def _gains(self, curves: dict[tuple[str, str], AllocationCurves]) -> dict[str, tuple[float, str]]:
        """By workload, points by which FGD has more GPUs in use than the best other policy, and which that is."""
        found = {}
        for workload in WORKLOADS:
            best = max((policy for policy in NAMES if policy != "fgd"), key=lambda p: curves[workload, p].used)
            found[workload] = curves[workload, "fgd"].used - curves[workload, best].used, NAMES[best]
        return found

    def summary(self) -> str:
        gains = [gain for gain, _ in self._gains(self.ours).values()]
        gain = f"{min(gains):.1f} to {max(gains):.1f}"
        return f"{self.tally()}; FGD has {gain} points more GPUs in use than any other policy"

    def outcome(self) -> str:
        fixed = [policy for policy in NAMES if policy != DRAWS]
        used = [self.ours[workload, "fgd"].used for workload in WORKLOADS]
        ours, own = ([gain for gain, _ in self._gains(of).values()] for of in (self.ours, self.others))
        best = [name for _, name in self._gains(self.ours).values()]
        return OUTCOME.format(
            equal=f"{sum(self._equal(policy, slice(None)) for policy in fixed):.0f}",
            runs=len(fixed) * len(SEEDS) * len(WORKLOADS),
            first=sum(gain > 0.0 for gain in ours),
            workloads=len(WORKLOADS),
            fgd_low=min(used),
            fgd_high=max(used),
            gain_low=min(ours),
            gain_high=max(ours),
            others=" and ".join(f"{name} on {best.count(name)} of them" for name in dict.fromkeys(best)),
            own_low=min(own),
            own_high=max(own),
            random=max(abs(self.ours[w, DRAWS].used - self.theirs[w, DRAWS].used) for w in WORKLOADS),
        )

    def tables(self) -> list[Table]:
        note = "Per cent of the GPUs, when pods have asked for 130 %; published in brackets. Means of ten seeds."
        picture = f"![GPUs in use and fragmented GPUs by demand]({self.name}-curves.svg)"
        lead = [(w, *(f"{self.ours[w, p].used:.2f} ({self.theirs[w, p].used:.2f})" for p in NAMES)) for w in WORKLOADS]
        errors = [
            (
                *(w, NAMES[p], f"{ours.used - theirs.used:+z.3f}", f"{theirs.standard_error:.3f}"),
                *(f"{_points(ours, theirs):.3f}", f"{_percent(ours, theirs):.2f}"),
                *(f"{self.others[w, p].used - theirs.used:+z.2f}", f"{self.others[w, p].standard_error:.3f}"),
            )
            for (w, p), ours in self.ours.items()
            for theirs in [self.theirs[w, p]]
        ]
        heads = (
            *("workload", "policy", "in use at 130 %, points", "standard error, published"),
            *("curve, points", "fragmentation, %", "with our own seeds, points", "standard error of these"),
        )
        return [
            Table("GPUs in use", ("workload", *NAMES.values()), lead, f"{note}\n\n{picture}"),
            Table("Differences from the published means", heads, errors, "Of curves, the largest at any per cent."),
        ]

    def pictures(self) -> dict[str, bytes]:
        return {"curves": curves_svg(self.ours, self.theirs)}

    def attachments(self) -> dict[str, DataFrame]:
        rows = []
        for (workload, policy), ours in self.ours.items():
            theirs = self.theirs[workload, policy]
            means = [curves.mean(axis=0).round(DIGITS).tolist() for curves in (*ours, *theirs)]
            for percent, (used, fragmented, their_used, their_fragmented) in enumerate(zip(*means, strict=True)):
                rows.append(
                    {
                        "workload": workload,
                        "policy": NAMES[policy],
                        "asked": percent,
                        "in_use": used,
                        "fragmented": fragmented,
                        "published_in_use": their_used,
                        "published_fragmented": their_fragmented,
                    }
                )
        return {"curves": frame(rows)}

    def data(self) -> dict[str, Any]:
        ends = [
            {
                **as_row(cell),
                "in_use_pct": figures.allocation[-1],
                "fragmented_pct": figures.fragmentation[-1],
            }
            for cell, figures in self.runs.items()
        ]
        return {"checks": [as_row(check) for check in self.checks()], "runs": ends}


def _points(ours: AllocationCurves, theirs: AllocationCurves) -> float:
    """The largest difference of means on the curve of GPUs in use."""
    return float(np.abs(ours.allocation.mean(axis=0) - theirs.allocation.mean(axis=0)).max())


def _percent(ours: AllocationCurves, theirs: AllocationCurves) -> float:
    """The largest difference of mean fragmentation, over the published one."""
    means = [curves.fragmentation.mean(axis=0) for curves in (ours, theirs)]
    return float(100.0 * np.abs(means[0] / means[1] - 1.0).max())
