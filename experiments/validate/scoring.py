"""Errors of predictions: relative errors of end times, of makespans, and the order of ends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.validate.dataset import ModelPair, RecordedScenario

REPRODUCIBLE = 0.05
"""A launch whose ends over the repetitions lie within this share of its end is held against the model."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted times of a scenario's launches, in issue order (us since the release)."""

    scenario: RecordedScenario
    start_us: NDArray[np.float64]
    end_us: NDArray[np.float64]

    @property
    def measured_us(self) -> NDArray[np.float64]:
        return np.array([m.end_us for m in self.scenario.measured])

    @property
    def errors(self) -> NDArray[np.float64]:
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
        predicted, measured = (np.argsort(np.argsort(values)) for values in (self.end_us, self.measured_us))
        return float(np.corrcoef(predicted, measured)[0, 1])


def spread(errors: NDArray[np.float64]) -> dict[str, float]:
    """Median, 90th and 95th percentile of absolute errors."""
    size = np.abs(errors)
    return {name: float(np.percentile(size, q)) for name, q in (("median", 50), ("p90", 90), ("p95", 95))}


def score(predictions: Sequence[Prediction]) -> dict[str, Any]:
    """The figures of one set."""
    errors = np.concatenate([p.errors for p in predictions])
    reproducible = np.concatenate([p.reproducible for p in predictions])
    return {
        "n": len(errors),
        "n_reproducible": int(reproducible.sum()),
        "end_error": spread(errors),
        "reproducible_end_error": spread(errors[reproducible]) if reproducible.any() else None,
        "makespan_error": spread(np.array([p.makespan_error for p in predictions])),
        "rank_correlation": float(np.mean([p.rank_correlation for p in predictions])),
        "rank_correlation_p10": float(np.percentile([p.rank_correlation for p in predictions], 10)),
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
class PairPrediction:
    """Predicted slowdowns of a pair of networks."""

    pair: ModelPair
    foreground: float
    background: float

    @property
    def foreground_error(self) -> float:
        return self.foreground / (self.pair.fg_p50_us / self.pair.fg_solo_us) - 1.0

    @property
    def background_error(self) -> float:
        return self.background / (self.pair.bg_p50_us / self.pair.bg_solo_us) - 1.0


def score_pairs(predictions: Sequence[PairPrediction]) -> dict[str, Any]:
    """The figures of the pairs of networks: errors of both sides' slowdowns."""
    foreground = np.array([p.foreground_error for p in predictions])
    background = np.array([p.background_error for p in predictions])
    return {
        "n": len(predictions),
        "slowdown_error": spread(np.concatenate([foreground, background])),
        "foreground_error": spread(foreground),
        "background_error": spread(background),
        "each": [_pair_figures(p) for p in predictions],
    }


def _pair_figures(prediction: PairPrediction) -> dict[str, Any]:
    """Both slowdowns of a pair."""
    pair = prediction.pair
    return {
        "mode": pair.mode,
        "fg": pair.fg,
        "bg": pair.bg,
        "foreground": {
            "predicted": prediction.foreground,
            "measured": pair.fg_p50_us / pair.fg_solo_us,
            "error": prediction.foreground_error,
        },
        "background": {
            "predicted": prediction.background,
            "measured": pair.bg_p50_us / pair.bg_solo_us,
            "error": prediction.background_error,
        },
    }
