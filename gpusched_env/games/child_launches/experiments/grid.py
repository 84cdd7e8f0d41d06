"""Episodes of child launches: a variant an application, an input a seed, a cost the time over the flat version's."""

from __future__ import annotations

import functools
from typing import Final

from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.games.child_launches.devices.compiled.device import CompiledWarpDevice
from gpusched_env.games.child_launches.environment.playing import RANDOM, flat_ps
from gpusched_env.games.child_launches.experiments.schedulers import new_launch_scheduler
from gpusched_env.games.child_launches.problem import LaunchProblem, launch_problem
from gpusched_env.games.child_launches.scheduler import run_application
from gpusched_env.games.child_launches.workload.randomised import random_benchmark
from gpusched_env.games.child_launches.workload.suite import BENCHMARKS, benchmark

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
