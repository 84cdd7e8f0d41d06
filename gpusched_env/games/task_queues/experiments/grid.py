"""Episodes of task queues: a variant a problem, a graph a seed, a cost the time over the bulk-synchronous form's."""

from __future__ import annotations

from gpusched_env.experiments.games.own import DEVICE
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.environment.level_by_level import level_by_level_us
from gpusched_env.games.task_queues.experiments.schedulers import new_task_scheduler
from gpusched_env.games.task_queues.session import run_tasks_of
from gpusched_env.games.task_queues.suite import kept_problem


def run_task_cell(cell: RankedEpisode) -> EpisodeCost:
    """The task of worker processes."""
    problem = kept_problem(cell.variant, cell.seed)
    whole_us = level_by_level_us(cell.variant, cell.seed)
    run = run_tasks_of(new_task_scheduler(cell.scheduler), problem, make_task_device(DEVICE), cell.seed)
    return EpisodeCost(cell, run.time_us / whole_us)
