"""Options of schedulers by successive halving on a fixed sample of the training split.

Each scheduler has as many candidates, its defaults and others drawn from its ranges (K. Jamieson, A. Talwalkar,
*Non-stochastic best arm identification and hyperparameter optimization*, AISTATS 2016). In each rung those go on that
cost least on the scenarios so far, and play three times as many; the defaults always go on.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from gpusched_env.baselines.ranges import ranges_of
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.baselines.tuning import FIRST_SEED, Trial, Tuning
from gpusched_env.experiments.games.own import DEVICE
from gpusched_env.experiments.lib.files import held, write_file
from gpusched_env.experiments.lib.workers import Progress, run_grid
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.experiments.tuning.search import Drawn, next_trial, spec_of
from gpusched_env.games.drawn.experiments.game import made_of, run_drawn_cell
from gpusched_env.games.drawn.experiments.opponents import NAME, PUBLISHED
from gpusched_env.games.drawn.problems.splits import TRAIN, frozen, names_of
from gpusched_env.reading import decoded, read_bytes
from gpusched_env.versions import versions

CANDIDATES: Final = 16
RUNGS: Final = ((16, 6), (6, 18), (3, 54))
"""Candidates, the defaults among them, and scenarios, rung by rung."""
OPTION: Final = "--json"
Costs = dict[str, dict[str, float]]
"""Costs of what was played, by scheduler with options and by scenario."""


@dataclass(frozen=True, slots=True)
class Halving:
    """A search under way."""

    schedulers: Sequence[str]
    costs: Costs
    """Grows."""

    def search(self, path: Path, workers: int | None, on_progress: Progress) -> Tuning:
        """All rungs; what is played is written to ``path``."""
        specs = {name: candidates(name) for name in self.schedulers}
        for number, scenarios in RUNGS:
            names = names_of(TRAIN, scenarios)
            specs = {name: self._cheapest(name, of, number) for name, of in specs.items()}
            self._play([spec for of in specs.values() for spec in of], names, path, workers, on_progress)
        return Tuning(
            command=f"gpusched lab drawn-tune {OPTION} {path.name}",
            versions=versions(),
            scenario=NAME,
            variants=names_of(TRAIN, RUNGS[-1][1]),
            seeds=[FIRST_SEED],
            budget=CANDIDATES,
            seed=0,
            made=msgspec.to_builtins(made_of(self.schedulers)),
            trials={
                name: [Trial(spec=spec, drawn=of[spec], cost=self._mean(spec, RUNGS[-1][1])) for spec in of]
                for name, of in specs.items()
            },
        )

    def _cheapest(self, name: str, specs: dict[str, Drawn], number: int) -> dict[str, Drawn]:
        """The defaults, and those that were cheapest on what all of them have played."""
        if len(specs) <= number:
            return specs
        played = min(len(self.costs[spec]) for spec in specs)
        others = sorted((spec for spec in specs if spec != name), key=lambda spec: self._mean(spec, played))
        return {spec: specs[spec] for spec in (name, *others[: number - 1])}

    def _mean(self, spec: str, scenarios: int) -> float:
        """Mean logarithm on the first scenarios."""
        own = self.costs[spec]
        pairs = zip(names_of(TRAIN, scenarios), frozen()[TRAIN], strict=False)
        return float(np.mean([math.log(max(own[name], kept.floor)) for name, kept in pairs]))

    def _play(self, specs: list[str], names: list[str], path: Path, workers: int | None, on_progress: Progress) -> None:
        groups = [
            [
                RankedEpisode(NAME, name, spec, DEVICE, FIRST_SEED)
                for spec in specs
                if name not in self.costs.get(spec, {})
            ]
            for name in names
        ]
        left = sum(map(len, groups))
        done = 0

        def keep(found: list[EpisodeCost]) -> None:
            nonlocal done
            for episode in found:
                self.costs.setdefault(episode.cell.scheduler, {})[episode.cell.variant] = episode.cost
            write_file(path, msgspec.json.encode(self.costs), OPTION)
            done += len(found)
            on_progress(done, done / left)

        if not run_grid(run_drawn_cell, [group for group in groups if group], workers, keep):
            raise KeyboardInterrupt


def candidates(name: str) -> dict[str, Drawn]:
    """Schedulers with their options as they were drawn; the defaults first."""
    ranges = ranges_of(make_scheduler(name))
    if not ranges:
        return {name: {}}
    drawn = [next_trial(name, ranges, (), CANDIDATES, seed) for seed in range(CANDIDATES - 1)]
    return {name: {}, **{spec_of(name, options): options for options in drawn}}


def tune_drawn(path: Path, workers: int | None, on_progress: Progress) -> Tuning:
    """The search of all published schedulers that have options; goes on with what ``path`` has.

    Raises:
        InputError: ``path`` cannot be read or written.
        KeyboardInterrupt: an interrupt; what has been played is in ``path``.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(held(path, OPTION))
        costs = decoded(read_bytes(path), Costs, str(path)) if path.exists() else {}
        return Halving(PUBLISHED, costs).search(path, workers, on_progress)
