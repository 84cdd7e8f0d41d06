"""A network that learns what a search says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.learned import LearnedScheduler
from gpusched_env.agents.policies.serve import ALONE, BESIDE
from gpusched_env.agents.rollout import evaluate_costs
from gpusched_env.agents.training import train
from gpusched_env.agents.training.config import TrainingConfig, config_of
from gpusched_env.devices import make_device
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.features import TenantFeature
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused

if TYPE_CHECKING:
    from gpusched_env.agents.training.progress import TrainingProgress

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SHORT = load_scenario("ServingPoisson", load=2.0, horizon_us=6000.0)


def distilling(**values: Any) -> TrainingConfig:
    return config_of(
        {
            "scenario": SHORT,
            "algo": "distillation",
            "interval_us": 250.0,
            "timesteps": 1500,
            "envs": 8,
            "n_steps": 24,
            "batch_size": 64,
            "validation_seeds": 1,
            "validate_every": 600,
            "checkpoint_every": 300,
            **values,
        }
    )


def test_what_actions_save_is_what_the_columns_of_futures_say_less_the_margin() -> None:
    from gpusched_env.agents.training.distillation import LEAST, savings

    layout = ActionLayout.of(SHORT, 6, 12, 250.0)
    tenants = np.zeros((1, 6, len(TenantFeature)), np.float32)
    # x / (1 + |x|) of 0.5 jobs saved, of 4 lost, and of no way to be in time.
    tenants[0, 1, TenantFeature.AHEAD] = -1 / 3
    tenants[0, 2, TenantFeature.AHEAD_ALONE] = 0.8
    tenants[0, 3, TenantFeature.AHEAD] = 1.0
    found = savings({"tenants": tenants}, layout, 0.1)[0]
    first, serves = layout.first("serve"), layout.choices("serve")
    of_tenants = found[first : first + 6 * serves].reshape(6, serves)
    assert found[0] == 0.0
    assert of_tenants[1, BESIDE] == pytest.approx(0.5 - 0.1)
    assert of_tenants[1, ALONE] == pytest.approx(-0.2), "twice the margin"
    assert of_tenants[2, ALONE] == of_tenants[3, BESIDE] == LEAST
    assert (found[layout.first("reject") :] == LEAST).all()


def test_a_training_learns_to_decide_without_futures_and_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    from sb3_contrib import MaskablePPO

    from gpusched_env.agents.model_file import read_model
    from tests.agents.training.test_resume import assert_same, weights

    whole = train(distilling(), tmp_path / "whole")
    assert len(whole.curve) >= 3

    class Cut(Exception):
        """Stands for a kill."""

    def cut(progress: TrainingProgress) -> None:
        if progress.timesteps > 1000:
            raise Cut

    with pytest.raises(Cut):
        train(distilling(), tmp_path / "cut", watch=cut)
    assert train(distilling(), tmp_path / "cut", resume=True).curve == whole.curve
    assert_same(weights(tmp_path / "cut" / "final.zip"), weights(tmp_path / "whole" / "final.zip"))

    policy = ExportedPolicy.load(tmp_path / "whole" / "best.npz")
    assert not policy.info.actions.futures
    (cost,) = evaluate_costs(policy, SHORT, [3]).costs.tolist()
    episode = run_episode(LearnedScheduler(policy), build_problem(SHORT), make_device("compiled"), 3, record="jobs")
    assert episode.metrics.cost == pytest.approx(cost)
    model = read_model(tmp_path / "whole" / "best.zip")
    assert (model.algorithm, model.futures) == ("maskable-ppo", False)
    env = GpuSchedulingEnv(SHORT, commands=SHORT.commands)
    opened = MaskablePPO.load(tmp_path / "whole" / "best.zip", env=env)
    observation, _ = env.reset(seed=3)
    batch = {name: table[None] for name, table in observation.items()}
    (ours,) = policy.act(batch, env.action_masks()[None])
    action, _ = opened.predict(observation, deterministic=True, action_masks=env.action_masks())
    assert action == ours


def test_the_network_is_not_told_what_it_has_to_learn() -> None:
    from gpusched_env.agents.training.distillation import FUTURES, without_futures

    told = GpuSchedulingEnv(SHORT, futures=True)
    observation, _ = told.reset(seed=5)
    plain = GpuSchedulingEnv(SHORT)
    expected, _ = plain.reset(seed=5)
    seen_any, over = False, False
    while not over:
        for name, table in without_futures(observation).items():
            np.testing.assert_array_equal(table, expected[name], err_msg=name)
        seen_any |= bool(observation["tenants"][:, FUTURES].any())
        observation, _, over, cut, _ = told.step(0)
        expected, *_ = plain.step(0)
        over |= cut
    assert seen_any


def test_it_is_for_decisions_that_stand_for_an_interval(tmp_path: Path) -> None:
    assert distilling(interval_us=0.0).interval_us == SHORT.interval_us
    with refused(InputError, "interval_us"):
        train(distilling(interval_us=0.0, scenario=load_scenario("Toy")), tmp_path / "none")


def test_only_a_rule_that_goes_by_futures_is_told_of_them_unasked() -> None:
    asked = {"algo": "maskable-ppo", "futures": True}
    for settings, told in [({"algo": "rollouts"}, True), ({"algo": "maskable-ppo"}, False), (asked, True)]:
        assert config_of({"scenario": SHORT, "interval_us": 250.0, **settings}).futures == told
