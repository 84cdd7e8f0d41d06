"""One episode: simulated by :func:`play`, and as a task of a worker process."""

from __future__ import annotations

import dataclasses
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env import errors
from gpusched_env.episodes import session
from gpusched_env.episodes.metrics import Metrics
from gpusched_env.episodes.session import Episode
from gpusched_env.errors import DeadlockError, GpuschedError, IllegalCommand, InputError, did_you_mean
from gpusched_env.experiments.lib.names import DeviceSource, SchedulerSource, name_of, new_device, new_scheduler
from gpusched_env.experiments.lib.workers import Shared
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.timeline import DETAILS, Detail, Timeline


def play(
    scheduler: SchedulerSource,
    problem: Problem,
    seed: int,
    *,
    device: DeviceSource = "compiled",
    record: Detail = "jobs",
    name: str | None = None,
) -> Episode:
    """Run one scheduler for one episode.

    Args:
        scheduler: a name, an object, or something that makes one.
        problem: what it runs on.
        seed: of arrivals and durations.
        device: a device's name, or a factory.
        record: what the timeline keeps.
        name: what errors call the scheduler.

    Raises:
        InputError: unknown names.
        IllegalCommand, DeadlockError: from the episode; names scheduler and seed.
        GpuschedError: the scheduler is not of this package and failed; names scheduler, seed and line.
    """
    who = f"scheduler {name or name_of(scheduler)!r}, seed {seed}"
    if record not in DETAILS:
        raise InputError(f"record is {record!r}; {did_you_mean(record, DETAILS)}")
    made, behind = new_scheduler(scheduler, problem.scenario), new_device(device)
    try:
        return session.run_episode(made, problem, behind, seed, record=record)
    except (IllegalCommand, DeadlockError) as error:
        raise type(error)(f"{who}: {error}") from error
    except GpuschedError:
        raise
    except Exception as error:
        place = _foreign_line(error)
        if place is None and not type(made).__module__.startswith("gpusched_env."):
            place = f"{type(made).__name__} must have the methods reset(knowledge, rng) and decide(view)"
        if place is None:
            raise
        raise GpuschedError(f"{who}: {type(error).__name__}: {error} ({place})") from error


def _foreign_line(error: Exception) -> str | None:
    """The last line of the user's own that an error came through; ``None`` if there is none."""
    home = Path(errors.__file__).resolve().parent
    ours = [home, *((home / name).resolve() for name in ("agents", "baselines", "experiments"))]
    libraries = [Path(sys.prefix), Path(sys.base_prefix)]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename).resolve()
        if not any(path.is_relative_to(folder) for folder in (*ours, *libraries)):
            return f"{path.name}, line {frame.lineno}, in {frame.name}"
    return None


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
