"""Errors of predictions: relative errors of end times, of makespans, and the order of ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.display.frame import frame
from gpusched_env.experiments.validate.recordings import RecordedScenario

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

REPRODUCIBLE = 0.05
"""A launch whose ends over the repetitions lie within this share of its end is reproducible."""
WORST_SHOWN = 10
TIMES = ("start_us", "end_us", "measured_start_us", "measured_us", "error", "noise", "beyond", "reproducible")
COLUMNS = ("set", "number", "scenario", "launch", "kernel", "stream", "priority", "among", *TIMES)


def launches(sets: Mapping[str, Sequence[tuple[RecordedScenario, Any]]]) -> DataFrame:
    """All launches of predicted scenarios by the name of their set, a row each.

    ``number``: of the scenario in its file, from 0, and ``launch`` in the scenario. ``among``: how many launches ran at
    the midpoint of its measured time, itself included. Times are in us since the release; ``error`` is the signed
    relative one of the end. ``noise``: width of the band that the ends of the repetitions lie in, over the end;
    ``beyond``: how far the predicted end lies outside of that band, over the end. ``reproducible``: the repetitions
    agree.

    Args:
        sets: scenarios, and predicted start and end of their launches, shape ``(launches, 2)``.
    """
    rows = []
    for name, predictions in sets.items():
        for number, (scenario, times) in enumerate(predictions):
            among = concurrency(scenario)
            for i, launch in enumerate(scenario.launches):
                measured, (least_us, most_us) = scenario.measured[i], scenario.end_min_max_us[i]
                row = {"set": name, "number": number, "scenario": scenario.id, "launch": i, "kernel": launch.kernel}
                row |= {"stream": launch.stream, "priority": launch.priority, "among": among[i]}
                row |= {"start_us": times[i, 0], "end_us": times[i, 1]}
                row |= {"measured_start_us": measured.start_us, "measured_us": measured.end_us}
                noise, end_us = (most_us - least_us) / measured.end_us, float(times[i, 1])
                nearest_us = min(max(end_us, least_us), most_us)
                row |= {"error": end_us / measured.end_us - 1.0, "noise": noise, "reproducible": noise <= REPRODUCIBLE}
                rows.append({**row, "beyond": abs(end_us - nearest_us) / measured.end_us})
    return frame(rows).reindex(columns=COLUMNS)


def concurrency(scenario: RecordedScenario) -> list[int]:
    """For each launch, how many launches ran at the midpoint of its measured time, itself included."""
    start = np.array([m.start_us for m in scenario.measured])
    end = np.array([m.end_us for m in scenario.measured])
    return [max(1, int(((start <= middle) & (middle <= end)).sum())) for middle in (start + end) / 2]


def spread(errors: Any) -> dict[str, float] | None:
    """Median, 90th and 95th percentile of absolute errors; ``None`` if there are none."""
    if not len(errors):
        return None
    median, p90, p95 = np.percentile(np.abs(errors), (50, 90, 95)).tolist()
    return {"median": median, "p90": p90, "p95": p95}


def score(found: DataFrame) -> dict[str, Any] | None:
    """The figures of the :func:`launches` of one set; ``None`` if there are none."""
    if not len(found):
        return None
    by_scenario = found.groupby("number", sort=False)
    last = by_scenario[["end_us", "measured_us"]].max()
    ranks = [_rank_correlation(of) for _, of in by_scenario]
    kept = found[found.reproducible]
    return {
        "n": len(found),
        "n_reproducible": len(kept),
        "end_error": spread(found.error),
        "beyond_noise": spread(found.beyond),
        "within_noise": float((found.beyond == 0.0).mean()),
        "noise": spread(found.noise),
        "reproducible_end_error": spread(kept.error),
        "makespan_error": spread(last.end_us / last.measured_us - 1.0),
        "rank_correlation": float(np.mean(ranks)),
        "rank_correlation_p10": float(np.percentile(ranks, 10)),
    }


def brief(figures: Mapping[str, Any]) -> dict[str, float | None]:
    """What a set's :func:`score` is held to: errors of all launches."""
    ends = figures["end_error"] or {"median": None, "p90": None}
    makespan = figures["makespan_error"]["median"]
    return {"median": ends["median"], "p90": ends["p90"], "makespan_median": makespan}


def _rank_correlation(scenario: DataFrame) -> float:
    """Spearman's correlation of predicted and measured ends; 1 for a single launch."""
    # Ends within a step of the timer are equal by chance: they stay in order of issue instead of sharing a rank.
    ranks = scenario[["end_us", "measured_us"]].rank(method="first")
    return float(np.corrcoef(ranks.end_us, ranks.measured_us)[0, 1]) if len(ranks) > 1 else 1.0


def halves(found: DataFrame) -> dict[str, Any]:
    """The figures of the scenarios with even and with odd numbers; ``None`` for a half without any.

    The number is that at the end of a scenario's id, else its position in the file.
    """
    named = found.scenario.str.extract(r"(\d+)$")[0]
    odd = named.fillna(found.number).astype(int) % 2 == 1
    return {"even": score(found[~odd]), "odd": score(found[odd])}


def worst_launches(found: DataFrame, count: int = WORST_SHOWN) -> DataFrame:
    """The launches furthest beyond their noise, worst first, at most one a scenario."""
    worst = found.reindex(found.beyond.astype(float).sort_values(ascending=False, kind="stable").index)
    return worst.drop_duplicates(["set", "number"]).head(count)
