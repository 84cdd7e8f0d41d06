"""What the runs come to, beside the paper's figures: the error of each bar, the optimum of a sweep, what is judged,
and in words what came out and why.

A published figure is one that the paper prints or draws. What decides whether ours comes out is a criterion of our
own, and stands apart. What fixed an input or an option is shown, and not judged.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.display.frame import frame
from gpusched_env.experiments.lib.criteria import Criterion, missed_by
from gpusched_env.experiments.lib.verdicts import Simulation, as_row
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

if TYPE_CHECKING:
    from pandas import Series

    from gpusched_env.display.frame import DataFrame


MEANS = {"dp": 1.08, "offline": 1.75, "spawn": 1.69}
"""Geometric means over flat, Figure 15."""
OVER_OFFLINE = 0.964
"""SPAWN's geometric mean over that of Offline-Search, of the same figure."""
OVER_DP = 1.57
"""SPAWN's geometric mean over that of Baseline-DP, of the same figure."""
WITHIN = 0.12
"""Largest relative error of a geometric mean."""
CYCLES_OF = "BFS-graph500"
MEGACYCLES = {FLAT: 8.3, DP: 9.5, OFFLINE: 5.66, SPAWN: 5.51}
"""Its whole run, millions of cycles (Figure 20); flat from these and Figure 15, which give 8.2 to 8.7."""
CYCLES_ERROR = 0.18
"""Largest relative error of these."""
EXTRA_OF = (
    *("AMR", "BFS-citation", "BFS-graph500", "SSSP-citation", "SSSP-graph500"),
    *("JOIN-uniform", "JOIN-gaussian", "Mandel"),
)
"""Benchmarks whose cycles an extra child follow from Figures 15 and 18. Of the others Baseline-DP does not launch twice
as many children as Offline-Search (GC-graph500, MM, SA), or its speed-up is the same to the reading (GC-citation)."""
EXTRA_ERROR = 0.25
"""Largest relative error of the cycles an extra child."""
ALIGNMENT = "SA-thaliana"
ALIGNED = {"Figure 15": 4.38, "Figure 21": 6.96, "Figure 5": 8.60}
"""Its three published speed-ups where nearly everything is launched."""
BAR_ERROR = {"dp": 0.25, "offline": 0.18, "spawn": 0.18}
"""Largest mean relative error of the bars."""
CLOSE = 0.15
"""Largest relative error of a bar that counts as close."""
OPTIMUM_POINTS, OPTIMA = 15.0, 10
"""Limits for Figure 5: so near the best share lies to the published one, on at least so many of the thirteen."""
MOVES, ALIKE = 0.05, 0.5
"""Limits for Figures 7 and 8: bars that differ from 1 by more than this move; so many of those that the paper's move
must move in the same direction."""
OCCUPANCY_POINTS = 10.0
"""Limit for Figure 16: largest mean error of the occupancy."""
OCCUPANCY_USED = ("JOIN-uniform", "JOIN-gaussian", "Mandel", "GC-citation", "GC-graph500")
"""Benchmarks whose inputs were chosen by occupancies with few launches too, not by Baseline-DP's alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A figure beside the paper's."""

    figure: str
    source: str
    """Number of the paper's figure."""
    published: float | None
    """``None``: the paper has none, as of errors against itself."""
    ours: float
    criterion: str
    """Our own criterion."""
    low: float = -math.inf
    high: float = math.inf
    form: str = ".2f"

    @property
    def holds(self) -> bool:
        return bool(self.low <= self.ours <= self.high)

    def as_criterion(self) -> Criterion:
        miss = missed_by(self.ours, self.low, self.high)
        return Criterion(self.figure, f"{self.ours:{self.form}}", self.criterion, miss, self.holds)


def bar_errors(ours: DataFrame, theirs: DataFrame) -> DataFrame:
    """Relative errors (signed) of speed-ups, by benchmark and bar."""
    return ours / theirs - 1.0


