"""Task queues: the game of work that schedules itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from gpusched_env.agents.task_queues.trainer import NAME, no_training
from gpusched_env.baselines.ranges import ranges_of
from gpusched_env.baselines.task_queues.registry import TASK_SCHEDULERS, honest_task_names, make_task_scheduler
from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import Game, RankedField, RankingTerms, SchedulerGroup, TunedField
from gpusched_env.experiments.lib.names import with_groups
from gpusched_env.experiments.ranking.episodes import Workloads
from gpusched_env.experiments.task_queues.grid import DEVICE, TaskGrid
from gpusched_env.task_queues.suite import SUITE

if TYPE_CHECKING:
    from gpusched_env.experiments.fuzz.fuzzing import Fuzzing
    from gpusched_env.experiments.ranking.result import Ranking


class TaskQueues:
    """See :class:`gpusched_env.experiments.games.game.Game`."""

    kind = "task queues"
    plain_gpu = "bulk-synchronous"
    algorithm = "cma-es"
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
        return bool(getattr(make_task_scheduler(scheduler), "clairvoyant", False))

    def mean(self, costs: Sequence[float]) -> float:
        """Geometric: costs are ratios."""
        return math.exp(sum(map(math.log, costs)) / len(costs))

    def ranked(self, terms: RankingTerms) -> RankedField:
        """On the suite, each problem with its own graph of every seed."""
        asked = (terms.workloads, terms.gpu, tuple(terms.settings), tuple(terms.devices))
        if len(terms.scenarios) > 1 or asked != ("own", None, (), (DEVICE,)):
            raise InputError(f"{NAME} is ranked by itself, as it is, on the {DEVICE} device")
        asked_for = ["default"] if terms.schedulers is None else terms.schedulers
        names = with_groups(asked_for, TASK_SCHEDULERS.names, lambda: [])
        for name in names:
            make_task_scheduler(name)
        return RankedField(schedulers=names, grid=TaskGrid(tuple(SUITE)))

    def remarks(self, ranking: Ranking) -> dict[str, list[str]]:
        return {NAME: ["Costs are times over those of the bulk-synchronous form with 32 tasks a block."]}

    def tuned(self, scenario: Any, schedulers: Sequence[str] | None, first_seed: int, seeds: int) -> TunedField:
        """On random problems."""
        names = honest_task_names() if schedulers is None else schedulers
        return TunedField(
            grid=TaskGrid(("random",)),
            seeds=list(range(first_seed, first_seed + seeds)),
            ranges={name: ranges_of(make_task_scheduler(name)) for name in names},
            defaults={name: TASK_SCHEDULERS.options(name) for name in names},
            check=make_task_scheduler,
        )

    def configured(self, scenario: str, given: dict[str, Any], gpu: str | None) -> NoReturn:
        no_training()

    def baselines(self, config: Any) -> list[str]:
        return honest_task_names()

    def validation(self, config: Any) -> NoReturn:
        no_training()

    @property
    def fuzzing(self) -> Fuzzing:
        from gpusched_env.experiments.task_queues.fuzz.fuzzing import TASKS

        return TASKS


GAME: Final[Game] = TaskQueues()
