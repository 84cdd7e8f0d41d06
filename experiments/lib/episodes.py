"""One episode of a comparison: what worker processes are told, do, and send back."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.episodes.metrics import Metrics
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.names import DeviceSource, SchedulerSource
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.workers import Shared
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.timeline import Detail, Timeline


@dataclass(frozen=True, slots=True)
class EpisodeTask:
    """One scheduler on one seed."""

    name: str
    scheduler: SchedulerSource
    problem: Shared[Problem]
    device: DeviceSource
    seed: int
    record: Detail = "jobs"
    window_us: tuple[float, float] | None = None
    """Stop at its end instead of at the scenario's horizon, and keep the blocks that run within it."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one episode left behind."""

    scheduler: str
    seed: int
    metrics: Metrics
    jobs: NDArray[np.float64]
    """Completed jobs, shape ``(jobs, 5)``, columns of ``Timeline.jobs``."""
    timeline: Timeline | None
    """Kept if more than jobs was recorded."""
    wall_s: float


def run_task(task: EpisodeTask) -> Run:
    """Run one episode: what worker processes do.

    Raises:
        as :func:`~gpusched_env.experiments.lib.play.play`.
    """
    problem = task.problem.value
    if task.window_us is not None:
        cut = msgspec.structs.replace(problem.scenario, horizon_us=task.window_us[1])
        problem = dataclasses.replace(problem, scenario=cut)
    episode = play(task.scheduler, problem, task.seed, device=task.device, record=task.record, name=task.name)
    if task.window_us is not None:
        blocks = episode.timeline.blocks
        blocks.keep(blocks.column("ended_us") > task.window_us[0])
    return Run(
        scheduler=task.name,
        seed=task.seed,
        metrics=episode.metrics,
        jobs=episode.timeline.jobs.array,
        timeline=None if task.record == "jobs" else episode.timeline,
        wall_s=episode.wall_s,
    )


MOST_SEEDS = 1_000_000
"""Seeds of one comparison, at most."""


LAST_SEED = 2**63 - 1
"""Tables of results hold no larger number."""


def checked_seeds(seeds: int | Sequence[int]) -> list[int]:
    """``seeds``: how many, counted from 0, or which.

    Raises:
        InputError: none, more than :data:`MOST_SEEDS`, the same one twice, or one below 0 or beyond
            :data:`LAST_SEED`.
    """
    if isinstance(seeds, int) and seeds > MOST_SEEDS:
        raise InputError(f"{seeds} seeds, must be at most {MOST_SEEDS}")
    chosen = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not chosen:
        raise InputError("no seed given; at least 1 is needed")
    if min(chosen) < 0 or len(set(chosen)) < len(chosen):
        raise InputError(f"seeds must be different and not negative, got {chosen}")
    if max(chosen) > LAST_SEED:
        raise InputError(f"seed {max(chosen)} must be at most {LAST_SEED}")
    return chosen
