"""FGD and other policies on the published cluster, whose pods wait, run and go.

In the [published runs](fgd.md) no pod ever goes. Here pods come and run as recorded, by the table of the same
publication (Weng et al., USENIX ATC 2023): 32 days in blocks of two. Every second block was looked at beforehand, the
other eight were held out. What is judged was written down before these were played.

Recorded pods need 66 of the 6,212 GPUs at a time, at most. So their arrivals are *compressed*: times between them are
divided by a factor, run times stay. A *load* of 0.9 means that pods would use 0.9 of the GPUs at a time, if nobody
waited (or of the CPU, or memory, where more is asked of these). A block over begins again. What came before the start,
and is not over, comes at the start. A run takes 12 hours, of which the last eight count.

A pod that fits nowhere waits. With *overtaking*, whoever fits goes, and of several the one that came first; nobody is
overtaken by a pod that asks for the same. That is how Kubernetes has it, without priorities and preemption. *In order*,
the first one that waits holds up all others.

**GPUs waited for** are those that waiting pods ask for, at a time, over the GPUs of the cluster. A wait is the time
until a pod is placed; of those that still wait in the end, the time until then.

Typical pods, by which fragmentation is measured, are those of the block.

What the table does not say: how long the 897 pods would have run that were never scheduled (they are left out), and the
34 that ran when the recording ended (they end there). A few long pods are up to three quarters of a block's GPU time.
At loads of 1 and above the queue grows as long as the run goes on: figures are of these eight hours.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.criteria import CriterionMark, Kind
from gpusched_env.experiments.lib.statistics import Interval, mean_interval
from gpusched_env.experiments.lib.verdicts import Simulation, Target
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.games.fleet.cluster.shipped import FOLDER, shipped_recording
from gpusched_env.games.fleet.papers.fgd.runs import NAMES
from gpusched_env.games.fleet.papers.fgd_lifetimes.pictures import fragmentation_svg
from gpusched_env.games.fleet.papers.fgd_lifetimes.runs import (
    BLOCKS,
    HELD_OUT,
    LOADS,
    LOOKED_AT,
    RULES,
    QueuedBlock,
    QueueFigures,
    typical_of,
)

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

OURS: Final = "fgd"
RIVALS: Final = tuple(policy for policy in NAMES if policy != OURS)
JUDGED_LOADS: Final = (0.95, 1.0)
"""Loads at which pods wait, and the cluster could run nearly all."""
FRAGMENTED_LOAD: Final = 0.9
SHOWN_PERCENT, MOSTLY = 0.005, 0.9
"""Per cent of the GPUs below which pods wait for nothing that is shown, and the part of a whole that is most of it."""
ALL_TYPICAL: Final = 1.0
SHOWN_LOADS: Final = (0.9, 0.95, 1.0)
FIGURES: Final = {
    "used_pct": "in use, %",
    "fragmented_pct": "fragmented, %",
    "waited_for_pct": "waited for, %",
    "mean_wait_s": "mean wait, s",
    "p95_wait_s": "95th percentile, s",
}
MARKS: Final = (
    CriterionMark(
        "FGD waits for fewer GPUs than *",
        Kind.PREDICTED,
        "The paper's claim, in a setting that it has not. The end of the interval over held-out blocks counts.",
        "BestFit in place of FGD, on blocks looked at: 5 of 20",
    ),
    CriterionMark(
        "FGD has more GPUs in use than *",
        Kind.PREDICTED,
        "As above; where everything is placed, GPUs in use are the load, and nothing could come out.",
        "BestFit in place of FGD, on blocks looked at: 6 of 20",
    ),
    CriterionMark(
        "FGD leaves fewer GPUs fragmented than *",
        Kind.PREDICTED,
        "As above. It is what FGD descends on, so that it says least.",
        "BestFit in place of FGD, on blocks looked at: 6 of 10",
    ),
)
OUTCOME: Final = """\
FGD leaves fewer GPUs fragmented, {fragmented} at a load of {calm_load:g}. That does not make pods wait less. At
{load:g} with overtaking, {overtaking}. In order, where one large pod holds up all others, {in_order}. In {quiet} of
{blocks} held-out blocks nobody waits at {load:g} with overtaking, by FGD or BestFit.

What was looked at afterwards, and is not judged: {small:.0f} % of the recorded pods ask for one GPU at most, and those
that go make room for others like them. Mostly pods with several GPUs wait: with FGD, in {large} of the {waits} blocks
with waiting more than nine tenths of it is theirs. As they are few, in {untypical} of {blocks} blocks none is among the
typical pods, by which FGD goes, and in the others they have {weight:.1f} % of the weight at most. To call all pods
typical changes little: GPUs waited for are {all_typical} % with overtaking.

At a load of {overloaded:g}, with overtaking, the difference to BestFit is {overload} points: who fits goes first, so
that hardly anything is left idle by any policy.
"""
LEGEND: Final = """\
## A policy and a recording of your own

