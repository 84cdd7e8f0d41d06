"""What a ranking of schedulers of child launches comes to: speed-ups over programs that launch none."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


def speedups(costs: Mapping[str, NDArray[np.float64]], resamples: int = 2000) -> dict[str, tuple[float, float, float]]:
    """By scheduler: the geometric mean of speed-ups over all benchmarks, and its 95 % bootstrap interval over seeds.

    Args:
        costs: by scheduler, shape ``(benchmarks, seeds)``.
        resamples: bootstrap draws; seeds of a benchmark are drawn apart from those of others.
    """
    rng = np.random.default_rng(0)
    found = {}
    for name, values in costs.items():
        logs = -np.log(values)
        picks = rng.integers(0, logs.shape[1], (resamples, *logs.shape))
        means = np.take_along_axis(logs[None], picks, axis=2).mean(axis=(1, 2))
        low, high = np.percentile(means, (2.5, 97.5))
        found[name] = (float(np.exp(logs.mean())), float(np.exp(low)), float(np.exp(high)))
    return found


def speedup_text(costs: Mapping[str, NDArray[np.float64]]) -> str:
    """These as a sentence, best first."""
    found = sorted(speedups(costs).items(), key=lambda item: -item[1][0])
    figures = ", ".join(f"{name} {mean:.3f} [{low:.3f}, {high:.3f}]" for name, (mean, low, high) in found)
    return f"Geometric means of the speed-up over flat, with 95 % intervals: {figures}."
