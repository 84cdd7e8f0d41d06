"""An agent that says who goes next in a cluster's queue, against policies that place pods, on held-out blocks.

Pods [come, wait, run and go](fgd-lifetimes.md) on the published cluster: blocks of two days of the published recording,
compressed to a load, with overtaking. Published policies say on which node a pod goes. Of those that wait, and fit
where a pod has gone, the one that came first is placed. The agent says who that is, and leaves nodes to FGD. So a pod
that comes and has room still gets it at once.

The agent is a rule: a number for the first pod of each kind, linear in what it asks for, how long it and its kind wait,
and for how long pods of its kind have run that have gone by then. With all weights 0 it is FGD. The weights were
learned by policy gradients (REINFORCE, with several runs of the same stream as a baseline) on drawn clusters and
streams. Their ranges hold those of the blocks that were looked at; no recording was played in the training.

This is how it is judged. It was written down before the agent played a held-out block.

* *GPUs waited for* at a time count, over the cluster's, at loads of 0.95 and 1. The agent waits for less than an
  opponent if the difference lies below 0 with its whole 95 % interval over the eight held-out blocks.
* *Opponents*: the six published policies, which know what is free and what the workload's pods ask for; and FGD and
  Packing with an order by hand: whose kind has run *shortest* so far, which takes the same knowledge as the agent's,
  and who is *largest*. Last, for each block the best of all ten, chosen afterwards.
* *What the others give up*: waits by pod stand beside it, which the agent was not trained for.
* *Drawn streams* that nothing else plays stand beside the blocks. They decide nothing.

A compressed block repeats its few hundred pods many times, to the second. So run times of a kind are better known here
than they would be.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpusched_env.agents.training.environments import VALIDATION_SEED
from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.criteria import CriterionMark, Kind
from gpusched_env.experiments.lib.statistics import Interval, mean_interval
from gpusched_env.experiments.lib.verdicts import Simulation, Target
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.games.fleet.agents.cluster.order import (
    LARGEST,
    SHIPPED,
    SHORTEST,
    Ordered,
    learned_order,
    learned_summary,
)
from gpusched_env.games.fleet.cluster.lifetimes.run import run_queue
from gpusched_env.games.fleet.cluster.policies.registry import POLICIES
from gpusched_env.games.fleet.cluster.shipped import FOLDER
from gpusched_env.games.fleet.environment.cluster.streams import drawn_stream
from gpusched_env.games.fleet.papers.fgd.runs import NAMES
from gpusched_env.games.fleet.papers.fgd_lifetimes import FIGURES, JUDGED_LOADS, SHOWN_PERCENT, below
from gpusched_env.games.fleet.papers.fgd_lifetimes.runs import (
    BLOCKS,
    FROM_BIN,
    HELD_OUT,
    HOURS,
    LOOKED_AT,
    QueuedBlock,
    QueueFigures,
    play_block,
)

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

AGENT: Final = "agent"
BY_HAND: Final = {"shortest first": SHORTEST, "largest first": LARGEST}
NODES: Final = ("fgd", "packing")
"""Policies that orders by hand go with."""
LOADS: Final = (0.9, *JUDGED_LOADS, 1.1)
DRAWN: Final = range(VALIDATION_SEED, VALIDATION_SEED + 64)
"""Seeds of drawn streams."""
MARKS: Final = (
    CriterionMark(
        "agent, block by block, *",
        Kind.PREDICTED,
        "An opponent that nobody can choose beforehand.",
        "all weights 0: FGD, which is one of the ten, cannot be below",
    ),
    CriterionMark(
        "agent below *",
        Kind.PREDICTED,
        "Written down before held-out blocks were played; nothing was chosen by them.",
        "all weights 0: FGD, no difference",
    ),
)
OUTCOME: Final = """\
{at_loads}

In {less} of the {cases} held-out blocks with waiting, at these loads, the agent waits for less than the best of all
others, in {more} for more. A pod waits {mean_wait} s in the mean with the agent at a load of {load:g}, beside
{fgd_mean_wait} with FGD, and 95 % of them wait at most {p95} s, beside {fgd_p95}, in the mean over blocks.

On {streams} drawn streams, GPUs waited for are {drawn} %.

{training}
"""
AT_LOAD: Final = """\
At a load of {load:g}, GPUs waited for are {agent} % with the agent, {fgd} % with FGD, {best} % with {best_name}, the
best of the published policies, and {hand} % with {hand_name}, the best with an order by hand (agent less these:
{less_fgd}, {less_best}, {less_hand} points)."""
LEGEND: Final = """\
## The agent, and one of your own

