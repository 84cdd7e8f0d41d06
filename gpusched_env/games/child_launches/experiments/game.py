"""Child launches: the game of dynamic parallelism."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from gpusched_env.experiments.games.game import Game, TunedField, Validation
from gpusched_env.experiments.games.own import DEVICE, OwnGame
from gpusched_env.experiments.lib.workers import Progress
from gpusched_env.games.child_launches.agents.config import LaunchTraining
from gpusched_env.games.child_launches.agents.learned import NAME
from gpusched_env.games.child_launches.baselines.registry import honest_launch_names, make_launch_scheduler
from gpusched_env.games.child_launches.environment.playing import RANDOM
from gpusched_env.games.child_launches.experiments.grid import SUITE, run_launch_cell
from gpusched_env.games.child_launches.experiments.schedulers import NAMED
from gpusched_env.games.child_launches.experiments.speedups import speedup_text

if TYPE_CHECKING:
    from gpusched_env.experiments.fuzz.fuzzing import Fuzzing
    from gpusched_env.experiments.ranking.result import Ranking
    from gpusched_env.games.child_launches.agents.training import Application

PLAY: Final = (
    *(
        "gpusched_env.games.child_launches.devices.compiled.device",
        "gpusched_env.games.child_launches.environment.playing",
    ),
    *("gpusched_env.games.child_launches.workload.randomised", "gpusched_env.games.child_launches.workload.suite"),
)
"""Modules that play an episode."""


class ChildLaunches(OwnGame):
    """See :class:`gpusched_env.experiments.games.game.Game`."""

    title = "Child launches"
    about = "whether a thread launches a child kernel or does the work itself."
    plain_gpu = "baseline-dp"
    named = NAMED
    task = staticmethod(run_launch_cell)
    ranked_on = SUITE
    play = PLAY
    training = LaunchTraining

    def mean(self, costs: Sequence[float]) -> float:
        """Geometric: costs are ratios."""
        from gpusched_env.games.child_launches.agents.training import geometric_mean

        return geometric_mean(costs)

    def remarks(self, ranking: Ranking) -> dict[str, list[str]]:
        return {NAME: [speedup_text(ranking.costs(NAME, DEVICE))]}

    def tuned(self, scenario: Any, schedulers: Sequence[str] | None, first_seed: int, seeds: int) -> TunedField:
        """On the first random applications that are no larger than those that agents are trained on."""
        from gpusched_env.games.child_launches.agents.training import applications

        found = applications(itertools.count(first_seed), seeds, LaunchTraining())
        return self.tuned_on(RANDOM, schedulers, [int(problem.name.rpartition("-")[2]) for problem, _ in found])

    def baselines(self, config: Any) -> list[str]:
        return honest_launch_names(hardware=False)

    def validation(self, config: LaunchTraining) -> Validation:
        from gpusched_env.games.child_launches.agents.training import validation_applications

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
