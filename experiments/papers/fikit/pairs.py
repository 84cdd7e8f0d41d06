"""Pairs of services: how their speed-ups are distributed, what they depend on, and why some lie outside the range."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.display.frame import frame
from gpusched_env.experiments.papers.fikit.modes import DEFAULT

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

SPEEDUP, MOST_ABOVE = (1.32, 16.41), 3.4
"""Published range; more than half of the paper's cases are accelerated by more than the latter."""
QUANTILES = {"smallest": 0, "p5": 5, "quartile": 25, "median": 50, "upper_quartile": 75, "p95": 95, "largest": 100}
"""Per cent, by name."""
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
    """Of all pairs, called ``name``, and if there are any, of those that have the premise of filling gaps: the one
    service waits for the GPU in mid-network, the other keeps it busy. ``slowest``: time under FIKIT over that alone."""
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