def optima(sweep: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, tuple[float, float, float]]:
    """The best share (percent) of ours, the paper's, and how far they are apart, by benchmark.

    Equal bars are equally good: what is compared is the nearest of them, and that of ours which is smallest.

    Args:
        sweep: by benchmark and share, speed-ups ``ours`` and ``paper``.
    """
    found = {}
    for name, shares in sweep.items():
        ours, theirs = (_best({float(share): of[key] for share, of in shares.items()}) for key in ("ours", "paper"))
        nearest = min(theirs, key=lambda share: (abs(share - ours[0]), share))
        found[name] = (ours[0], nearest, abs(ours[0] - nearest))
    return found


def _best(speedups: Mapping[float, float]) -> list[float]:
    """The shares with the largest speed-up to the paper's two decimals, ascending."""
    best = max(round(value, 2) for value in speedups.values())
    return sorted(share for share, value in speedups.items() if round(value, 2) == best)


def sweep_errors(sweep: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, float]:
    """Mean absolute relative error of the bars of each benchmark's sweep."""
    return {
        name: float(np.mean([abs(of["ours"] / of["paper"] - 1.0) for of in shares.values()]))
        for name, shares in sweep.items()
    }


def same_direction(pairs: Mapping[Any, tuple[float, float]]) -> tuple[int, int]:
    """The number of bars (ours, the paper's) of which both move likewise, and of those of which the paper's moves."""
    moving = [(ours, theirs) for ours, theirs in pairs.values() if abs(theirs - 1.0) > MOVES]
    alike = [abs(ours - 1.0) > MOVES and (ours > 1.0) is (theirs > 1.0) for ours, theirs in moving]
    return sum(alike), len(moving)


def scored(
    bars: DataFrame,
    theirs: DataFrame,
    means: Mapping[str, float],
    sweep: Mapping[str, Mapping[str, Mapping[str, float]]],
    blocks: Mapping[Any, tuple[float, float]],
    queues: Mapping[Any, tuple[float, float]],
    occupancy: DataFrame,
    megacycles: Mapping[str, float],
    extra: Mapping[str, tuple[float, float]],
) -> Iterator[Scored]:
    """Everything that is judged, in the order of the page.

    Args:
        bars: our speed-ups, by benchmark and bar.
        theirs: the paper's.
        means: geometric means of ours.
        sweep: see :func:`optima`.
        blocks: of Figure 7, by benchmark and size, speed-ups of ours and the paper's.
        queues: of Figure 8, by benchmark, the same.
        occupancy: errors in points of percent, by benchmark and bar.
        megacycles: of :data:`CYCLES_OF`, by scheduler.
        extra: cycles an extra child, ours and the paper's, by benchmark.
    """
    for bar, mean in MEANS.items():
        yield Scored(
            figure=f"{BARS[bar]}, geometric mean", source="Figure 15", published=mean, ours=means[bar],
            criterion=f"within {WITHIN:.0%}", low=(1.0 - WITHIN) * mean, high=(1.0 + WITHIN) * mean,
        )  # fmt: skip
    over = means["spawn"] / means["offline"]
    yield Scored(
        figure="spawn over offline-search, geometric means", source="Figure 15", published=OVER_OFFLINE, ours=over,
        criterion=f"within {WITHIN:.0%}", low=(1.0 - WITHIN) * OVER_OFFLINE, high=(1.0 + WITHIN) * OVER_OFFLINE,
        form=".3f",
    )  # fmt: skip
    yield _near("spawn over baseline-dp, geometric means", "Figure 15", OVER_DP, means["spawn"] / means["dp"], WITHIN)
    for source, speedup in ALIGNED.items() if ALIGNMENT in bars.index else ():
        figure = f"{ALIGNMENT} over flat, {source}"
        yield _near(figure, source, speedup, bars.loc[ALIGNMENT, "spawn"], CLOSE)
    for scheduler, ours in megacycles.items():
        figure = f"{CYCLES_OF}, million cycles, {scheduler}"
        yield _near(figure, "Figure 20", MEGACYCLES[scheduler], ours, CYCLES_ERROR)
    for name, (ours, paper) in extra.items():
        yield _near(f"cycles an extra child, {name}", "Figures 15, 18", paper, ours, EXTRA_ERROR, ".0f")
    errors = bar_errors(bars, theirs).abs().mean()
    for bar, most in BAR_ERROR.items():
        yield Scored(
            figure=f"{BARS[bar]}, mean error of the bars", source="Figure 15", published=None, ours=errors[bar],
            criterion=f"at most {most:.0%}", high=most, form=".0%",
        )  # fmt: skip
    near = sum(points <= OPTIMUM_POINTS for *_, points in optima(sweep).values())
    yield Scored(
        figure="benchmarks whose best share is found", source="Figure 5", published=None, ours=near,
        criterion=f"within {OPTIMUM_POINTS:g} points on {OPTIMA} of 13", low=OPTIMA, form=".0f",
    )  # fmt: skip
    for figure, source, pairs in (("sizes of children", "Figure 7", blocks), ("own queues", "Figure 8", queues)):
        alike, moving = same_direction(pairs)
        share = alike / moving if moving else 1.0
        yield Scored(
            figure=f"{figure}: bars that move as published", source=source, published=None, ours=share,
            criterion=f"at least {ALIKE:.0%} of {moving} that move by more than {MOVES:.0%}", low=ALIKE,
            form=".0%",
        )  # fmt: skip
    judged = occupancy[~occupancy.index.isin(OCCUPANCY_USED)]
    for bar in ("offline", "spawn"):
        points = float(judged[bar].abs().mean())
        yield Scored(
            figure=f"{BARS[bar]}, mean error of the occupancy on {len(judged)} benchmarks", source="Figure 16",
            published=None, ours=points, criterion=f"at most {OCCUPANCY_POINTS:g} points",
            high=OCCUPANCY_POINTS, form=".1f",
        )  # fmt: skip


