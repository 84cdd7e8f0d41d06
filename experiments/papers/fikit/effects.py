"""What pairs of services gain, what that depends on, and why some lie outside the paper's range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.display.frame import frame
from gpusched_env.experiments.papers.fikit.runs import DEFAULT, FIKIT, Cell
from gpusched_env.workload.workload import OpKind

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

SPEEDUP = (1.32, 16.41)
MOST_ABOVE = 3.4
"""More than half of the paper's cases are accelerated by more."""
ANSWER_WAITS = 3
"""Synchronisations with which a network that never waits in between hands over its answer."""
DENSE_GAP_SHARE = 0.1
"""A service with smaller gaps alone keeps the GPU busy."""
PREMISE = "waits in mid-network beside a busy GPU"
FEATURES = {
    "waits": "waits a job",
    "waits_per_ms": "waits per ms",
    "gap_share": "gap share",
    "kernels_per_ms": "launches per ms",
    "alone_us": "time alone",
}
"""What a speed-up may depend on, of either service."""


def as_in_the_paper(pairs: DataFrame) -> Any:
    """The premise of filling gaps: the one service waits for the GPU in mid-network, the other keeps it busy."""
    return (pairs.high_waits > ANSWER_WAITS) & (pairs.low_gap_share < DENSE_GAP_SHARE)


def distribution(pairs: DataFrame) -> dict[str, Any]:
    """Summary of speed-ups: quartiles, shares above :data:`MOST_ABOVE` and within :data:`SPEEDUP`."""
    names = ("smallest", "quartile", "median", "upper_quartile", "largest")
    found = dict(zip(names, np.percentile(pairs.speedup, (0, 25, 50, 75, 100)).tolist(), strict=True))
    above, inside = (float(held.mean()) for held in (pairs.speedup > MOST_ABOVE, pairs.speedup.between(*SPEEDUP)))
    return {"pairs": len(pairs), **found, "above": above, "inside": inside}


def distributions(pairs: DataFrame) -> list[tuple[DataFrame, dict[str, Any]]]:
    """All pairs, and those of the paper's premise if there are any."""
    kinds = {"all pairs": pairs, PREMISE: pairs[pairs.as_in_the_paper]}
    return [(some, {"what": what, **distribution(some)}) for what, some in kinds.items() if len(some)]


def as_data(pairs: DataFrame) -> dict[str, Any]:
    """What is said of the pairs on a GPU, for JSON."""
    slowdowns = pairs.assign(slowdown_under_fikit=pairs[FIKIT] / pairs.high_alone_us)
    return {
        "distribution": distribution(pairs),
        "drivers": drivers(pairs).to_dict("records"),
        "outside": outsiders(pairs).to_dict("records"),
        "pairs": slowdowns[["high", "low", "speedup", "slowdown_under_fikit"]].to_dict("records"),
    }


def drivers(pairs: DataFrame) -> DataFrame:
    """How the speed-up goes with properties of either service (Spearman's rank correlation, -1 to 1, NaN if constant).

    ``overall``: over all pairs. ``partner_fixed``: over the pairs of the same other service, averaged over those.
    """
    rows = []
    for side, other in (("high", "low"), ("low", "high")):
        columns = [f"{side}_{feature}" for feature in FEATURES]
        overall, *fixed = (
            some[["speedup", *columns]].corr("spearman").speedup
            for some in (pairs, *(of for _, of in pairs.groupby(other)))
        )
        means = frame(fixed)[columns].mean()
        rows += [
            {"side": side, "feature": text, "overall": overall[column], "partner_fixed": means[column]}
            for column, text in zip(columns, FEATURES.values(), strict=True)
        ]
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


def facts(cell: Cell) -> dict[str, float]:
    """What a network's job is made of."""
    program = cell.problem().programs[0]
    kernels = [[op for op in ops if op.kind is OpKind.KERNEL] for ops in program.variants]
    return {
        "kernels": len(kernels[0]),
        "waits": sum(op.kind is OpKind.SYNC for op in program.variants[0]),
        "busy_us": sum(op.device_us for ops in kernels for op in ops) / len(kernels),
    }
