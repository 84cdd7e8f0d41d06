"""One episode of a comparison: what a worker process runs and sends back."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import DeadlockError, IllegalCommand
from gpusched_env.experiments.plugins import DeviceSource, SchedulerSource, new_device, new_scheduler
from gpusched_env.experiments.workers import Report
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.metrics import Metrics, episode_metrics
from gpusched_env.scheduling.session import run_episode
from gpusched_env.scheduling.timeline import Detail, Timeline


@dataclass(frozen=True, slots=True)
class EpisodeTask:
    """One scheduler on one seed."""

    name: str
    scheduler: SchedulerSource
    seed: int
    record: Detail
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


def run_task(task: EpisodeTask, report: Report, *, problem: Problem, device: DeviceSource) -> Run:
    """Run one episode.

    Raises:
        IllegalCommand, DeadlockError: with the scheduler and the seed named.
    """
    if task.window_us is not None:
        cut = msgspec.structs.replace(problem.scenario, horizon_us=task.window_us[1])
        problem = dataclasses.replace(problem, scenario=cut)
    horizon_us = problem.scenario.horizon_us
    try:
        episode = run_episode(
            new_scheduler(task.scheduler),
            problem,
            new_device(device),
            task.seed,
            record=task.record,
            on_progress=lambda time_us: report(min(1.0, time_us / horizon_us)),
        )
    except (IllegalCommand, DeadlockError) as error:
        raise type(error)(f"scheduler {task.name!r}, seed {task.seed}: {error}") from error
    if task.window_us is not None:
        blocks = episode.timeline.blocks
        blocks.keep(blocks.column("ended_us") > task.window_us[0])
    return Run(
        scheduler=task.name,
        seed=task.seed,
        metrics=episode_metrics(episode),
        jobs=episode.timeline.jobs.array,
        timeline=None if task.record == "jobs" else episode.timeline,
        wall_s=episode.wall_s,
    )