def _near(figure: str, source: str, published: float, ours: float, error: float, form: str = ".2f") -> Scored:
    """A figure that has to be within a relative error of the published one."""
    low, high = (1.0 - error) * published, (1.0 + error) * published
    return Scored(
        figure=figure, source=source, published=published, ours=ours, criterion=f"within {error:.0%}", low=low,
        high=high, form=form,
    )  # fmt: skip


def extra_child(speedup: Mapping[str, float], children: Mapping[str, float], flat_cycles: float) -> float:
    """Cycles that a run is longer for each child that Baseline-DP launches beyond Offline-Search; 0 if these are one.

    Args:
        speedup: over flat, of ``dp`` and ``offline``. children: that they launch.
        flat_cycles: of the flat program.
    """
    longer = 1.0 / speedup["dp"] - 1.0 / speedup["offline"]
    return flat_cycles * longer / (children["dp"] - children["offline"] or 1)


def geometric_mean(values: Series) -> float:
    """The geometric mean of speed-ups."""
    return math.exp(sum(math.log(value) for value in values) / len(values))


class SpawnFigures(Reproduction):
    """Figures of all runs of the paper."""

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
        """Speed-ups by variation and benchmark; a column a scheduler."""
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
        """The figures that are judged."""
        bars = self.bars("")
        means = self.sums(bars)["geomean"]
        return list(
            scored(
                bars, self.theirs, means, self.offload(), self.blocks(), self.queues(), self.occupancies(),
                self.megacycles(), self.extra_children(),
            )
        )  # fmt: skip

    def checks(self) -> list[Scored]:
        return self.scores

    def occupancies(self) -> DataFrame:
        """Errors of the occupancy in points of percent, by benchmark and bar."""
        runs = self.to_frame(SpawnRun)
        runs = runs[(runs.variation == "") & runs.scheduler.isin(BARS.values())]
        ours = 100.0 * runs.pivot(index="benchmark", columns="scheduler", values="occupancy")[[*BARS.values()]]
        theirs = frame({name: of["occupancy_percent"] for name, of in self.published.items()}).T
        return ours.set_axis(list(BARS), axis=1).reindex(list(self.published)) - theirs

    def megacycles(self) -> dict[str, float]:
        """Of :data:`CYCLES_OF`, by scheduler; empty if it was not run."""
        return {of: self._cycles[CYCLES_OF, of, ""] / 1e6 for of in MEGACYCLES if CYCLES_OF in self.published}

    def extra_children(self) -> dict[str, tuple[float, float]]:
        """Cycles an extra child, ours and the paper's, by benchmark; the paper's flat programs are taken to last as
        long as ours, as it gives quotients alone."""
        bars, runs = self.bars(""), self.of(SpawnRun)
        found = {}
        for name in (name for name in EXTRA_OF if name in self.published):
            theirs, flat = self.published[name], self._cycles[name, FLAT, ""]
            ours = {bar: runs[SpawnRun(name, of)].children for bar, of in BARS.items()}
            found[name] = (
                extra_child(bars.loc[name], ours, flat),
                extra_child(theirs["speedup"], theirs["children"], flat),
            )
        return found

    def blocks(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Speed-ups of Baseline-DP over children's blocks of 32 (Figure 7), ours and the paper's, by benchmark and
        size."""
        cycles = self._cycles
        return {
            (name, size): (cycles[name, DP, "blocks of 32"] / cycles[name, DP, f"blocks of {size}"], theirs)
            for name, figures in self.published.items()
            for size, theirs in figures["block_size"].items()
        }

    def queues(self) -> dict[str, tuple[float, float]]:
        """Speed-ups of a queue a child over a queue a parent's block (Figure 8), ours and the paper's."""
        return {
            name: (self._cycles[name, DP, SHARED_QUEUE] / self._cycles[name, DP, ""], figures["own_queues"])
            for name, figures in self.published.items()
        }

    @functools.cached_property
    def _cycles(self) -> dict[tuple[str, str, str], float]:
        return {(c.benchmark, c.scheduler, c.variation): of.cycles for c, of in self.of(SpawnRun).items()}

    def summary(self) -> str:
        means = self.sums(self.bars(""))["geomean"]
        found = ", ".join(f"{BARS[bar]} {means[bar]:.2f} ({MEANS[bar]})" for bar in BARS)
        return f"{self.tally()}; speed-up over flat: {found}"

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
            "scores": [as_row(score) for score in self.scores],
            "offload": self.offload(),
            "variations": {of: self.sums(self.bars(of)) for of in (*SENSITIVITY, *MECHANISMS, TODAY)},
        }

    def offload(self) -> dict[str, dict[str, dict[str, float]]]:
        """Speed-ups ``ours`` and ``paper`` by benchmark and share (percent), of Figure 5."""
        found = self.speedups.loc[""]
        return {
            name: {
                share: {"ours": float(found.loc[name, SHARE + share]), "paper": theirs}
                for share, theirs in figures["offload"].items()
            }
            for name, figures in self.published.items()
        }


def outcome(figures: SpawnFigures) -> str:
    """Why it comes out as it does."""
    errors = bar_errors(figures.bars(""), figures.theirs)
    close = ", ".join(f"{(errors[bar].abs() <= CLOSE).sum()} for {BARS[bar]}" for bar in BARS)
    worst = errors.abs().stack().nlargest(3)
    most = ", ".join(f"{BARS[bar]} of {name} {errors.loc[name, bar]:+.0%}" for name, bar in worst.index)
    return (
        f"Why: errors of bars have both signs and cancel in geometric means. Of {len(errors)} bars only {close} are "
        f"within {CLOSE:.0%}. Furthest off are {most}. How lanes map to work is not published. "
        f"Children that share queues hardly cost anything here, and the size of their blocks hardly matters."
    )
