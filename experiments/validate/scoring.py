"""Errors of predictions: relative errors of end times, of makespans, and the order of ends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.validate.recordings import ModelPair, RecordedScenario

REPRODUCIBLE = 0.05
"""A launch whose ends over the repetitions lie within this share of its end is held against the model."""
WORST_SHOWN = 10
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted times of a scenario's launches, in issue order (us since the release)."""

    scenario: RecordedScenario
    start_us: Floats
    end_us: Floats

    @property
    def measured_us(self) -> Floats:
        return np.array([m.end_us for m in self.scenario.measured])

    @property
    def errors(self) -> Floats:
        """Signed relative error of each end."""
        return self.end_us / self.measured_us - 1.0

    @property
    def reproducible(self) -> NDArray[np.bool_]:
        ranges = np.array(self.scenario.end_min_max_us)
        kept: NDArray[np.bool_] = (ranges[:, 1] - ranges[:, 0]) <= REPRODUCIBLE * self.measured_us
        return kept

    @property
    def makespan_error(self) -> float:
        return float(self.end_us.max() / self.measured_us.max() - 1.0)

    @property
    def rank_correlation(self) -> float:
        """Spearman's correlation of predicted and measured ends; 1 for a single launch."""
        if len(self.end_us) < 2:
            return 1.0
        # Ends within a step of the timer are equal by chance: they stay in order of issue instead of sharing a rank.
        predicted, measured = (np.argsort(np.argsort(values)) for values in (self.end_us, self.measured_us))
        return float(np.corrcoef(predicted, measured)[0, 1])


def spread(errors: Floats) -> dict[str, float]:
    """Median, 90th and 95th percentile of absolute errors."""
    median, p90, p95 = np.percentile(np.abs(errors), (50, 90, 95)).tolist()
    return {"median": median, "p90": p90, "p95": p95}


def score(predictions: Sequence[Prediction]) -> dict[str, Any]:
    """The figures of one set."""
    errors = np.concatenate([p.errors for p in predictions])
    reproducible = np.concatenate([p.reproducible for p in predictions])
    ranks = [p.rank_correlation for p in predictions]
    return {
        "n": len(errors),
        "n_reproducible": int(reproducible.sum()),
        "end_error": spread(errors),
        "reproducible_end_error": spread(errors[reproducible]) if reproducible.any() else None,
        "makespan_error": spread(np.array([p.makespan_error for p in predictions])),
        "rank_correlation": float(np.mean(ranks)),
        "rank_correlation_p10": float(np.percentile(ranks, 10)),
    }


def halves(predictions: Sequence[Prediction]) -> dict[str, Any]:
    """The figures of the scenarios with even and with odd numbers; ``None`` for a half without any."""
    split: dict[str, list[Prediction]] = {"even": [], "odd": []}
    for position, prediction in enumerate(predictions):
        split["odd" if _number(prediction.scenario.id, position) % 2 else "even"].append(prediction)
    return {name: score(members) if members else None for name, members in split.items()}


def _number(id_: str, position: int) -> int:
    """The number at the end of a scenario's id, else its position in the file."""
    digits = re.search(r"\d+$", id_)
    return int(digits.group()) if digits else position


def concurrency(scenario: RecordedScenario) -> list[int]:
    """For each launch, how many launches ran at the midpoint of its measured time, itself included."""
    start = np.array([m.start_us for m in scenario.measured])
    end = np.array([m.end_us for m in scenario.measured])
    return [max(1, int(((start <= middle) & (middle <= end)).sum())) for middle in (start + end) / 2]


@dataclass(frozen=True, slots=True)
class WorstLaunch:
    """A launch and its scenario."""

    set_name: str
    prediction: Prediction
    launch: int
    """Row of the scenario's launches."""

    @property
    def error(self) -> float:
        """Signed relative error of the end."""
        return float(self.prediction.errors[self.launch])


def worst_launches(sets: Mapping[str, Sequence[Prediction]], count: int = WORST_SHOWN) -> list[WorstLaunch]:
    """The reproducible launches with the largest errors, worst first, at most one a scenario."""
    worst = []
    for name, predictions in sets.items():
        for prediction in predictions:
            size = np.where(prediction.reproducible, np.abs(prediction.errors), -1.0)
            if size.max() >= 0.0:
                worst.append(WorstLaunch(name, prediction, int(size.argmax())))
    return sorted(worst, key=lambda w: -abs(w.error))[:count]


@dataclass(frozen=True, slots=True)
class PairPrediction:
    """Predicted slowdowns of a pair of networks."""

    pair: ModelPair
    foreground: float
    background: float

    def sides(self) -> dict[str, dict[str, float]]:
        """Predicted and measured slowdown of foreground and background, and the relative error."""
        pair = self.pair
        found = {}
        for side, predicted, measured in (
            ("foreground", self.foreground, pair.fg_p50_us / pair.fg_solo_us),
            ("background", self.background, pair.bg_p50_us / pair.bg_solo_us),
        ):
            found[side] = {"predicted": predicted, "measured": measured, "error": predicted / measured - 1.0}
        return found


def score_pairs(predictions: Sequence[PairPrediction]) -> dict[str, Any]:
    """The figures of the pairs of networks: errors of both sides' slowdowns."""
    sides = [p.sides() for p in predictions]
    foreground, background = (
        np.array([both[name]["error"] for both in sides]) for name in ("foreground", "background")
    )
    return {
        "n": len(predictions),
        "slowdown_error": spread(np.concatenate([foreground, background])),
        "foreground_error": spread(foreground),
        "background_error": spread(background),
        "each": [
            {"mode": p.pair.mode, "fg": p.pair.fg, "bg": p.pair.bg, **both}
            for p, both in zip(predictions, sides, strict=True)
        ],
    }
