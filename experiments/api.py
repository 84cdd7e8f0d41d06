"""Schedulers and single episodes by name, for Python and notebooks; comparisons are in ``compare.py``.

Nothing here needs worker processes, statistics or tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpusched_env.episodes.session import Episode
from gpusched_env.experiments.lib.names import DeviceSource, SchedulerSource, new_scheduler
from gpusched_env.experiments.lib.play import play
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from gpusched_env.scheduling.scheduler import Scheduler
from gpusched_env.scheduling.timeline import Detail


def make_scheduler(source: SchedulerSource) -> Scheduler:
    """A new scheduler.

    Args:
        source: a name (``gpusched schedulers``) with or without options, ``mps(share=50)``; ``file.py:Name`` or
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
