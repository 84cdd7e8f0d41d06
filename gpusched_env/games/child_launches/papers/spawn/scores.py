"""How near our figures come to the paper's: the error of each bar, the optimum of a sweep, and what is judged.

A published figure is one that the paper prints or draws. What decides whether ours comes out is a criterion of our own,
and stands apart. What fixed an input or an option is shown, and not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.games.child_launches.papers.spawn.runs import BARS

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

MEANS = {"dp": 1.08, "offline": 1.75, "spawn": 1.69}
"""Geometric means over flat, Figure 15."""
OVER_OFFLINE = 0.964
"""SPAWN's geometric mean over that of Offline-Search, of the same figure."""
WITHIN = 0.12
"""Largest relative error of a geometric mean."""
BAR_ERROR = {"dp": 0.25, "offline": 0.18, "spawn": 0.18}
"""Largest mean relative error of the bars."""
CLOSE = 0.15
"""Bars within so much are counted."""
OPTIMUM_POINTS, OPTIMA = 15.0, 10
"""Of Figure 5: so near the best share lies to the published one, on at least so many of the thirteen."""
MOVES, ALIKE = 0.05, 0.5
"""Of Figures 7 and 8: bars that differ from 1 by more than this move; so many of those that the paper's move must move
in the same direction."""
OCCUPANCY_POINTS = 10.0
"""Of Figure 16: largest mean error of the occupancy."""
OCCUPANCY_USED = ("JOIN-uniform", "JOIN-gaussian", "Mandel", "GC-citation", "GC-graph500")
"""Benchmarks whose inputs were chosen by occupancies with few launches too, not by Baseline-DP's alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A figure beside the paper's."""

    figure: str
    source: str
    """Of the paper's figure."""
    published: float | None
    """``None``: the paper has none, as of errors against itself."""
    ours: float
    criterion: str
    """Our own."""
    comes_out: bool
    form: str = ".2f"

    @property
    def holds(self) -> bool:
        return self.comes_out


def bar_errors(ours: DataFrame, theirs: DataFrame) -> DataFrame:
    """Relative errors (signed) of speed-ups, by benchmark and bar."""
    return ours / theirs - 1.0


def optima(sweep: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, tuple[float, float, float]]:
    """By benchmark, the best share (percent) of ours, the paper's, and how far they are apart.

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


def moved_alike(pairs: Mapping[Any, tuple[float, float]]) -> tuple[int, int]:
    """Of bars as (ours, the paper's): how many of those that the paper's move ours moves likewise, and how many."""
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
    """
    for bar, mean in MEANS.items():
        yield Scored(
            figure=f"{BARS[bar]}, geometric mean", source="Figure 15", published=mean, ours=means[bar],
            criterion=f"within {WITHIN:.0%}", comes_out=abs(means[bar] / mean - 1.0) <= WITHIN,
        )  # fmt: skip
    over = means["spawn"] / means["offline"]
    yield Scored(
        figure="spawn over offline-search, geometric means", source="Figure 15", published=OVER_OFFLINE, ours=over,
        criterion=f"within {WITHIN:.0%}", comes_out=abs(over / OVER_OFFLINE - 1.0) <= WITHIN, form=".3f",
    )  # fmt: skip
    errors = bar_errors(bars, theirs).abs().mean()
    for bar, most in BAR_ERROR.items():
        yield Scored(
            figure=f"{BARS[bar]}, mean error of the bars", source="Figure 15", published=None, ours=errors[bar],
            criterion=f"at most {most:.0%}", comes_out=bool(errors[bar] <= most), form=".0%",
        )  # fmt: skip
    near = sum(points <= OPTIMUM_POINTS for *_, points in optima(sweep).values())
    yield Scored(
        figure="benchmarks whose best share is found", source="Figure 5", published=None, ours=near,
        criterion=f"within {OPTIMUM_POINTS:g} points on {OPTIMA} of 13", comes_out=near >= OPTIMA, form=".0f",
    )  # fmt: skip
    for figure, source, pairs in (("sizes of children", "Figure 7", blocks), ("own queues", "Figure 8", queues)):
        alike, moving = moved_alike(pairs)
        share = alike / moving if moving else 1.0
        yield Scored(
            figure=f"{figure}: bars that move as published", source=source, published=None, ours=share,
            criterion=f"at least {ALIKE:.0%} of {moving} that move by more than {MOVES:.0%}", comes_out=share >= ALIKE,
            form=".0%",
        )  # fmt: skip
    judged = occupancy[~occupancy.index.isin(OCCUPANCY_USED)]
    for bar in ("offline", "spawn"):
        points = float(judged[bar].abs().mean())
        yield Scored(
            figure=f"{BARS[bar]}, mean error of the occupancy on {len(judged)} benchmarks", source="Figure 16",
            published=None, ours=points, criterion=f"at most {OCCUPANCY_POINTS:g} points",
            comes_out=points <= OCCUPANCY_POINTS, form=".1f",
        )  # fmt: skip
