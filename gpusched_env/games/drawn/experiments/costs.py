"""Logarithms of costs on a split: who is best over all scenarios, who is on each, and what lies between.

Costs of scenarios differ by factors of a thousand, so that logarithms are compared. Below a scenario's floor, a
hundredth of what is at stake in it, costs count as equal. *Best in hindsight* is who was best on other seeds than are
judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.statistics import Interval, interquartile_mean, mean_interval
from gpusched_env.experiments.ranking.result import Ranking
from gpusched_env.games.drawn.experiments.opponents import NAME, PLAIN
from gpusched_env.games.drawn.problems.splits import frozen

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SplitCosts:
    """What schedulers cost on the scenarios of a split."""

    split: str
    scenarios: list[str]
    schedulers: list[str]
    logs: Floats
    """Natural logarithms of costs, shape ``(scenarios, seeds, schedulers)``."""

    @property
    def means(self) -> Floats:
        """Over seeds, shape ``(scenarios, schedulers)``."""
        return np.asarray(self.logs.mean(1))

    @property
    def best_single(self) -> int:
        """The scheduler with the lowest mean over scenarios."""
        return int(self.means.mean(0).argmin())

    def chosen_elsewhere(self) -> NDArray[np.int64]:
        """The scheduler that is best in hindsight, by scenario and seed: on the other seeds, shape
        ``(scenarios, seeds)``.

        Raises:
            InputError: there is one seed.
        """
        seeds = self.logs.shape[1]
        if seeds < 2:
            raise InputError(f"{self.split}: best in hindsight is chosen by other seeds, and there is only one")
        others = (self.logs.sum(1, keepdims=True) - self.logs) / (seeds - 1)
        return np.asarray(others.argmin(-1))

    def among(self, schedulers: Sequence[str]) -> SplitCosts:
        """The same of some schedulers alone, of those that were ranked."""
        rows = [row for row, name in enumerate(self.schedulers) if name in schedulers]
        return SplitCosts(self.split, self.scenarios, [self.schedulers[row] for row in rows], self.logs[..., rows])

    def hindsight(self) -> Floats:
        """Mean logarithm of who is best in hindsight, shape ``(scenarios,)``."""
        picked = np.take_along_axis(self.logs, self.chosen_elsewhere()[..., None], -1)
        return np.asarray(picked[..., 0].mean(1))

    def over_hindsight(self, logs: Floats) -> Interval:
        """How many times the best in hindsight costs, with its interval over scenarios.

        Args:
            logs: mean logarithms, shape ``(scenarios,)``.
        """
        found = mean_interval((logs - self.hindsight()).tolist())
        low, high = (None if bound is None else float(np.exp(bound)) for bound in (found.low, found.high))
        return Interval(float(np.exp(found.mean)), low, high, found.seeds)

    def scores(self, logs: Floats) -> Floats:
        """0 for the plain GPU, 1 for the best that is known on the very scenario, shape ``(scenarios,)``.

        NaN where the plain GPU is the best that is known.
        """
        plain, best = self.means[:, self.schedulers.index(PLAIN)], self.means.min(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(plain > best, (plain - logs) / (plain - best), np.nan)

    def score(self, logs: Floats) -> float:
        """Interquartile mean of :meth:`scores`."""
        found = self.scores(logs)
        return float(interquartile_mean(found[np.isfinite(found)]))


def split_costs(ranking: Ranking) -> SplitCosts:
    """What a ranking of drawn scenarios says, on the scenarios that it has whole.

    Raises:
        InputError: it is of something else, or no scenario is whole.
    """
    if list(ranking.variants) != [NAME]:
        raise InputError(f"a ranking of {', '.join(ranking.variants)}: expected one of {NAME}")
    found = {(e.cell.variant, e.cell.seed, e.cell.scheduler): e.cost for e in ranking.episodes}
    split = ranking.variants[NAME][0].rpartition("-")[0]
    cells = [[(seed, name) for name in ranking.schedulers] for seed in ranking.seeds]
    whole = [v for v in ranking.variants[NAME] if all((v, *cell) in found for row in cells for cell in row)]
    if not whole:
        raise InputError(f"{split}: no scenario was played by all schedulers with all seeds; rank --resume goes on")
    costs = np.array([[[found[v, *cell] for cell in row] for row in cells] for v in whole])
    floors = np.array([frozen()[split][int(v.rpartition("-")[2])].floor for v in whole])
    return SplitCosts(split, whole, ranking.schedulers, np.log(np.maximum(costs, floors[:, None, None])))
