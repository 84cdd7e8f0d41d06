"""What the runs come to, beside the paper's figures."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpusched_env.display.frame import frame
from gpusched_env.experiments.lib.judged import Simulation
from gpusched_env.experiments.lib.verdicts import record
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.games.child_launches.measure.prediction import predicted
from gpusched_env.games.child_launches.papers.spawn.runs import (
    BARS,
    DP,
    FLAT,
    MECHANISMS,
    OFFLINE,
    QUICK,
    SENSITIVITY,
    SHARE,
    SHARED_QUEUE,
    SPAWN,
    TODAY,
    SpawnRun,
    all_cells,
    published,
)
from gpusched_env.games.child_launches.papers.spawn.scores import MEANS, Scored, scored

if TYPE_CHECKING:
    from pandas import Series

    from gpusched_env.display.frame import DataFrame


def geometric_mean(values: Series) -> float:
    """Of speed-ups."""
    return math.exp(sum(math.log(value) for value in values) / len(values))


class Figures(Reproduction):
    """Of all runs of the paper."""

    @staticmethod
    def cells() -> Sequence[Simulation]:
        return [*all_cells(), *predicted()]

    @functools.cached_property
    def published(self) -> dict[str, Any]:
        """The paper's figures of the benchmarks that were run."""
        run = {cell.benchmark for cell in self.of(SpawnRun)}
        return {name: figures for name, figures in published().items() if name in run}

    @functools.cached_property
    def speedups(self) -> DataFrame:
        """By variation and benchmark; a column a scheduler."""
        runs = self.to_frame(SpawnRun)
        cycles = runs.pivot(index=["variation", "benchmark"], columns="scheduler", values="cycles")
        flat = cycles[FLAT].where(cycles[FLAT].notna(), cycles[DP])
        return cycles.rdiv(flat, axis=0).reindex(list(self.published), level="benchmark")

    def bars(self, variation: str) -> DataFrame:
        """Our speed-ups as the paper's bars."""
        found = self.speedups.loc[variation]
        offline = found[OFFLINE].where(found[OFFLINE].notna(), found[QUICK])
        return found.assign(**{OFFLINE: offline})[list(BARS.values())].set_axis(list(BARS), axis=1)

    @functools.cached_property
    def theirs(self) -> DataFrame:
        """The paper's speed-ups, by benchmark and bar."""
        return frame({name: figures["speedup"] for name, figures in self.published.items()}).T

    def children(self, scheduler: str = SPAWN) -> Series:
        runs = self.to_frame(SpawnRun)
        runs = runs[(runs.variation == "") & (runs.scheduler == scheduler)]
        return runs.set_index("benchmark")["children"]

    def alike(self, scheduler: str = SPAWN) -> int:
        """Benchmarks whose launched children are within a factor of two of the paper's."""
        ours = self.children(scheduler)
        pairs = [(max(1, ours[name]), figures["children"]["spawn"]) for name, figures in self.published.items()]
        return sum(0.5 <= mine / theirs <= 2.0 for mine, theirs in pairs)

    def sums(self, bars: DataFrame) -> dict[str, Any]:
        """Geometric means and rank correlations."""
        ranks = {bar: float(bars[bar].rank().corr(self.theirs[bar].rank())) for bar in bars}
        return {"geomean": {bar: geometric_mean(bars[bar]) for bar in bars}, "spearman": ranks}

    @functools.cached_property
    def scores(self) -> list[Scored]:
        """What is judged."""
        bars = self.bars("")
        means = self.sums(bars)["geomean"]
        return list(scored(bars, self.theirs, means, self.offload(), self.blocks(), self.queues(), self.occupancies()))

    def checks(self) -> list[Scored]:
        return self.scores

    def occupancies(self) -> DataFrame:
        """Errors of the occupancy in points of percent, by benchmark and bar."""
        runs = self.to_frame(SpawnRun)
        runs = runs[(runs.variation == "") & runs.scheduler.isin(BARS.values())]
        ours = 100.0 * runs.pivot(index="benchmark", columns="scheduler", values="occupancy")[[*BARS.values()]]
        theirs = frame({name: of["occupancy_percent"] for name, of in self.published.items()}).T
        return ours.set_axis(list(BARS), axis=1).reindex(list(self.published)) - theirs

    def blocks(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Of Figure 7: speed-ups of Baseline-DP over children's blocks of 32, ours and the paper's, by benchmark and
        size."""
        cycles = self._cycles
        return {
            (name, size): (cycles[name, DP, "blocks of 32"] / cycles[name, DP, f"blocks of {size}"], theirs)
            for name, figures in self.published.items()
            for size, theirs in figures["block_size"].items()
        }

    def queues(self) -> dict[str, tuple[float, float]]:
        """Of Figure 8: speed-ups of a queue a child over a queue a parent's block, ours and the paper's."""
        return {
            name: (self._cycles[name, DP, SHARED_QUEUE] / self._cycles[name, DP, ""], figures["own_queues"])
            for name, figures in self.published.items()
        }

    @functools.cached_property
    def _cycles(self) -> dict[tuple[str, str, str], float]:
        return {(c.benchmark, c.scheduler, c.variation): of.cycles for c, of in self.of(SpawnRun).items()}

    def summary(self) -> str:
        scores, means = self.scores, self.sums(self.bars(""))["geomean"]
        found = ", ".join(f"{BARS[bar]} {means[bar]:.2f} ({MEANS[bar]})" for bar in BARS)
        return f"{sum(s.holds for s in scores)} of {len(scores)} figures come out; speed-up over flat: {found}"

    def data(self) -> dict[str, Any]:
        bars, runs = self.bars(""), self.to_frame(SpawnRun)
        runs = runs[runs.variation == ""].set_index(["benchmark", "scheduler"])
        rows = {}
        for name, figures in self.published.items():
            beside = {bar: {"ours": float(bars.loc[name, bar]), "paper": figures["speedup"][bar]} for bar in BARS}
            for what, unit in (("children", 1), ("occupancy", 100)):
                key = "occupancy_percent" if what == "occupancy" else what
                beside[what] = {
                    bar: {"ours": unit * float(runs.loc[(name, of), what]), "paper": figures[key][bar]}
                    for bar, of in BARS.items()
                }
            rows[name] = beside
        sums = self.sums(bars)
        return {
            "benchmarks": rows,
            "geomean": {bar: {"ours": sums["geomean"][bar], "paper": MEANS[bar]} for bar in BARS},
            "spearman": sums["spearman"],
            "scores": [record(score) for score in self.scores],
            "offload": self.offload(),
            "variations": {of: self.sums(self.bars(of)) for of in (*SENSITIVITY, *MECHANISMS, TODAY)},
        }

    def offload(self) -> dict[str, dict[str, dict[str, float]]]:
        """Of Figure 5, by benchmark and share (percent): speed-ups ``ours`` and ``paper``."""
        found = self.speedups.loc[""]
        return {
            name: {
                share: {"ours": float(found.loc[name, SHARE + share]), "paper": theirs}
                for share, theirs in figures["offload"].items()
            }
            for name, figures in self.published.items()
        }
