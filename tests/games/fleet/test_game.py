"""A fleet as a game: rankings, searches for options, and the costs of baselines."""

from __future__ import annotations

from pathlib import Path

from gpusched_env.agents.training.trainer import game_training_of
from gpusched_env.errors import InputError
from gpusched_env.experiments.baseline_costs import BaselineCosts
from gpusched_env.experiments.games.game import game_of
from gpusched_env.experiments.ranking.run import rank
from gpusched_env.games.fleet.agents.trainer import FleetTraining
from gpusched_env.games.fleet.baselines.registry import DISPATCHERS, make_dispatcher
from gpusched_env.games.fleet.device import run_fleet
from gpusched_env.games.fleet.environment.problems import fleet_cost, fleet_problem
from gpusched_env.games.fleet.experiments.game import Fleets
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused


def test_dispatchers_are_ranked_on_the_same_days(tmp_path: Path) -> None:
    found = rank("Fleet", ["no-colocation", "gpucolo", "predicted-fit"], 2, tmp_path / "ranking.json", workers=1)
    costs = found.costs("Fleet", "compiled")
    assert costs["gpucolo"].shape == (4, 2)
    run = run_fleet(make_dispatcher("gpucolo"), fleet_problem("burst", 1))
    assert costs["gpucolo"][2, 1] == fleet_cost(run)
    assert (costs["no-colocation"] > costs["gpucolo"]).all()
    assert (costs["gpucolo"] > costs["predicted-fit"]).all()
    assert "one more for each inference job that is late" in found.remarks["Fleet"][0]


def test_options_are_searched_on_other_days() -> None:
    from gpusched_env.experiments.tuning.search import tune

    found = tune("Fleet", ["gpucolo", "no-colocation"], 4, 2, workers=1)
    assert (found.scenario, found.variants) == ("Fleet", ["random"])
    assert min(found.seeds) > 1_000_000
    assert len(found.trials["gpucolo"]) == 4
    assert len(found.trials["no-colocation"]) == 1
    best = min(trial.cost for trial in found.trials["gpucolo"])
    assert best < found.trials["gpucolo"][0].cost


def test_baselines_of_a_training(tmp_path: Path) -> None:
    config = game_training_of(FleetTraining, {"validation_seeds": 3})
    found = BaselineCosts(config, "gpucolo,no-colocation", tmp_path).rest()
    assert found["no-colocation"] > found["gpucolo"] > 0.0


def test_all_dispatchers_are_of_the_game() -> None:
    game = game_of("Fleet")
    assert isinstance(game, Fleets)
    assert game.groups[0].names == DISPATCHERS.names()
    assert not any(game.sees_truth(name) for name in DISPATCHERS.names())


def test_wrong_input_is_one_error() -> None:
    with refused(InputError, "scenario"):
        load_scenario("Fleet")
    with refused(InputError, "'gpucol'", "dispatcher"):
        rank("Fleet", ["gpucol"], 1)
    with refused(InputError, "ranked"):
        rank("Fleet", ["gpucolo"], 1, devices=["reference"])
    with refused(InputError, "tuned"):
        rank("Fleet", ["tuned:no-colocation(x=1)"], 1)
    with refused(InputError, "is 2.0", "be 0 to 1"):
        make_dispatcher("predicted-fit(empty=2)")
