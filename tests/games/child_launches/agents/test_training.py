"""CMA-ES on the launch rule: a training, exact resumption, threads, shipping, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpusched_env.agents.manifest import check_agent, ship
from gpusched_env.agents.training import Trained, train
from gpusched_env.agents.training.config import defaults_for
from gpusched_env.agents.training.folder import Checkpoints, read_config
from gpusched_env.agents.training.trainer import game_training_of
from gpusched_env.errors import InputError
from gpusched_env.experiments.results.curves import gather
from gpusched_env.games.child_launches.agents.rule import LaunchPolicyInfo, LearnedLaunches
from gpusched_env.games.child_launches.agents.trainer import LaunchTraining
from gpusched_env.games.child_launches.baselines.registry import make_launch_scheduler
from gpusched_env.games.child_launches.devices.compiled.device import CompiledWarpDevice
from gpusched_env.games.child_launches.problem import Transformations
from gpusched_env.games.child_launches.scheduler import run_application
from gpusched_env.games.child_launches.training import geometric_mean, validation_applications
from tests.refusals import refused

if TYPE_CHECKING:
    from gpusched_env.agents.training.progress import TrainingProgress

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def small(**values: Any) -> LaunchTraining:
    return game_training_of(
        LaunchTraining,
        {
            "timesteps": 60_000,
            "applications": 5,
            "episodes": 2,
            "population": 6,
            "requests": 1500,
            "validation_seeds": 3,
            "validate_every": 20_000,
            "checkpoint_every": 20_000,
            **values,
        },
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, Path]:
    out = tmp_path_factory.mktemp("launches") / "whole"
    return train(small(), out), out


def test_it_begins_with_spawn_and_keeps_what_is_best_in_validation(whole: tuple[Trained, Path]) -> None:

    trained, out = whole
    applications = validation_applications(small())

    def cost(scheduler: Any) -> float:
        return geometric_mean(
            [run_application(scheduler, p, CompiledWarpDevice()).time_ps / flat for p, flat in applications]
        )

    assert trained.curve[0].cost == pytest.approx(cost(make_launch_scheduler("spawn(capacity=1000000)")))
    assert trained.best.cost == pytest.approx(cost(LearnedLaunches(out)))
    assert trained.best.cost == geometric_mean(trained.best.costs)
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
    assert curves.scenario == "DynamicParallelism"
    assert curves.training["policy"] == "launch"
    ship([whole[1]], tmp_path)
    assert check_agent(tmp_path, "DynamicParallelism").validation.cost == whole[0].best.cost
    (tmp_path / "DynamicParallelism.npz").write_bytes(b"")
    with refused(InputError, "SHA-256"):
        check_agent(tmp_path, "DynamicParallelism")


def test_validation_applications_are_small_enough_and_others_than_those_of_training() -> None:

    for problem, flat_ps in validation_applications(small()):
        assert problem.asking <= 1500
        assert flat_ps > 0
        assert int(problem.name.rpartition("-")[2]) >= 1_000_000_000


def test_applications_are_compiled_in_training_and_baselines_have_them_as_they_are_written(tmp_path: Path) -> None:

    program = {"coarsening": 8, "aggregated": True}
    config = small(program=program, timesteps=1)
    found = train(config, tmp_path / "run")
    info, _ = LaunchPolicyInfo.read(tmp_path / "run" / "best.npz")
    assert info.program == Transformations(coarsening=8, aggregated=True)
    written = validation_applications(config)
    assert not any(problem.aggregated for problem, _ in written)
    spawn = make_launch_scheduler("spawn(capacity=1000000)")
    costs = [run_application(spawn, p, CompiledWarpDevice()).time_ps / flat for p, flat in written]
    compiled = [(info.program.applied(p), flat) for p, flat in written]
    expected = [run_application(spawn, p, CompiledWarpDevice()).time_ps / flat for p, flat in compiled]
    assert found.curve[0].costs == pytest.approx(expected)
    assert found.curve[0].costs != pytest.approx(costs)


def test_settings_are_checked() -> None:
    assert game_training_of(LaunchTraining, defaults_for("DynamicParallelism")).settings["population"] >= 4
    for values, message in (
        ({"populaton": 3}, "did you mean 'population'"),
        ({"population": 1}, "population"),
        ({"algo": "ppo"}, "ppo"),
        ({"applications": 3, "episodes": 4}, "4 episodes of 3 applications"),
    ):
        with pytest.raises(InputError, match=message):
            game_training_of(LaunchTraining, values)
