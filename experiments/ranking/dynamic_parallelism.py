"""A ranking of schedulers of child launches on SPAWN's benchmarks: a variant a benchmark, an input a seed."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.shipped import shipped_names
from gpusched_env.baselines.dynamic_parallelism.registry import launch_scheduler_names
from gpusched_env.baselines.tuning import tuned_names
from gpusched_env.devices.dynamic_parallelism.compiled.device import CompiledWarpDevice
from gpusched_env.dynamic_parallelism.problem import LaunchProblem, launch_problem
from gpusched_env.dynamic_parallelism.scheduler import run_application
from gpusched_env.envs.dynamic_parallelism.playing import RANDOM, flat_ps
from gpusched_env.experiments.lib.launch_names import DYNAMIC_PARALLELISM, new_launch_scheduler
from gpusched_env.experiments.lib.names import LEARNED
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.workload.dynamic_parallelism.randomised import random_benchmark
from gpusched_env.workload.dynamic_parallelism.suite import BENCHMARKS, benchmark

SUITE: Final = tuple(name for name in BENCHMARKS if name != "SA-elegans")
"""The thirteen of the paper's comparison."""


def default_launch_schedulers() -> list[str]:
    """All hand-written ones, those with tuned options, and the shipped agent if there is one."""
    shipped = [LEARNED] if DYNAMIC_PARALLELISM in shipped_names() else []
    return [*launch_scheduler_names(), *tuned_names(DYNAMIC_PARALLELISM), *shipped]


def launch_cells(schedulers: Sequence[str], seeds: Sequence[int]) -> list[list[RankedEpisode]]:
    """Every episode, those of one input together: it takes longer to make than to run.

    Seed by seed, so that an interrupt leaves equal footing.
    """
    inputs = [(name, seed) for seed in seeds for name in SUITE]
    return [
        [RankedEpisode(DYNAMIC_PARALLELISM, name, scheduler, "compiled", seed) for scheduler in schedulers]
        for name, seed in inputs
    ]


def run_launch_cell(cell: RankedEpisode) -> EpisodeCost:
    """The task of worker processes: a cost is the time over that of the flat version."""
    problem, flat = _problem(cell.variant, cell.seed)
    run = run_application(new_launch_scheduler(cell.scheduler), problem, CompiledWarpDevice(), cell.seed)
    return EpisodeCost(cell, run.time_ps / flat)


@functools.lru_cache(1)
def _problem(name: str, seed: int) -> tuple[LaunchProblem, int]:
    problem = launch_problem(random_benchmark(seed) if name == RANDOM else benchmark(name, seed))
    return problem, flat_ps(problem)


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
