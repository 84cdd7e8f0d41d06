"""The paper's headline figures beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpusched_env.experiments.reproduce.fikit.pairs import Pair, Runs

SPEEDUP = (1.32, 16.41)
MOST_ABOVE = 3.4
"""More than half of the paper's cases are accelerated by more."""
LOW_RATIO = (0.86, 1.0)
"""Of low-priority completion times under preemptive sharing. Which is divided by which is not said; read as the
speed-ups are, default sharing over FIKIT."""
OVERHEAD = 0.05
RANGE_SLACK = 0.1
"""How far our pairs, which are not the paper's, may exceed its ranges: 10 % of a speed-up, 0.1 of the ratio."""


@dataclass(frozen=True, slots=True)
class Target:
    """A published range and our figure."""

    what: str
    low: float
    high: float
    ours: float
    slack: float = 0.0
    """By how much it may lie outside."""
    note: str = ""

    @property
    def difference(self) -> float:
        """How far outside of the range our figure lies, signed; 0 inside."""
        return self.ours - min(max(self.ours, self.low), self.high)

    @property
    def holds(self) -> bool:
        return abs(self.difference) <= self.slack + 1e-12


@dataclass(frozen=True, slots=True)
class Distribution:
    """Speed-ups of a set of pairs."""

    pairs: int
    smallest: float
    quartile: float
    median: float
    upper_quartile: float
    largest: float
    above: float
    """Share of pairs above :data:`MOST_ABOVE`."""
    inside: float
    """Share of pairs within :data:`SPEEDUP`."""


def distribution(speedups: Sequence[float]) -> Distribution:
    """Summary of a non-empty set."""
    values = np.array(speedups)
    smallest, quartile, median, upper_quartile, largest = np.percentile(values, (0, 25, 50, 75, 100)).tolist()
    within = (values >= SPEEDUP[0]) & (values <= SPEEDUP[1])
    return Distribution(
        pairs=len(values),
        smallest=smallest,
        quartile=quartile,
        median=median,
        upper_quartile=upper_quartile,
        largest=largest,
        above=float(np.mean(values > MOST_ABOVE)),
        inside=float(np.mean(within)),
    )


def targets(runs: Runs, gpu: str) -> list[Target]:
    """Every headline figure, over all pairs on ``gpu``."""
    pairs = runs.pairs(gpu)
    speedups = {_name(pair): pair.speedup for pair in pairs}
    ratios = {f"{high}, {low}": ratio for (high, low), ratio in runs.low_ratios(gpu).items()}
    overheads = {network.name: network.overhead for network in runs.networks(gpu)}
    above = sum(speedup > MOST_ABOVE for speedup in speedups.values()) / len(speedups)
    low, high = (min(speedups, key=speedups.__getitem__), max(speedups, key=speedups.__getitem__))
    least, most = (min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__))
    worst = max(overheads, key=overheads.__getitem__)
    return [
        Target("smallest high-priority speed-up", *SPEEDUP, speedups[low], RANGE_SLACK * SPEEDUP[0], low),
        Target("largest high-priority speed-up", *SPEEDUP, speedups[high], RANGE_SLACK * SPEEDUP[1], high),
        Target(f"share of cases above {MOST_ABOVE}", 0.5, 1.0, above, note=f"{len(pairs)} pairs"),
        Target("smallest low-priority ratio", *LOW_RATIO, ratios[least], RANGE_SLACK, least),
        Target("largest low-priority ratio", *LOW_RATIO, ratios[most], RANGE_SLACK, most),
        Target("largest overhead of interception", 0.0, OVERHEAD, overheads[worst], note=worst),
    ]


def _name(pair: Pair) -> str:
    return f"{pair.high.name}, {pair.low.name}"
