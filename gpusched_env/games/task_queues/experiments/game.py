"""Task queues, as experiments ask for them: schedulers by name (written by hand, tuned as ``tuned:NAME``, or learned),
episodes of rankings, trainings, and the film.

A variant is a problem, a graph is a seed, and the cost is the time over that of the bulk-synchronous form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpusched_env.experiments.games.game import Game
from gpusched_env.experiments.games.own import DEVICE, NamedSchedulers, OwnGame
from gpusched_env.experiments.pictures import GameFilm
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.games.task_queues.agents.rule import NAME, LearnedForms
from gpusched_env.games.task_queues.agents.trainer import FormTraining
from gpusched_env.games.task_queues.baselines.registry import TASK_SCHEDULERS
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.environment.env import RANDOM
from gpusched_env.games.task_queues.environment.level_by_level import level_by_level_us
from gpusched_env.games.task_queues.session import TaskScheduler, run_tasks_of
from gpusched_env.games.task_queues.suite import SUITE, kept_problem

if TYPE_CHECKING:
    from gpusched_env.experiments.fuzz.run import Fuzzing
    from gpusched_env.experiments.ranking.result import Ranking


NAMED: Final = NamedSchedulers[TaskScheduler](NAME, TASK_SCHEDULERS, LearnedForms)
new_task_scheduler: Final = NAMED.new


def run_task_cell(cell: RankedEpisode) -> EpisodeCost:
    """The task of worker processes."""
    problem = kept_problem(cell.variant, cell.seed)
    whole_us = level_by_level_us(cell.variant, cell.seed)
    run = run_tasks_of(new_task_scheduler(cell.scheduler), problem, make_task_device(DEVICE), cell.seed)
    return EpisodeCost(cell, run.time_us / whole_us)


FILM: Final = GameFilm(
    env="TaskQueue-v0",
    options={"problem": "bfs-citation", "interval_us": 5.0},
    seed=0,
    choose=lambda _, __: 0,
    title="A search: queued tasks (orange), busy workers (blue)",
)


PLAY: Final = (
    *(
        "gpusched_env.games.task_queues.devices.compiled.device",
        "gpusched_env.games.task_queues.environment.level_by_level",
    ),
    *("gpusched_env.games.task_queues.session", "gpusched_env.games.task_queues.suite"),
)
"""Modules that play an episode."""


class TaskQueues(OwnGame):
    """See :class:`gpusched_env.experiments.games.game.Game`."""

    title = "Task queues"
    about = "the form in which workers take tasks from a queue in device memory."
    plain_gpu = "bulk-synchronous"
    algorithm = "every-form"
    named = NAMED
    task = staticmethod(run_task_cell)
    ranked_on = tuple(SUITE)
    drawn = RANDOM
    play = PLAY
    training = FormTraining

    def remarks(self, ranking: Ranking) -> dict[str, list[str]]:
        return {NAME: ["Costs are times over those of the bulk-synchronous form with 32 tasks a block."]}

    @property
    def fuzzing(self) -> Fuzzing:
        from gpusched_env.games.task_queues.experiments.fuzzing import TASKS

        return TASKS


GAME: Final[Game] = TaskQueues()
