"""Task queues: the game of work that schedules itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from gpusched_env.agents.manifest import file_hash
from gpusched_env.agents.training.config import defaults_for
from gpusched_env.agents.training.game_training import game_training_of
from gpusched_env.baselines.ranges import ranges_of
from gpusched_env.baselines.tuning import tuned_names
from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import Game, RankedField, RankingTerms, SchedulerGroup, TunedField, Validation
from gpusched_env.experiments.lib.names import with_groups
from gpusched_env.experiments.lib.workers import Progress
from gpusched_env.experiments.ranking.episodes import RankedEpisode, Workloads
from gpusched_env.experiments.ranking.made import made_by, origin_of
from gpusched_env.games.task_queues.agents.config import FormTraining
from gpusched_env.games.task_queues.agents.learned import NAME, LearnedForms
from gpusched_env.games.task_queues.baselines.registry import TASK_SCHEDULERS, honest_task_names, make_task_scheduler
from gpusched_env.games.task_queues.environment.env import RANDOM
from gpusched_env.games.task_queues.experiments.grid import DEVICE, TaskGrid, run_task_cell
from gpusched_env.games.task_queues.experiments.schedulers import default_task_schedulers, new_task_scheduler
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


class TaskQueues:
    """See :class:`gpusched_env.experiments.games.game.Game`."""

    kind = "task queues"
    plain_gpu = "bulk-synchronous"
    algorithm = "every-form"
    unseen: Workloads = "own"
    """Options are searched on random problems, not on those of the suite."""
    schedulers = TASK_SCHEDULERS

    @property
    def groups(self) -> list[SchedulerGroup]:
        return [
            SchedulerGroup(
                "Task queues",
                f"For `{NAME}`: the form in which workers take tasks from a queue in device memory.",
                TASK_SCHEDULERS.names(),
            )
        ]

    def means(self, scheduler: str) -> None:
        return None

    def sees_truth(self, scheduler: str) -> bool:
        return bool(getattr(new_task_scheduler(scheduler), "clairvoyant", False))

    def mean(self, costs: Sequence[float]) -> float:
        """Geometric: costs are ratios."""
        return math.exp(sum(map(math.log, costs)) / len(costs))

    def ranked(self, terms: RankingTerms) -> RankedField:
        """On the suite, each problem with its own graph of every seed."""
        asked = (terms.workloads, terms.gpu, tuple(terms.settings), tuple(terms.devices))
        if len(terms.scenarios) > 1 or asked != ("own", None, (), (DEVICE,)):
            raise InputError(f"{NAME} is ranked by itself, as it is, on the {DEVICE} device")
        asked_for = ["default"] if terms.schedulers is None else terms.schedulers
        names = with_groups(asked_for, default_task_schedulers, lambda: tuned_names(NAME))
        made = {name: new_task_scheduler(name) for name in names}
        weights = {name: file_hash(found.file) for name, found in made.items() if isinstance(found, LearnedForms)}
        origins = {name: origin_of(name, found, TASK_SCHEDULERS, NAME) for name, found in made.items()}
        return RankedField(
            schedulers=names,
            grid=TaskGrid(tuple(SUITE)),
            made=made_by({DEVICE: PLAY}, {NAME: origins}, weights={NAME: weights}),
        )

    def remarks(self, ranking: Ranking) -> dict[str, list[str]]:
        return {NAME: ["Costs are times over those of the bulk-synchronous form with 32 tasks a block."]}

    def tuned(self, scenario: Any, schedulers: Sequence[str] | None, first_seed: int, seeds: int) -> TunedField:
        """On random problems."""
        names = honest_task_names() if schedulers is None else schedulers
        return TunedField(
            grid=TaskGrid((RANDOM,)),
            seeds=list(range(first_seed, first_seed + seeds)),
            ranges={name: ranges_of(make_task_scheduler(name)) for name in names},
            defaults={name: TASK_SCHEDULERS.options(name) for name in names},
            check=make_task_scheduler,
            made=made_by(
                {DEVICE: PLAY},
                {NAME: {name: origin_of(name, make_task_scheduler(name), TASK_SCHEDULERS, NAME) for name in names}},
            ),
        )

    def configured(self, scenario: str, given: dict[str, Any], gpu: str | None) -> FormTraining:
        if gpu is not None:
            raise InputError(f"--gpu: {NAME} is trained for one GPU")
        # Random problems are drawn in any case.
        own = {name: value for name, value in given.items() if name != "variants"}
        return game_training_of(FormTraining, {**defaults_for(NAME), **own})

    def baselines(self, config: FormTraining) -> list[str]:
        return honest_task_names()

    def validation(self, config: FormTraining) -> Validation:
        from gpusched_env.games.task_queues.agents.training import validation_seeds

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