```sh
gpusched lab cluster-queue --loads 0.9,0.95 --policies best-fit,fgd --hours 12
gpusched lab cluster-queue --recording pods.csv --nodes nodes.csv --in-order
```

A recording is a table of pods [as for the cluster](fgd.md#a-cluster-of-your-own), with `creation_time`,
`scheduled_time` and `deletion_time` in seconds. With `--copies 16 --loads 0.9 --hours 24 --policies fgd` 0.95 million
pods come to 99,392 GPUs: 27 seconds of one core, 284 MiB. Runs of this page go to a Ray cluster by `gpusched reproduce
fgd-lifetimes --ray-address auto`. A function of your own gives each node a score, and has the same queue:

```python
from gpusched_env.games.fleet.cluster.lifetimes.run import run_queue
from gpusched_env.games.fleet.cluster.lifetimes.stream import compressed
from gpusched_env.games.fleet.papers.fgd_lifetimes.runs import block_of


def emptiest(state, pods, typical, kind):
    return state.gpu_left.sum(axis=1)


problem, recording = block_of(0)
run = run_queue(problem, compressed(problem, recording, 0.95, 1.0), emptiest, 1.0)
print(run.used, run.waited_for)
```"""


class Paper(Reproduction):
    """Policies by load."""

    name = "fgd-lifetimes"
    title = "FGD where pods wait and go"
    legend = LEGEND
    marks = MARKS
    packed = ("blocks",)

    @staticmethod
    def cells() -> Sequence[Simulation]:
        return [
            QueuedBlock(block, policy, load, rule)
            for block, rule, load, policy in itertools.product(BLOCKS, RULES, LOADS, NAMES)
        ] + [QueuedBlock(block, OURS, JUDGED_LOADS[0], "overtaking", ALL_TYPICAL) for block in HELD_OUT]

    @staticmethod
    def reads() -> Sequence[Path]:
        return sorted(FOLDER.glob("*.gz"))

    def figures(self, policy: str, load: float, rule: str, blocks: Sequence[int] = HELD_OUT) -> list[QueueFigures]:
        """Of each of the blocks."""
        return [self.runs[QueuedBlock(block, policy, load, rule)] for block in blocks]

    def mean(self, figure: str, policy: str, load: float, rule: str, blocks: Sequence[int] = HELD_OUT) -> Interval:
        """A figure's mean over blocks."""
        return mean_interval([getattr(of, figure) for of in self.figures(policy, load, rule, blocks)])

    def less(self, figure: str, rival: str, load: float, rule: str, blocks: Sequence[int] = HELD_OUT) -> Interval:
        """FGD's figure less a rival's, block by block."""
        pairs = zip(self.figures(OURS, load, rule, blocks), self.figures(rival, load, rule, blocks), strict=True)
        return mean_interval([getattr(ours, figure) - getattr(other, figure) for ours, other in pairs])

    def checks(self) -> list[Target]:
        found = []
        for rule, load, rival in itertools.product(RULES, JUDGED_LOADS, RIVALS):
            where = f"{NAMES[rival]}, load {load:g}, {rule}"
            found.append(
                below(f"FGD waits for fewer GPUs than {where}", self.less("waited_for_pct", rival, load, rule))
            )
            more = self.less("used_pct", rival, load, rule)
            found.append(below(f"FGD has more GPUs in use than {where}", _negative(more)))
        for rule, rival in itertools.product(RULES, RIVALS):
            where = f"{NAMES[rival]}, load {FRAGMENTED_LOAD:g}, {rule}"
            less = self.less("fragmented_pct", rival, FRAGMENTED_LOAD, rule)
            found.append(below(f"FGD leaves fewer GPUs fragmented than {where}", less))
        return found

    def summary(self) -> str:
        less = self.less("waited_for_pct", "best-fit", JUDGED_LOADS[0], "overtaking")
        what = f"at a load of {JUDGED_LOADS[0]:g}, GPUs waited for with FGD less BestFit"
        return f"{self.tally()}; {what}: {less.text('{:+z.1f}')} points"

    def outcome(self) -> str:
        load, workload = JUDGED_LOADS[0], shipped_recording().workload
        mine, other = (
            self.mean("fragmented_pct", policy, FRAGMENTED_LOAD, "overtaking").mean for policy in (OURS, "best-fit")
        )
        ours, theirs = (self.figures(policy, load, "overtaking") for policy in (OURS, "best-fit"))
        waits = [one for one in ours if one.waited_for_pct >= SHOWN_PERCENT]
        pairs = zip(ours, theirs, strict=True)
        typical = [typical_of(block) for block in HELD_OUT]
        weights = [float(one.share[one.gpus > 1].sum()) for one in typical]
        return OUTCOME.format(
            fragmented=f"{mine:.1f} % beside BestFit's {other:.1f} %",
            calm_load=FRAGMENTED_LOAD,
            load=load,
            overtaking=self._waited("overtaking"),
            in_order=self._waited("in order"),
            quiet=sum(max(one.waited_for_pct, other.waited_for_pct) < SHOWN_PERCENT for one, other in pairs),
            blocks=len(HELD_OUT),
            small=100.0 * sum(workload.kinds[kind].gpus <= 1 for kind in workload.submitted) / len(workload.submitted),
            large=sum(one.large_part > MOSTLY for one in waits),
            waits=len(waits),
            untypical=sum(part == 0.0 for part in weights),
            weight=100.0 * max(weights),
            overloaded=LOADS[-1],
            all_typical=mean_interval([of.waited_for_pct for of in self.all_typical()]).text("{:.1f}"),
            overload=self.less("waited_for_pct", "best-fit", LOADS[-1], "overtaking").text("{:+z.1f}"),
        )

    def all_typical(self) -> list[QueueFigures]:
        """Of FGD that goes by all pods, with overtaking, of each held-out block."""
        load = JUDGED_LOADS[0]
        return [self.runs[QueuedBlock(block, OURS, load, "overtaking", ALL_TYPICAL)] for block in HELD_OUT]

    def _waited(self, rule: str) -> str:
        """Who waits for how much, in words."""
        names = (OURS, "packing", "best-fit", "random")
        load = JUDGED_LOADS[0]
        means = [f"{self.mean('waited_for_pct', name, load, rule).mean:.1f} % with {NAMES[name]}" for name in names]
        less = self.less("waited_for_pct", "best-fit", load, rule).text("{:+z.1f}")
        return f"GPUs waited for are {', '.join(means)} (FGD less BestFit: {less} points)"

    def tables(self) -> list[Table]:
        picture = f"![GPUs waited for by load, and GPUs fragmented by hour]({self.name}-queues.svg)"
        note = (
            "Means over held-out blocks, with overtaking. In use, fragmented, waited for: per cent of the cluster's "
            f"GPUs. In brackets: 95 % interval over blocks.\n\n{picture}"
        )
        lead = self._by_policy("Held-out blocks, with overtaking", SHOWN_LOADS, ("overtaking",), HELD_OUT)
        everything = self._by_policy("Held-out blocks, all loads", LOADS, tuple(RULES), HELD_OUT)
        looked_at = self._by_policy("Blocks that were looked at", LOADS, tuple(RULES), LOOKED_AT)
        return [replace(lead, note=note), everything, looked_at]

    def _by_policy(self, title: str, loads: Sequence[float], rules: Sequence[str], blocks: Sequence[int]) -> Table:
        """A row for each rule, load and policy."""
        rows = []
        for rule, load, policy in itertools.product(rules, loads, NAMES):
            means = [self.mean(figure, policy, load, rule, blocks) for figure in FIGURES]
            used, *others = (_shown(mean) for mean in means)
            less = self.less("waited_for_pct", policy, load, rule, blocks).text("{:+z.2f}") if policy != OURS else ""
            rows.append((rule, f"{load:g}", NAMES[policy], used, *others, less))
        heads = ("queue", "load", "policy", *FIGURES.values(), "waited for, FGD less this")
        return Table(title, heads, rows)

    def pictures(self) -> dict[str, bytes]:
        waited = {
            (rule, policy): [self.mean("waited_for_pct", policy, load, rule).mean for load in LOADS]
            for rule, policy in itertools.product(RULES, NAMES)
        }
        by_hour = {
            policy: [
                sum(of) / len(HELD_OUT)
                for of in zip(
                    *(run.fragmented_by_hour for run in self.figures(policy, FRAGMENTED_LOAD, "overtaking")),
                    strict=True,
                )
            ]
            for policy in NAMES
        }
        return {"queues": fragmentation_svg(LOADS, waited, by_hour)}

    def attachments(self) -> dict[str, DataFrame]:
        rows = [
            {
                **{"block": cell.block, "queue": cell.rule, "load": cell.load, "policy": NAMES[cell.policy]},
                **{"typical": cell.popularity, "pods": of.pods, "compressed": of.compressed},
                **{figure: getattr(of, figure) for figure in FIGURES},
                "large_part": of.large_part,
            }
            for cell, of in self.runs.items()
        ]
        return {"blocks": frame(rows)}


def _shown(mean: Interval) -> str:
    return mean.text("{:.2f}" if mean.mean < 100.0 else "{:.0f}")


def _negative(interval: Interval) -> Interval:
    """The interval of the negative figure."""
    low, high = (None if bound is None else -bound for bound in (interval.high, interval.low))
    return Interval(-interval.mean, low, high, interval.seeds)


def below(what: str, less: Interval) -> Target:
    """That a difference is below 0 beyond chance: its upper end is judged."""
    end = less.mean if less.high is None else less.high
    return Target(what, float("-inf"), -1e-9, end, note=f"difference {less.text('{:+z.3g}')}")
