"""Configurations of trainings: what is filled in, what is refused, and that the file gives the same back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpusched_env.agents.training.config import Imitation, config_of
from gpusched_env.agents.training.folder import policy_file, read_config, write_config
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario, override
from tests.refusals import refused

TOY = load_scenario("Toy")


def test_settings_of_the_algorithm_stand_beside_the_others() -> None:
    config = config_of(
        {
            **{"scenario": TOY, "algo": "dqn", "learning_rate": 0.5, "envs": 3},
            **{"imitation": {"scheduler": "sjf"}, "imitation.epochs": 2, "policy_kwargs.net_arch": [8]},
        }
    )
    assert config.settings["learning_rate"] == 0.5
    assert config.settings["buffer_size"] == 100_000
    assert config.imitation == Imitation(scheduler="sjf", epochs=2)
    assert config.policy_kwargs == {"net_arch": [8]}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"algo": "dqm"}, "did you mean 'dqn'"),
        ({"algo": "dqn", "clip_range": 0.1}, "training with dqn has no setting 'clip_range'"),
        ({"n_step": 5}, "did you mean 'n_steps'"),
        ({"gamma": 1.5}, "maskable-ppo: Expected `float` <= 1.0"),
        ({"envs": 0}, "training: Expected `int` >= 1"),
        ({"imitation.epochs": 2}, "name its scheduler first"),
    ],
)
def test_what_is_wrong_is_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        config_of({"scenario": TOY, **values})


def test_the_file_gives_the_configuration_back(tmp_path: Path) -> None:
    scenario = load_scenario("InferenceBesideTraining")
    config = config_of({"scenario": scenario, "seed": 7, "imitation": {"scheduler": "fikit"}})
    write_config(config, {"command": "gpusched train"}, tmp_path / "config.yaml")
    assert read_config(tmp_path / "config.yaml") == config
    (tmp_path / "config.yaml").write_text("training: 3")
    with refused(InputError, "configuration"):
        read_config(tmp_path / "config.yaml")


def test_rewards_are_scaled_by_the_cost_of_the_jobs_alone() -> None:
    # 20 requests of weight 1 and 5 steps of weight 4, each of slowdown 1 alone: 40.
    from gpusched_env.agents.training.environments import reward_scale

    assert reward_scale(build_problem(load_scenario("InferenceBesideTraining"))) == pytest.approx(10 / 40)
    missed = load_scenario("Toy", reward={"slo_miss": 2.0})
    assert reward_scale(build_problem(missed)) == pytest.approx(10 / (2.0 * (1.0 + 3.0)))


def test_environments_have_the_training_variants() -> None:
    from gpusched_env.agents.training.environments import training_changes, training_env, validation_env

    scenario = load_scenario("InferenceBesideTraining")
    config = config_of({"scenario": scenario, "envs": 30, "validation_seeds": 2})
    assert len(training_changes(config)) == 4
    assert validation_env(config).num_envs == 8
    assert training_changes(config_of({"scenario": scenario, "variants": False})) == [{}]
    env = training_env(config)
    env.reset()
    drawn = {env.env.episode(e).problem.programs[0].tenant.workload for e in range(30)}
    models = ("resnet50_infer_b1", "mobilenetv3_infer_b1", "resnet101_fp32_infer_b1", "vgg16_fp32_infer_b1")
    assert drawn == set(models)


def test_other_scenarios_bring_their_variants() -> None:
    """One policy for both, with a row for each tenant of the one that has most."""
    from gpusched_env.agents.training.environments import training_changes, training_scenarios, validation_env

    poisson, burst = load_scenario("ServingPoisson"), load_scenario("ServingBurst")
    assert poisson.workload_sets is not None
    assert burst.workload_sets is not None
    config = config_of({"scenario": poisson, "also": ["ServingBurst"], "slots": 12, "validation_seeds": 2})
    own, others = len(poisson.workload_sets.train), len(burst.workload_sets.train)
    changes = training_changes(config)
    assert len(changes) == own + others
    variants = [override(poisson, **change) for change in changes]
    assert [len(variant.tenants) for variant in variants] == [6] * own + [8] * others
    drawn = [(variant.tenants, variant.horizon_us, variant.reward) for variant in variants]
    assert drawn == [(each.tenants, each.horizon_us, each.reward) for each in training_scenarios(config)]
    assert validation_env(config).num_envs == 2 * (own + others)
    assert len(training_changes(config_of({"scenario": poisson, "also": ["ServingBurst"], "variants": False}))) == 2


def test_the_policy_of_a_folder_is_its_best(tmp_path: Path) -> None:
    with refused(InputError, "no such file"):
        policy_file(tmp_path / "none")
    with refused(InputError, "best.npz", "best.zip"):
        policy_file(tmp_path)
    (tmp_path / "best.zip").touch()
    assert policy_file(tmp_path) == tmp_path / "best.zip"
    (tmp_path / "best.npz").touch()
    assert policy_file(tmp_path) == tmp_path / "best.npz"
    assert policy_file(tmp_path / "best.zip") == tmp_path / "best.zip"
