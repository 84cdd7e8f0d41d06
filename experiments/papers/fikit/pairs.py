"""Pairs of services: how their speed-ups are distributed, what they depend on, and a picture of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gpusched_env.display.frame import frame
from gpusched_env.display.palette import COLOURS
from gpusched_env.experiments.lib.pages import drawing
from gpusched_env.experiments.papers.fikit.runs import DEFAULT

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


SPEEDUP, MOST_ABOVE = (1.32, 16.41), 3.4
"""Published range; more than half of the paper's cases are accelerated by more than the latter."""
QUANTILES = {"smallest": 0, "p5": 5, "quartile": 25, "median": 50, "upper_quartile": 75, "p95": 95, "largest": 100}
"""Quantiles by name, per cent."""
ANSWER_WAITS = 3
"""Synchronisations with which a network that never waits in between hands over its answer."""
DENSE_GAP_SHARE = 0.1
"""A service with smaller gaps alone keeps the GPU busy."""
FEATURES = {
    "waits": "waits a job",
    "waits_per_ms": "waits per ms",
    "gap_share": "gap share",
    "kernels_per_ms": "launches per ms",
    "alone_us": "time alone",
}
"""What a speed-up may depend on, of either service."""


def distribution(pairs: DataFrame) -> dict[str, Any]:
    """Summary of speed-ups: quantiles; shares above :data:`MOST_ABOVE`, and below, within and beyond :data:`SPEEDUP`.

    ``spanned``: how much of the published range lies between the 5 % and the 95 % quantile, on a logarithmic scale.
    """
    speedups, (least, most) = pairs.speedup, SPEEDUP
    found = dict(zip(QUANTILES, np.percentile(speedups, [*QUANTILES.values()]).tolist(), strict=True))
    shares = {
        "above": speedups > MOST_ABOVE,
        "below": speedups < least,
        "inside": speedups.between(*SPEEDUP),
        "beyond": speedups > most,
    }
    low, high = (min(max(found[name], least), most) for name in ("p5", "p95"))
    spanned = math.log(high / low) / math.log(most / least)
    return {"pairs": len(pairs), **found, **{name: float(of.mean()) for name, of in shares.items()}, "spanned": spanned}


def distributions(pairs: DataFrame, name: str = "all pairs") -> list[dict[str, Any]]:
    """Distributions of all pairs, called ``name``, and if there are any, of those that have the premise of filling
    gaps: the one service waits for the GPU in mid-network, the other keeps it busy. ``slowest``: time under FIKIT over
    that alone."""
    premise = pairs[(pairs.high_waits > ANSWER_WAITS) & (pairs.low_gap_share < DENSE_GAP_SHARE)]
    kinds = {name: pairs, "waits in mid-network beside a busy GPU": premise}
    return [
        {"what": what, "slowest": (some.fikit_us / some.high_alone_us).max(), **distribution(some)}
        for what, some in kinds.items()
        if len(some)
    ]


def drivers(pairs: DataFrame) -> DataFrame:
    """How the speed-up goes with properties of either service (Spearman's rank correlation, -1 to 1, NaN if constant).

    ``overall``: over all pairs. ``partner_fixed``: over the pairs of the same other service, averaged over those.
    """
    rows = []
    for side, other in (("high", "low"), ("low", "high")):
        columns = ["speedup", *(f"{side}_{feature}" for feature in FEATURES)]
        overall = pairs[columns].corr("spearman").speedup
        fixed = frame([of[columns].corr("spearman").speedup for _, of in pairs.groupby(other)]).mean()
        for column, text in zip(columns[1:], FEATURES.values(), strict=True):
            rows.append({"side": side, "feature": text, "overall": overall[column], "partner_fixed": fixed[column]})
    return frame(rows)


def outsiders(pairs: DataFrame) -> DataFrame:
    """The pairs outside the published range, fastest first, and why."""
    outside = pairs[~pairs.speedup.between(*SPEEDUP)].sort_values("speedup", ascending=False, kind="stable")
    named = outside.rename(columns={DEFAULT: "together_us"})
    return outside[["high", "low", "speedup"]].assign(reason=[_reason(pair) for pair in named.itertuples()])


def _reason(pair: Any) -> str:
    if pair.speedup > SPEEDUP[1]:
        lost_us = (pair.together_us - pair.high_alone_us) / pair.high_waits
        return (
            f"{pair.high_waits} waits a job, each of which gives away the GPU for {lost_us:.0f} us; "
            f"{pair.low} leaves it idle only {pair.low_gap_share:.0%} of the time"
        )
    if pair.high_waits > ANSWER_WAITS:
        return f"{pair.low} has gaps of {pair.low_gap_share:.0%} itself: its turns are short"
    if pair.high_gap_share >= pair.low_gap_share:
        return (
            f"waits only for its answer, with gaps of {pair.high_gap_share:.0%}: "
            f"its launches queue up during {pair.low}'s turns"
        )
    return f"waits only for its answer, and {pair.low} has gaps of {pair.low_gap_share:.0%}: its turns are short"


SIZE_IN: Final = (6.5, 3.2)
FAMILY_COLOUR, OTHER_COLOUR, RANGE_COLOUR = COLOURS[0], COLOURS[1], "#ececec"
WIDTH: Final = 0.32
"""Width of a column of dots, on either side."""


def speedups_svg(by_number: Mapping[int, DataFrame]) -> bytes:
    """A picture, as SVG: a column a number of low-priority services, a dot a pair, a line the median; ``set_apart``
    tells pairs apart.

    Raises:
        InputError: matplotlib is not installed.
    """
    with drawing(SIZE_IN) as (figure, finished):
        axis = figure.subplots()
        axis.axhspan(*SPEEDUP, color=RANGE_COLOUR, label="published range", zorder=0)
        axis.axhline(MOST_ABOVE, color="black", linewidth=0.8, linestyle="--", label=f"{MOST_ABOVE}: more than half")
        for place, pairs in enumerate(by_number.values()):
            for set_apart, colour, side, label in (
                (False, FAMILY_COLOUR, -1, "pairs of the paper's families"),
                (True, OTHER_COLOUR, 1, "pairs set apart"),
            ):
                values = np.sort(pairs.speedup[pairs.set_apart == set_apart].to_numpy())
                left = place + min(0.04 * side, side * (0.04 + WIDTH))
                across = np.linspace(left, left + WIDTH, len(values))
                axis.plot(across, values, "o", color=colour, markersize=2.5, label=None if place else label)
                if len(values):
                    axis.plot([left, left + WIDTH], [np.median(values)] * 2, color=colour, linewidth=1.5)
        axis.set_yscale("log")
        ticks = (1, 2, 3.4, 5, 10, 20, 50)
        axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        axis.set_xticks(range(len(by_number)), [str(number) for number in by_number])
        axis.set_xlabel("low-priority services")
        axis.set_ylabel("speed-up of the high-priority one")
        figure.legend(frameon=False, ncols=2, loc="outside upper center")
        return finished()
