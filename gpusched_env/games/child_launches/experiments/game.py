"""Child launches, as experiments ask for them: schedulers by name (written by hand, tuned as ``tuned:NAME``, or
learned), episodes of rankings, their speed-ups, trainings, and the film.

A variant is an application, an input is a seed, and the cost is the time over that of the flat version.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.games.game import Game, TunedField
from gpusched_env.experiments.games.own import DEVICE, NamedSchedulers, OwnGame
from gpusched_env.experiments.pictures import GameFilm
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.games.child_launches.agents.rule import NAME, LearnedLaunches
from gpusched_env.games.child_launches.agents.trainer import LaunchTraining
from gpusched_env.games.child_launches.baselines.registry import (
    LAUNCH_SCHEDULERS,
)
from gpusched_env.games.child_launches.devices.compiled.device import CompiledWarpDevice
from gpusched_env.games.child_launches.environment.requests import RANDOM, flat_ps
from gpusched_env.games.child_launches.problem import LaunchProblem, launch_problem
from gpusched_env.games.child_launches.scheduler import LaunchScheduler, run_application
from gpusched_env.games.child_launches.workload.suite import BENCHMARKS, benchmark, random_benchmark

if TYPE_CHECKING:
    from gpusched_env.experiments.fuzz.run import Fuzzing
    from gpusched_env.experiments.ranking.result import Ranking


NAMED: Final = NamedSchedulers[LaunchScheduler](NAME, LAUNCH_SCHEDULERS, LearnedLaunches)
new_launch_scheduler: Final = NAMED.new


def speedups(costs: Mapping[str, NDArray[np.float64]], resamples: int = 2000) -> dict[str, tuple[float, float, float]]:
    """Geometric means of speed-ups over all benchmarks, and their 95 % bootstrap intervals over seeds, by scheduler.

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
    """The speed-ups as a sentence, best first."""
    found = sorted(speedups(costs).items(), key=lambda item: -item[1][0])
    figures = ", ".join(f"{name} {mean:.3f} [{low:.3f}, {high:.3f}]" for name, (mean, low, high) in found)
    return f"Geometric means of the speed-up over flat, with 95 % intervals: {figures}."


SUITE: Final = tuple(name for name in BENCHMARKS if name != "SA-elegans")
"""The thirteen of the paper's comparison."""


def run_launch_cell(cell: RankedEpisode) -> EpisodeCost:
    """The task of worker processes."""
    problem, flat = _problem(cell.variant, cell.seed)
    run = run_application(new_launch_scheduler(cell.scheduler), problem, CompiledWarpDevice(), cell.seed)
    return EpisodeCost(cell, run.time_ps / flat)


@functools.lru_cache(1)
def _problem(name: str, seed: int) -> tuple[LaunchProblem, int]:
    problem = launch_problem(random_benchmark(seed) if name == RANDOM else benchmark(name, seed))
    return problem, flat_ps(problem)


FILM: Final = GameFilm(
    env="DynamicParallelism-v0",
    choose=lambda _, info: int(info["action_mask"][1]),
    title="Kernels that threads launched: on SMs (blue), waiting (orange)",
)


PLAY: Final = (
    *(
        "gpusched_env.games.child_launches.devices.compiled.device",
        "gpusched_env.games.child_launches.environment.requests",
    ),
    *("gpusched_env.games.child_launches.workload.suite", "gpusched_env.games.child_launches.workload.suite"),
)
"""Modules that play an episode."""


class ChildLaunches(OwnGame):
    """See :class:`gpusched_env.experiments.games.game.Game`."""

    title = "Child launches"
    about = "whether a thread launches a child kernel or does the work itself."
    plain_gpu = "baseline-dp"
    named = NAMED
    task = staticmethod(run_launch_cell)
    ranked_on = SUITE
    drawn = RANDOM
    play = PLAY
    training = LaunchTraining

    def mean(self, costs: Sequence[float]) -> float:
        """Geometric: costs are ratios."""
        from gpusched_env.games.child_launches.training import geometric_mean

        return geometric_mean(costs)

    def remarks(self, ranking: Ranking) -> dict[str, list[str]]:
        return {NAME: [speedup_text(ranking.costs(NAME, DEVICE))]}

    def tuned(self, scenario: Any, schedulers: Sequence[str] | None, first_seed: int, seeds: int) -> TunedField:
        """On the first random applications that are no larger than those that agents are trained on."""
        from gpusched_env.games.child_launches.training import applications, seeds_of

        return self.tuned_on(schedulers, seeds_of(applications(itertools.count(first_seed), seeds, LaunchTraining())))

    def validation_seeds(self, config: LaunchTraining) -> list[int]:
        from gpusched_env.games.child_launches.training import seeds_of, validation_applications

        return seeds_of(validation_applications(config))

    @property
    def fuzzing(self) -> Fuzzing:
        from gpusched_env.games.child_launches.experiments.fuzzing import CHILD_LAUNCHES

        return CHILD_LAUNCHES


GAME: Final[Game] = ChildLaunches()
