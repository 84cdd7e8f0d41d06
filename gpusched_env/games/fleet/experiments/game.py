"""A fleet of GPUs: the game of dispatchers."""

from __future__ import annotations

import statistics
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
from gpusched_env.games.fleet.agents.config import FleetTraining
from gpusched_env.games.fleet.agents.learned import NAME, LearnedFleet
from gpusched_env.games.fleet.baselines.registry import DISPATCHERS, make_dispatcher
from gpusched_env.games.fleet.environment.problems import DAYS, RANDOM, fleet_cost, fleet_problem
from gpusched_env.games.fleet.experiments.dispatchers import default_dispatchers, new_dispatcher, run_day
from gpusched_env.games.fleet.experiments.grid import DEVICE, FleetGrid

if TYPE_CHECKING:
    from gpusched_env.experiments.fuzz.fuzzing import Fuzzing
    from gpusched_env.experiments.ranking.result import Ranking

PLAY: Final = (
    "gpusched_env.games.fleet.device",
    "gpusched_env.games.fleet.agents.playing",
    "gpusched_env.games.fleet.environment.problems",
)
"""Modules that play an episode."""


class Fleets:
    """See :class:`gpusched_env.experiments.games.game.Game`."""

    kind = "fleets"
    plain_gpu = "no-colocation"
    algorithm = "cma-es"
    unseen: Workloads = "own"
    """Options are searched on random days, not on the named ones."""
    schedulers = DISPATCHERS

    @property
    def groups(self) -> list[SchedulerGroup]:
        about = f"For `{NAME}`: which of [a fleet's GPUs](fleet.md) a job goes to, and what runs on each."
        return [SchedulerGroup("Fleets", about, DISPATCHERS.names())]

    def means(self, scheduler: str) -> None:
        return None

    def sees_truth(self, scheduler: str) -> bool:
        return bool(getattr(new_dispatcher(scheduler), "clairvoyant", False))

    def mean(self, costs: Sequence[float]) -> float:
        return statistics.fmean(costs)

    def ranked(self, terms: RankingTerms) -> RankedField:
        """On the named days, each with its own jobs of every seed."""
        asked = (terms.workloads, terms.gpu, tuple(terms.settings), tuple(terms.devices))
        if len(terms.scenarios) > 1 or asked != ("own", None, (), (DEVICE,)):
            raise InputError(f"{NAME} is ranked by itself, as it is, on the {DEVICE} device")
        asked_for = ["default"] if terms.schedulers is None else terms.schedulers
        names = with_groups(asked_for, default_dispatchers, lambda: tuned_names(NAME))
        made = {name: new_dispatcher(name) for name in names}
        weights = {name: file_hash(found.file) for name, found in made.items() if isinstance(found, LearnedFleet)}
        origins = {name: origin_of(name, found, DISPATCHERS, NAME) for name, found in made.items()}
        return RankedField(
            schedulers=names,
            grid=FleetGrid(tuple(DAYS)),
            made=made_by({DEVICE: PLAY}, {NAME: origins}, weights={NAME: weights}),
        )

    def remarks(self, ranking: Ranking) -> dict[str, list[str]]:
        return {
            NAME: [
                "Cost: GPUs in use, and one more for each inference job that is late and each job that waits, over the "
                "jobs at a time."
            ]
        }

    def tuned(self, scenario: Any, schedulers: Sequence[str] | None, first_seed: int, seeds: int) -> TunedField:
        """On random days, as agents are trained on, of other seeds."""
        names = DISPATCHERS.names() if schedulers is None else schedulers
        return TunedField(
            grid=FleetGrid((RANDOM,)),
            seeds=list(range(first_seed, first_seed + seeds)),
            ranges={name: ranges_of(make_dispatcher(name)) for name in names},
            defaults={name: DISPATCHERS.options(name) for name in names},
            check=make_dispatcher,
            made=made_by(
                {DEVICE: PLAY},
                {NAME: {name: origin_of(name, make_dispatcher(name), DISPATCHERS, NAME) for name in names}},
            ),
        )

    def configured(self, scenario: str, given: dict[str, Any], gpu: str | None) -> FleetTraining:
        if gpu is not None:
            raise InputError(f"--gpu: {NAME} is trained for the GPUs of its days")
        # Random days are drawn in any case.
        own = {name: value for name, value in given.items() if name != "variants"}
        return game_training_of(FleetTraining, {**defaults_for(NAME), **own})

    def baselines(self, config: Any) -> list[str]:
        return DISPATCHERS.names()

    def validation(self, config: FleetTraining) -> Validation:
        from gpusched_env.games.fleet.training import validation_days

        seeds = validation_days(config)
        return Validation(
            seeds=seeds,
            problems=[RANDOM],
            episodes=len(seeds),
            costs=lambda names, on_progress: _costs(seeds, names, on_progress),
        )

    @property
    def fuzzing(self) -> Fuzzing:
        from gpusched_env.games.fleet.experiments.fuzz.fuzzing import FLEETS

        return FLEETS


GAME: Final[Game] = Fleets()


def _costs(seeds: Sequence[int], dispatchers: list[str], on_progress: Progress) -> dict[str, list[float]]:
    """Dispatcher by dispatcher."""
    costs: dict[str, list[float]] = {name: [] for name in dispatchers}
    total, done = len(dispatchers) * len(seeds), 0
    for name in dispatchers:
        for seed in seeds:
            costs[name].append(fleet_cost(run_day(make_dispatcher(name), fleet_problem(RANDOM, seed))))
            done += 1
            on_progress(done, done / total)
    return costs
