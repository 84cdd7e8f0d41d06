"""Schedulers and single episodes by name: whatever is simulated in an experiment is simulated by :func:`play`.

Nothing here needs worker processes, statistics or tables.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

from gpusched_env import errors
from gpusched_env.episodes import session
from gpusched_env.episodes.session import Episode
from gpusched_env.errors import DeadlockError, GpuschedError, IllegalCommand, InputError, did_you_mean
from gpusched_env.experiments.lib.names import DeviceSource, SchedulerSource, name_of, new_device, new_scheduler
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from gpusched_env.scheduling.contract import Scheduler
from gpusched_env.scheduling.timeline import DETAILS, Detail


def make_scheduler(source: SchedulerSource) -> Scheduler:
    """A new scheduler.

    Args:
        source: a name (``gpusched list schedulers``) with or without options, ``mps(share=50)``; ``file.py:Name`` or
            ``package.module:Name``; ``learned`` or ``learned:PATH``; a class.

    Raises:
        InputError: no such scheduler, or an option that it does not have.
    """
    return new_scheduler(source)


def run_episode(
    scenario: str | Path | Scenario | Problem,
    scheduler: SchedulerSource,
    seed: int = 0,
    *,
    device: DeviceSource = "compiled",
    record: Detail = "kernels",
    **fields: Any,
) -> Episode:
    """Run one scheduler for one episode; the result shows its figures, and has ``to_frame()`` and ``plot``.

    Args:
        scenario: a name, a ``.yaml`` file, a scenario, or a problem that was built of one.
        scheduler: as for :func:`make_scheduler`, or an object.
        seed: of arrivals and durations.
        device: a device's name, or a factory.
        record: what is kept: ``jobs``, ``kernels``, or also ``blocks`` on SMs.
        fields: of the scenario, to replace: ``gpu="h200-sxm"``, ``horizon_us=20_000``.

    Raises:
        InputError: an unknown name or field.
        IllegalCommand, DeadlockError: from the episode.
        GpuschedError: a scheduler of one's own failed; names the line.
    """
    problem = scenario if isinstance(scenario, Problem) else build_problem(load_scenario(scenario, **fields))
    return play(scheduler, problem, seed, device=device, record=record)


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