```sh
gpusched lab cluster-queue --policies fgd,learned --loads 0.95,1.0
gpusched lab train-cluster-queue --out order.json
gpusched lab cluster-queue --policies fgd,learned --order order.json
```

A player of your own has a method `play`, as `gpusched_env.games.fleet.agents.cluster.order.Ordered`."""


@dataclass(frozen=True)
class OrderedBlock:
    """A block of the recording, compressed to a load, with an order of those that wait."""

    block: int
    order: str
    """:data:`AGENT`, or one of :data:`BY_HAND`."""
    policy: str
    load: float

    def run(self, device: str) -> QueueFigures:
        return play_block(self.block, self.load, player_of(self.order, self.policy))


@dataclass(frozen=True)
class Waited:
    """GPUs waited for, per cent, by stream."""

    waited_for_pct: tuple[float, ...]


@dataclass(frozen=True)
class DrawnStreams:
    """Streams that no training plays."""

    order: str
    """As of :class:`OrderedBlock`; empty: who came first."""

    def run(self, device: str) -> Waited:
        found = []
        for seed in DRAWN:
            problem, stream = drawn_stream(seed, HOURS)
            run = run_queue(problem, stream, player_of(self.order, "fgd"), HOURS)
            found.append(float(run.waited_for[FROM_BIN:].mean()))
        return Waited(tuple(found))


def player_of(order: str, policy: str) -> Ordered:
    """A rule by what pages call it; empty: all weights are 0."""
    return learned_order() if order == AGENT else Ordered(BY_HAND.get(order, {}), POLICIES[policy])


def cell_of(who: str, block: int, load: float) -> QueuedBlock | OrderedBlock:
    """The run of one of :data:`EVERYONE`."""
    policy, order = EVERYONE[who]
    return OrderedBlock(block, order, policy, load) if order else QueuedBlock(block, policy, load, "overtaking")


EVERYONE: Final = {
    AGENT: ("fgd", AGENT),
    **{name: (policy, "") for policy, name in NAMES.items()},
    **{f"{NAMES[policy]}, {order}": (policy, order) for policy in NODES for order in BY_HAND},
}
"""Policy and order by what the page calls who plays."""
PUBLISHED: Final = tuple(NAMES.values())
OPPONENTS: Final = tuple(who for who in EVERYONE if who != AGENT)
WITH_ORDER: Final = tuple(who for who in OPPONENTS if who not in PUBLISHED)


class Paper(Reproduction):
    """Whether the agent waits for less."""

    name = "cluster-queue-agent"
    title = "An agent for a cluster's queue"
    legend = LEGEND
    marks = MARKS
    packed = ("blocks",)

    @staticmethod
    def cells() -> Sequence[Simulation]:
        return [
            *(cell_of(who, block, load) for block, load, who in itertools.product(BLOCKS, LOADS, EVERYONE)),
            *map(DrawnStreams, ("", AGENT, *BY_HAND)),
        ]

    @staticmethod
    def reads() -> Sequence[Path]:
        return [SHIPPED, *sorted(FOLDER.glob("*.gz"))]

    def figures(self, who: str, load: float, blocks: Sequence[int] = HELD_OUT) -> list[QueueFigures]:
        """Of each of the blocks."""
        return [self.runs[cell_of(who, block, load)] for block in blocks]

    def waited(self, who: str, load: float, blocks: Sequence[int] = HELD_OUT) -> list[float]:
        """Per cent of the GPUs, of each of the blocks."""
        return [of.waited_for_pct for of in self.figures(who, load, blocks)]

    def least(self, load: float, blocks: Sequence[int] = HELD_OUT) -> list[float]:
        """What the best opponent of each block waits for."""
        return [min(of) for of in zip(*(self.waited(who, load, blocks) for who in OPPONENTS), strict=True)]

    def less(self, others: Sequence[float], load: float, blocks: Sequence[int] = HELD_OUT) -> Interval:
        """What the agent waits for, less what others do, block by block."""
        ours = self.waited(AGENT, load, blocks)
        return mean_interval([a - b for a, b in zip(ours, others, strict=True)])

    def checks(self) -> list[Target]:
        found = []
        for load in JUDGED_LOADS:
            others = {f"agent below {who}": self.waited(who, load) for who in OPPONENTS}
            others["agent, block by block, below the best"] = self.least(load)
            found += [below(f"{what}, load {load:g}", self.less(of, load)) for what, of in others.items()]
        return found

    def _best(self, whos: Sequence[str], load: float) -> str:
        """Who waits for least in the mean over held-out blocks."""
        return min(whos, key=lambda who: statistics.fmean(self.waited(who, load)))

    def summary(self) -> str:
        said = []
        for load in JUDGED_LOADS:
            best = self._best(PUBLISHED, load)
            said.append(f"{_points(self.less(self.waited(best, load), load))} at {load:g} ({best})")
        return f"{self.tally()}; GPUs waited for, less the best published policy's, in points: {', '.join(said)}"

    def _at_load(self, load: float) -> str:
        best, hand = self._best(PUBLISHED, load), self._best(WITH_ORDER, load)
        whos = {"agent": AGENT, "fgd": NAMES["fgd"], "best": best, "hand": hand}
        means = {key: f"{statistics.fmean(self.waited(who, load)):.1f}" for key, who in whos.items()}
        less = {f"less_{key}": _points(self.less(self.waited(who, load), load)) for key, who in whos.items()}
        return AT_LOAD.format(load=load, best_name=best, hand_name=hand, **means, **less)

    def outcome(self) -> str:
        pairs = [
            pair
            for load in JUDGED_LOADS
            for pair in zip(self.waited(AGENT, load), self.least(load), self.waited(NAMES["fgd"], load), strict=True)
            if max(pair) >= SHOWN_PERCENT
        ]
        load = JUDGED_LOADS[-1]
        ours, theirs = (self.figures(who, load) for who in (AGENT, NAMES["fgd"]))
        waits = {
            key: f"{statistics.fmean(getattr(of, figure) for of in figures):,.0f}"
            for key, figures, figure in (
                ("mean_wait", ours, "mean_wait_s"),
                ("fgd_mean_wait", theirs, "mean_wait_s"),
                ("p95", ours, "p95_wait_s"),
                ("fgd_p95", theirs, "p95_wait_s"),
            )
        }
        drawn = {
            order or "who came first": statistics.fmean(self.runs[DrawnStreams(order)].waited_for_pct)
            for order in ("", AGENT, *BY_HAND)
        }
        return OUTCOME.format(
            at_loads="\n\n".join(map(self._at_load, JUDGED_LOADS)),
            less=sum(ours < least for ours, least, _ in pairs),
            more=sum(ours > least for ours, least, _ in pairs),
            cases=len(pairs),
            load=load,
            streams=len(DRAWN),
            drawn=", ".join(f"{waited:.1f} ({who})" for who, waited in drawn.items()),
            training=learned_summary(),
            **waits,
        )

    def tables(self) -> list[Table]:
        lead = self._by_who("Held-out blocks", JUDGED_LOADS, HELD_OUT)
        every = self._by_who("Held-out blocks, all loads", LOADS, HELD_OUT)
        return [lead, every, self._by_who("Blocks that were looked at", LOADS, LOOKED_AT), self._by_block()]

    def _by_who(self, title: str, loads: Sequence[float], blocks: Sequence[int]) -> Table:
        rows = []
        for load, who in itertools.product(loads, EVERYONE):
            figures = self.figures(who, load, blocks)
            means = [mean_interval([getattr(of, figure) for of in figures]) for figure in FIGURES]
            shown = (mean.text("{:.1f}" if mean.mean < 100.0 else "{:.0f}") for mean in means)
            less = _points(self.less(self.waited(who, load, blocks), load, blocks)) if who != AGENT else ""
            rows.append((f"{load:g}", who, *shown, less))
        note = "Means over blocks, in brackets: 95 % intervals over blocks. Per cent are of the cluster's GPUs."
        heads = ("load", "who", *FIGURES.values(), "waited for, agent less this")
        return Table(title, heads, rows, note)

    def _by_block(self) -> Table:
        rows = [
            (
                f"{load:g}",
                str(block),
                *(f"{self.waited(who, load, [block])[0]:.2f}" for who in (AGENT, NAMES["fgd"])),
                f"{self.least(load, [block])[0]:.2f}",
                f"{self.figures(AGENT, load, [block])[0].large_part:.0%}",
            )
            for load, block in itertools.product(LOADS, HELD_OUT)
        ]
        heads = ("load", "block", "agent", "FGD", "best of the others", "with several GPUs, agent")
        return Table("GPUs waited for by held-out block", heads, rows, "Per cent of the GPUs.")

    def attachments(self) -> dict[str, DataFrame]:
        rows = []
        for who, load, block in itertools.product(EVERYONE, LOADS, BLOCKS):
            of = self.runs[cell_of(who, block, load)]
            row = {"who": who, "load": load, "block": block, "large_part": round(of.large_part, 4)}
            rows.append(row | {figure: round(getattr(of, figure), 4) for figure in FIGURES})
        return {"blocks": frame(rows)}


def _points(interval: Interval) -> str:
    return interval.text("{:+z.1f}")
