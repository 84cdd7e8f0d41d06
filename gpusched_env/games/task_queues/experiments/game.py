"""Task queues, as experiments ask for them: schedulers by name (written by hand, tuned as ``tuned:NAME``, or learned),
episodes of rankings, trainings, and the film.

A variant is a problem, a graph is a seed, and the cost is the time over that of the bulk-synchronous form.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import gymnasium as gym

from gpusched_env.display.words import time_text
from gpusched_env.experiments.games.game import Game, GameValidation
from gpusched_env.experiments.games.own import DEVICE, NamedSchedulers, OwnGame
from gpusched_env.experiments.lib.workers import Progress
from gpusched_env.experiments.pictures import uncover
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.games.task_queues.agents.rule import NAME, LearnedForms
from gpusched_env.games.task_queues.agents.trainer import FormTraining
from gpusched_env.games.task_queues.baselines.registry import TASK_SCHEDULERS, honest_task_names
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


def shoot(path: Path) -> None:
    """Play a search that takes tasks from a queue, and uncover the picture of it from left to right."""
    env = gym.make(
        "gpusched_env:gpusched/TaskQueue-v0", problem="bfs-citation", interval_us=5.0, render_mode="rgb_array"
    )
    _, info = env.reset(seed=0)
    over = False
    while not over:
        _, _, over, _, info = env.step(0)
    title = "A search: queued tasks (orange), busy workers (blue)"
    uncover(env.render(), title, time_text(info["time_us"]), path)


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

    def baselines(self, config: FormTraining) -> list[str]:
        return honest_task_names()

    def validation(self, config: FormTraining) -> GameValidation:
        from gpusched_env.games.task_queues.training import validation_seeds

        seeds = validation_seeds(config)
        return GameValidation(
            seeds=seeds,
            problems=[RANDOM],
            episodes=len(seeds),
            costs=lambda names, on_progress: _costs(seeds, names, on_progress),
        )

    @property
    def fuzzing(self) -> Fuzzing:
        from gpusched_env.games.task_queues.experiments.fuzzing import TASKS

        return TASKS


GAME: Final[Game] = TaskQueues()


def _costs(seeds: Sequence[int], schedulers: list[str], on_progress: Progress) -> dict[str, list[float]]:
    """Seed by seed: a problem is kept for all schedulers."""
    costs: dict[str, list[float]] = {name: [] for name in schedulers}
    total, done = len(schedulers) * len(seeds), 0
    for seed in seeds:
        for name in schedulers:
            costs[name].append(run_task_cell(RankedEpisode(NAME, RANDOM, name, DEVICE, seed)).cost)
            done += 1
            on_progress(done, done / total)
    return costs
