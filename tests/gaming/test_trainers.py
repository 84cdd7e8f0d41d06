"""What a training may see, and what a scheduler may say of itself."""

from __future__ import annotations

import numpy as np

from gpusched_env.agents.training.config import config_of
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scenarios.set_up import SetUp, set_up
from tests.refusals import refused


def test_no_episode_of_a_validation_or_a_comparison_is_trained_on() -> None:
    from gpusched_env.agents.training.environments import training_env, validation_seeds

    compared = set(range(1000))
    trained: set[int] = set()
    for seed in range(3):
        config = config_of({"scenario": load_scenario("Toy"), "seed": seed, "envs": 8, "validation_seeds": 20})
        env = training_env(config)
        env.reset()
        for _ in range(100):
            env.step(np.zeros(8, np.int64))
            trained |= {int(info["seed"]) for info in env.reset_infos}
        assert not trained & set(validation_seeds(config))
        env.close()
    assert len(trained) >= 3 * 8 * 4, "several episodes in each environment"
    assert not trained & compared


def test_a_scheduler_cannot_give_its_host_time() -> None:
    problem = build_problem(load_scenario("Toy", decision_us=5.0))
    assert set_up(problem, SetUp(interception_us=2.0)).scenario.decision_us == 7.0
    with refused(InputError, "interception_us is -5.0", "least 0"):
        SetUp(interception_us=-5.0)
