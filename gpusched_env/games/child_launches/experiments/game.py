"""Child launches: the game of dynamic parallelism."""

from __future__ import annotations

import itertools
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
from gpusched_env.experiments.ranking.episodes import Workloads
from gpusched_env.experiments.ranking.made import made_by, origin_of
from gpusched_env.games.child_launches.agents.config import LaunchTraining
from gpusched_env.games.child_launches.agents.learned import NAME, LearnedLaunches
from gpusched_env.games.child_launches.baselines.registry import (
    LAUNCH_SCHEDULERS,
    honest_launch_names,
    make_launch_scheduler,
)
from gpusched_env.games.child_launches.environment.playing import RANDOM
from gpusched_env.games.child_launches.experiments.grid import DEVICE, SUITE, LaunchGrid
from gpusched_env.games.child_launches.experiments.schedulers import default_launch_schedulers, new_launch_scheduler
from gpusched_env.games.child_launches.experiments.speedups import speedup_text

if TYPE_CHECKING:
    from gpusched_env.experiments.fuzz.fuzzing import Fuzzing
    from gpusched_env.experiments.ranking.result import Ranking
    from gpusched_env.games.child_launches.training import Application

PLAY: Final = (
    *(
        "gpusched_env.games.child_launches.devices.compiled.device",
        "gpusched_env.games.child_launches.environment.playing",
    ),
    *("gpusched_env.games.child_launches.workload.randomised", "gpusched_env.games.child_launches.workload.suite"),
)
"""Modules that play an episode."""


class ChildLaunches:
    """See :class:`gpusched_env.experiments.games.game.Game`."""

    kind = "child launches"
    plain_gpu = "baseline-dp"
    algorithm = "cma-es"
    unseen: Workloads = "own"
    """Options are searched on random applications, not on the benchmarks."""
    schedulers = LAUNCH_SCHEDULERS

    @property
    def groups(self) -> list[SchedulerGroup]:
        return [
            SchedulerGroup(
                "Child launches",
                f"For `{NAME}`: whether a thread launches a child kernel or does the work itself.",
                LAUNCH_SCHEDULERS.names(),
            )
        ]

    def means(self, scheduler: str) -> None:
        return None

    def sees_truth(self, scheduler: str) -> bool:
        return bool(getattr(new_launch_scheduler(scheduler), "clairvoyant", False))

    def mean(self, costs: Sequence[float]) -> float:
        """Geometric: costs are ratios."""
        from gpusched_env.games.child_launches.training import geometric_mean

        return geometric_mean(costs)

    def ranked(self, terms: RankingTerms) -> RankedField:
        """On the benchmarks, each with its own input of every seed."""
        asked = (terms.workloads, terms.gpu, tuple(terms.settings), tuple(terms.devices))
        if len(terms.scenarios) > 1 or asked != ("own", None, (), (DEVICE,)):
            raise InputError(f"{NAME} is ranked by itself, as it is, on the {DEVICE} device")
        asked_for = ["default"] if terms.schedulers is None else terms.schedulers
        names = with_groups(asked_for, default_launch_schedulers, lambda: tuned_names(NAME))
        made = {name: new_launch_scheduler(name) for name in names}
        weights = {name: file_hash(found.file) for name, found in made.items() if isinstance(found, LearnedLaunches)}
        origins = {name: origin_of(name, found, LAUNCH_SCHEDULERS, NAME) for name, found in made.items()}
        return RankedField(
            schedulers=names,
            grid=LaunchGrid(SUITE),
            made=made_by({DEVICE: PLAY}, {NAME: origins}, weights={NAME: weights}),
        )

    def remarks(self, ranking: Ranking) -> dict[str, list[str]]:
        return {NAME: [speedup_text(ranking.costs(NAME, DEVICE))]}

    def tuned(self, scenario: Any, schedulers: Sequence[str] | None, first_seed: int, seeds: int) -> TunedField:
        """On the first random applications that are no larger than those that agents are trained on."""
        from gpusched_env.games.child_launches.training import applications

        names = honest_launch_names(hardware=False) if schedulers is None else schedulers
        ranges = {name: ranges_of(make_launch_scheduler(name)) for name in names}
        found = applications(itertools.count(first_seed), seeds, LaunchTraining())
        return TunedField(
            grid=LaunchGrid((RANDOM,)),
            seeds=[int(problem.name.rpartition("-")[2]) for problem, _ in found],
            ranges=ranges,
            defaults={name: LAUNCH_SCHEDULERS.options(name) for name in names},
            check=make_launch_scheduler,
            made=made_by(
                {DEVICE: PLAY},
                {NAME: {name: origin_of(name, make_launch_scheduler(name), LAUNCH_SCHEDULERS, NAME) for name in names}},
            ),
        )

    def configured(self, scenario: str, given: dict[str, Any], gpu: str | None) -> LaunchTraining:
        if gpu is not None:
            raise InputError(f"--gpu: {NAME} is trained for one GPU")
        # Random applications are drawn in any case.
        own = {name: value for name, value in given.items() if name != "variants"}
        return game_training_of(LaunchTraining, {**defaults_for(NAME), **own})

    def baselines(self, config: LaunchTraining) -> list[str]:
        return honest_launch_names(hardware=False)

    def validation(self, config: LaunchTraining) -> Validation:
        from gpusched_env.games.child_launches.training import validation_applications

        found = validation_applications(config)
        return Validation(
            seeds=list(range(len(found))),
            problems=[problem.name for problem, _ in found],
            episodes=len(found),
            costs=lambda names, on_progress: _costs(found, names, on_progress),
        )

    @property
    def fuzzing(self) -> Fuzzing:
        from gpusched_env.games.child_launches.experiments.fuzz.fuzzing import CHILD_LAUNCHES

        return CHILD_LAUNCHES


GAME: Final[Game] = ChildLaunches()


def _costs(applications: Sequence[Application], schedulers: list[str], on_progress: Progress) -> dict[str, list[float]]:
    """Scheduler by scheduler."""
    from gpusched_env.games.child_launches.devices.compiled.device import CompiledWarpDevice
    from gpusched_env.games.child_launches.scheduler import run_application

    costs: dict[str, list[float]] = {name: [] for name in schedulers}
    total, done = len(schedulers) * len(applications), 0
    for name in schedulers:
        for problem, flat in applications:
            run = run_application(make_launch_scheduler(name), problem, CompiledWarpDevice())
            costs[name].append(run.time_ps / flat)
            done += 1
            on_progress(done, done / total)
    return costs
