"""CMA-ES on the fleet rule: a training, exact resumption, threads, shipping, and what is refused."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.agents.manifest import check_agent, ship
from gpusched_env.agents.training import Trained, train
from gpusched_env.agents.training.config import defaults_for
from gpusched_env.agents.training.environments import validation_seeds
from gpusched_env.agents.training.folder import Checkpoints, read_config
from gpusched_env.agents.training.progress import TrainingProgress
from gpusched_env.agents.training.trainer import game_training_of
from gpusched_env.errors import InputError
from gpusched_env.experiments.results.curves import gather
from gpusched_env.games.fleet.agents.rule import LearnedFleet
from gpusched_env.games.fleet.agents.trainer import FleetTraining
from gpusched_env.games.fleet.environment.problems import fleet_cost, fleet_problem
from gpusched_env.games.fleet.experiments.game import run_day
from tests.refusals import refused

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def small(**values: Any) -> FleetTraining:
    return game_training_of(
        FleetTraining,
        {
            "timesteps": 60_000,
            "episodes": 2,
            "population": 6,
            "validation_seeds": 3,
            "validate_every": 20_000,
            "checkpoint_every": 20_000,
            **values,
        },
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, Path]:
    out = tmp_path_factory.mktemp("fleet") / "whole"
    return train(small(), out), out


def test_it_keeps_what_is_best_in_validation(whole: tuple[Trained, Path]) -> None:
    trained, out = whole
    days = [fleet_problem("random", seed) for seed in validation_seeds(small())]
    found = statistics.fmean(fleet_cost(run_day(LearnedFleet(out), day)) for day in days)
    assert trained.best.cost == pytest.approx(found)
    assert trained.best.cost <= trained.curve[0].cost
    assert len(trained.curve) >= 3
    assert read_config(out / "config.yaml") == small()


def test_a_stopped_search_goes_on_exactly(whole: tuple[Trained, Path], tmp_path: Path) -> None:
    def stop(progress: TrainingProgress) -> bool:
        return progress.timesteps < 20_000

    assert train(small(), tmp_path / "cut", watch=stop).stopped
    cut = train(small(timesteps=60_001), tmp_path / "cut", resume=True)
    assert cut.curve[-1].costs == whole[0].curve[-1].costs
    means = [
        Checkpoints(out / "checkpoints").last()["learner"]["optimiser"]["_mean"] for out in (tmp_path / "cut", whole[1])
    ]
    assert means[0].tolist() == means[1].tolist()


def test_threads_make_no_difference(whole: tuple[Trained, Path], tmp_path: Path) -> None:
    assert train(small(threads=3), tmp_path / "run").curve == whole[0].curve


def test_its_curves_and_its_agent_go_where_others_do(whole: tuple[Trained, Path], tmp_path: Path) -> None:
    curves = gather([whole[1]])
    assert (curves.scenario, curves.training["policy"]) == ("Fleet", "fleet")
    ship([whole[1]], tmp_path)
    assert check_agent(tmp_path, "Fleet").validation.cost == whole[0].best.cost
    (tmp_path / "Fleet.npz").write_bytes(b"")
    with refused(InputError, "SHA-256"):
        check_agent(tmp_path, "Fleet")


def test_settings_are_checked() -> None:
    assert game_training_of(FleetTraining, defaults_for("Fleet")).settings["population"] >= 4
    for values, message in (
        ({"populaton": 3}, "did you mean 'population'"),
        ({"population": 1}, "population"),
        ({"algo": "ppo"}, "ppo"),
    ):
        with pytest.raises(InputError, match=message):
            game_training_of(FleetTraining, values)
