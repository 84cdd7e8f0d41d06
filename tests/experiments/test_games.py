"""The game of a problem; and a made-up third game, which needs nothing but a line in the registry."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from gpusched_env.baselines.ranges import Range
from gpusched_env.baselines.registered import Registered
from gpusched_env.errors import InputError
from gpusched_env.experiments.baseline_costs import BaselineCosts
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.games.game import (
    GameValidation,
    RankedField,
    RankingTerms,
    SchedulerGroup,
    TunedField,
    common_game,
    game_of,
    games,
)
from gpusched_env.experiments.games.kernels import Kernels
from gpusched_env.experiments.lib.workers import Progress
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.experiments.ranking.made import Fingerprints
from gpusched_env.experiments.ranking.run import rank
from gpusched_env.experiments.reference import schedulers as page
from gpusched_env.games.child_launches.experiments.game import ChildLaunches
from gpusched_env.scenarios.games import GAMES, Rooms
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused

FLEET = "Fleet"


class Constant:
    """Always costs the same."""

    def __init__(self, cost: float = 3.0) -> None:
        """``cost``: of an episode without a seed."""
        self.cost = cost


class Oracle(Constant):
    """Knows it all."""

    clairvoyant = True


SCHEDULERS = Registered[Constant]("scheduler of fleets", {"constant": Constant, "oracle": Oracle})


def cost(cell: RankedEpisode) -> EpisodeCost:
    return EpisodeCost(cell, SCHEDULERS.make(cell.scheduler).cost + cell.seed)


@dataclass(frozen=True)
class FleetGrid:
    """Two problems."""

    variants = {FLEET: ["small", "large"]}  # noqa: RUF012
    task = staticmethod(cost)

    def groups(self, schedulers: Sequence[str], seeds: Sequence[int]) -> list[list[RankedEpisode]]:
        problems = [(variant, seed) for seed in seeds for variant in self.variants[FLEET]]
        return [
            [RankedEpisode(FLEET, variant, who, "compiled", seed) for who in schedulers] for variant, seed in problems
        ]


class Fleet:
    """As much of a game as rankings, searches, baselines and lists ask for."""

    kind = "fleets"
    plain_gpu = "constant"
    algorithm = "cma-es"
    unseen = "own"
    schedulers = SCHEDULERS
    groups = [SchedulerGroup("Fleets", "For `Fleet`.", SCHEDULERS.names())]  # noqa: RUF012

    def means(self, scheduler: str) -> None:
        return None

    def sees_truth(self, scheduler: str) -> bool:
        return SCHEDULERS.is_clairvoyant(scheduler.partition("(")[0])

    def mean(self, costs: Sequence[float]) -> float:
        return statistics.median(costs)

    def ranked(self, terms: RankingTerms) -> RankedField:
        names = list(terms.schedulers or SCHEDULERS.names())
        return RankedField(schedulers=names, grid=FleetGrid(), made=Fingerprints())

    def remarks(self, ranking: Any) -> dict[str, list[str]]:
        return {FLEET: [f"{len(ranking.episodes)} episodes."]}

    def tuned(self, scenario: Any, schedulers: Sequence[str] | None, first_seed: int, seeds: int) -> TunedField:
        names = schedulers or ["constant"]
        return TunedField(
            grid=FleetGrid(),
            seeds=list(range(seeds)),
            ranges={name: {"cost": Range(1.0, 8.0)} for name in names},
            defaults={name: SCHEDULERS.options(name) for name in names},
            check=SCHEDULERS.make,
            made=Fingerprints(),
        )

    def baselines(self, config: Any) -> list[str]:
        return ["constant"]

    def validation(self, config: Any) -> GameValidation:
        def costs(names: list[str], on_progress: Progress, workers: int | None) -> dict[str, list[float]]:
            on_progress(1, 1.0)
            return {name: [1.0, 2.0, 9.0] for name in names}

        return GameValidation(
            seeds=[0, 1, 2], problems=["small"], episodes=3, costs=costs, made=lambda names: Fingerprints()
        )


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line in the registry."""
    room = ModuleType("made_up_fleet")
    room.GAME = Fleet()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, room.__name__, room)
    room.ROOM = Rooms(env="", trainer="", game="made_up_fleet:GAME")  # type: ignore[attr-defined]
    monkeypatch.setitem(GAMES, FLEET, "made_up_fleet:ROOM")


def test_the_game_of_a_problem() -> None:
    assert isinstance(game_of("DynamicParallelism"), ChildLaunches)
    for problem in ("Toy", "mine.yaml", load_scenario("Toy"), None):
        assert isinstance(game_of(problem), Kernels)
    assert list(games()) == ["", "DynamicParallelism", "TaskQueue", "Fleet", "ClusterPlacement", "Drawn"]
    assert common_game(["Toy", "PriorityFill"]) is game_of("Toy")
    with refused(InputError, "DynamicParallelism", "Toy"):
        common_game(["Toy", "DynamicParallelism"])


def test_a_third_game_is_ranked(fleet: None, tmp_path: Path) -> None:
    found = rank(FLEET, ["constant", "constant(cost=1)", "oracle"], 2, tmp_path / "ranking.json", workers=1)
    assert found.costs(FLEET, "compiled")["constant(cost=1)"].tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert found.clairvoyant == ["oracle"]
    assert found.remarks == {FLEET: ["12 episodes."]}
    with refused(InputError, "itself"):
        rank([FLEET, "Toy"], ["constant"], 1)


def test_a_third_game_is_tuned(fleet: None) -> None:
    from gpusched_env.experiments.tuning.search import tune

    found = tune(FLEET, ["constant"], 3, 2, workers=1)
    assert (found.scenario, found.variants, found.seeds) == (FLEET, ["small", "large"], [0, 1])
    first, *others = found.trials["constant"]
    assert first.cost == 3.5, "the game's own mean"
    assert [trial.cost for trial in others] == [cast(float, trial.drawn["cost"]) + 0.5 for trial in others]
    with refused(InputError, "truth"):
        tune(FLEET, ["oracle"], 2, workers=1)


def test_a_third_game_has_baselines(fleet: None, tmp_path: Path) -> None:
    config: Any = SimpleNamespace(scenario=FLEET)
    assert BaselineCosts(config, "all", tmp_path).rest() == {"constant": 2.0}
    with refused(InputError, "oracle"):
        BaselineCosts(config, "constant,oracle", tmp_path)


def test_a_third_game_is_listed(fleet: None) -> None:
    listed = CliRunner().invoke(app, ["list", "schedulers"]).output.partition("Of fleets (Fleet):\n")[2]
    said = "constant  Always costs the same. (cost=3.0)\noracle*   Knows it all. (cost=3.0)\n"
    assert listed.partition("Of clusters")[0] == said
    assert [group.title for group, _ in page.entries()][-2:] == ["Fleets", "Clusters"]
    with refused(InputError, "scenario"):
        load_scenario(FLEET)
