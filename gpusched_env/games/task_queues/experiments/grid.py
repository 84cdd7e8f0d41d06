"""Episodes of task queues: a variant a problem, a graph a seed, a cost the time over the bulk-synchronous form's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.games.task_queues.agents.learned import NAME
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.environment.level_by_level import level_by_level_us
from gpusched_env.games.task_queues.experiments.schedulers import new_task_scheduler
from gpusched_env.games.task_queues.session import run_tasks_of
from gpusched_env.games.task_queues.suite import kept_problem

DEVICE: Final = "compiled"


@dataclass(frozen=True)
class TaskGrid:
    """Problems: those of the suite by name, or random ones."""

    problems: tuple[str, ...]

    @property
    def variants(self) -> dict[str, list[str]]:
        return {NAME: list(self.problems)}

    @property
    def task(self) -> Callable[[RankedEpisode], EpisodeCost]:
        return run_task_cell

    def groups(self, schedulers: Sequence[str], seeds: Sequence[int]) -> list[list[RankedEpisode]]:
        """Those of one graph together. Seed by seed."""
        graphs = [(name, seed) for seed in seeds for name in self.problems]
        return [
            [RankedEpisode(NAME, name, scheduler, DEVICE, seed) for scheduler in schedulers] for name, seed in graphs
        ]


def run_task_cell(cell: RankedEpisode) -> EpisodeCost:
    """The task of worker processes."""
    problem = kept_problem(cell.variant, cell.seed)
    whole_us = level_by_level_us(cell.variant, cell.seed)
    run = run_tasks_of(new_task_scheduler(cell.scheduler), problem, make_task_device(DEVICE), cell.seed)
    return EpisodeCost(cell, run.time_us / whole_us)
