"""Task queues: the game of work that schedules itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from gpusched_env.experiments.games.game import Game, Validation
from gpusched_env.experiments.games.own import DEVICE, OwnGame
from gpusched_env.experiments.lib.workers import Progress
from gpusched_env.experiments.ranking.episodes import RankedEpisode
from gpusched_env.games.task_queues.agents.config import FormTraining
from gpusched_env.games.task_queues.agents.learned import NAME
from gpusched_env.games.task_queues.baselines.registry import honest_task_names
from gpusched_env.games.task_queues.environment.env import RANDOM
from gpusched_env.games.task_queues.experiments.grid import run_task_cell
from gpusched_env.games.task_queues.experiments.schedulers import NAMED
from gpusched_env.games.task_queues.suite import SUITE

if TYPE_CHECKING:
    from gpusched_env.experiments.fuzz.fuzzing import Fuzzing
    from gpusched_env.experiments.ranking.result import Ranking

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

    def validation(self, config: FormTraining) -> Validation:
        from gpusched_env.games.task_queues.training import validation_seeds

        seeds = validation_seeds(config)
        return Validation(
            seeds=seeds,
            problems=[RANDOM],
            episodes=len(seeds),
            costs=lambda names, on_progress: _costs(seeds, names, on_progress),
        )

    @property
    def fuzzing(self) -> Fuzzing:
        from gpusched_env.games.task_queues.experiments.fuzz.fuzzing import TASKS

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
