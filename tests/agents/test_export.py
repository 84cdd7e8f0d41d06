"""An exported policy takes the actions of the torch policy that it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.policies.sizes import MlpSizes, SlotSizes
from gpusched_env.envs.observations import Observation
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

    from gpusched_env.agents.sb3_vec_env import Sb3VecEnv

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

CLOSE = 1e-5
"""Difference of two numbers from which on the greater one must win in both; torch adds up in another order."""


def torch_numbers(model: BaseAlgorithm, observations: Observation) -> Any:
    import torch

    policy: Any = model.policy
    tables, _ = policy.obs_to_tensor(observations)
    with torch.no_grad():
        if hasattr(policy, "q_net"):
            return policy.q_net(tables).numpy()
        return policy.action_net(policy.mlp_extractor.forward_actor(policy.extract_features(tables))).numpy()


def compare_actions(model: BaseAlgorithm, policy: ExportedPolicy, env: Sb3VecEnv, states: int) -> tuple[int, int]:
    """Hold both to each other on recorded states; returns how many there were, and how many were close calls.

    Every second action is the policy's, the others are random, so that states of both kinds of play occur.
    """
    rng = np.random.default_rng(0)
    observations: Any = env.reset()
    seen = close = 0
    while seen < states:
        masks = env.env.action_masks()
        masked = {"action_masks": masks} if policy.info.masked else {}
        chosen, _ = model.predict(observations, deterministic=True, **masked)
        every = np.arange(len(masks))
        expected = np.where(masks[every, chosen], chosen, 0)
        got = policy.act(observations, masks)
        numbers = torch_numbers(model, observations)
        np.testing.assert_allclose(policy.numbers(observations), numbers, atol=CLOSE, rtol=1e-5)
        differ = np.flatnonzero(got != expected)
        for e in differ:
            among = numbers[e][masks[e]] if policy.info.masked else numbers[e]
            best, second = np.sort(among)[[-1, -2]]
            assert best - second < CLOSE, f"state {seen + e}: action {got[e]}, torch takes {expected[e]}"
        close += len(differ)
        seen += len(masks)
        random = (rng.random(masks.shape) * masks).argmax(axis=1)
        observations, *_ = env.step(np.where(rng.random(len(masks)) < 0.5, random, got))
    return seen, close


@pytest.mark.parametrize(
    ("algo", "name"),
    [
        ("maskable-ppo", "slots"),
        ("maskable-ppo", "mlp"),
        ("ppo", "slots"),
        ("a2c", "mlp"),
        ("dqn", "slots"),
        ("dqn", "mlp"),
    ],
)
@pytest.mark.parametrize("scenario", ["InferenceBesideTraining", "MultiTenantBurst"])
def test_the_same_actions_as_torch(algo: str, name: str, scenario: str, tmp_path: Path) -> None:
    import torch

    from gpusched_env.agents.model_file import export_policy
    from tests.agents.learners import environment, learner

    torch.set_num_threads(1)
    env = environment(64, scenario=scenario)
    model = learner(algo, name, env, n_steps=8) if algo != "dqn" else learner(algo, name, env)
    model.learn(512)
    export_policy(model, tmp_path / "policy.npz")
    policy = ExportedPolicy.load(tmp_path / "policy.npz")
    seen, close = compare_actions(model, policy, env, 2000)
    assert close <= seen // 1000


@pytest.mark.parametrize(("algo", "name"), [("maskable-ppo", "slots"), ("dqn", "slots"), ("maskable-ppo", "mlp")])
def test_preemptions_partitions_and_empty_slots(algo: str, name: str, tmp_path: Path) -> None:
    from gpusched_env.agents.model_file import export_policy
    from tests.agents.learners import EVERYTHING, environment, learner

    env = environment(64, scenario="ThreeTenants", slots=5, **EVERYTHING)
    model = learner(algo, name, env)
    export_policy(model, tmp_path / "policy.npz")
    compare_actions(model, ExportedPolicy.load(tmp_path / "policy.npz"), env, 6400)


@pytest.mark.parametrize("name", ["slots", "mlp"])
def test_synchronisations(name: str, tmp_path: Path) -> None:
    from gpusched_env.agents.model_file import export_policy
    from tests.agents.learners import environment, learner

    env = environment(32, scenario="DependentKernels")
    model = learner("maskable-ppo", name, env)
    export_policy(model, tmp_path / "policy.npz")
    compare_actions(model, ExportedPolicy.load(tmp_path / "policy.npz"), env, 3200)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["slots", "mlp"])
@pytest.mark.parametrize("scenario", ["InferenceBesideTraining", "MultiTenantBurst"])
def test_the_same_actions_on_a_hundred_thousand_states(name: str, scenario: str, tmp_path: Path) -> None:
    import torch

    from gpusched_env.agents.model_file import export_policy
    from tests.agents.learners import environment, learner

    torch.set_num_threads(1)
    env = environment(64, scenario=scenario)
    model = learner("maskable-ppo", name, env, n_steps=64, batch_size=512, learning_rate=1e-3)
    model.learn(30_000)
    export_policy(model, tmp_path / "policy.npz")
    seen, close = compare_actions(model, ExportedPolicy.load(tmp_path / "policy.npz"), env, 100_000)
    assert seen >= 100_000
    assert close <= 2


def test_what_is_noted_in_the_file(tmp_path: Path) -> None:
    from gpusched_env.agents.model_file import export_policy
    from tests.agents.learners import environment, learner

    env = environment(2, scenario="Toy", wait_us=30.0)
    model = learner("maskable-ppo", "slots", env)
    model.learn(64)
    export_policy(model, tmp_path / "policy.npz", command="gpusched train Toy")
    info = ExportedPolicy.load(tmp_path / "policy.npz").info
    assert (info.scenario, info.algorithm, info.seed, info.timesteps) == ("Toy", "maskable-ppo", 0, 64)
    assert (info.wait_us, info.masked, info.command) == (30.0, True, "gpusched train Toy")
    assert info.network == SlotSizes(priorities=1)
    assert info.actions == env.env.layout
    assert info.versions.keys() >= {"python", "torch", "stable-baselines3"}
    assert info.summary() == "maskable-ppo with policy slots, 64 decisions of Toy"
    before = (tmp_path / "policy.npz").read_bytes()
    export_policy(model, tmp_path / "policy.npz", command="gpusched train Toy")
    assert (tmp_path / "policy.npz").read_bytes() == before, "the same model makes the same file"
    export_policy(learner("dqn", "mlp", env), tmp_path / "q.npz")
    network = ExportedPolicy.load(tmp_path / "q.npz").info.network
    assert network == MlpSizes(inputs=("device", "pending", "running", "tenants"), widths=(64, 64), activation="relu")


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecNormalize

    from gpusched_env.agents.model_file import export_policy
    from tests.agents.learners import environment, learner

    path = tmp_path / "policy.npz"
    env = environment(2, scenario="Toy")
    with refused(InputError, "recurrent-ppo"):
        export_policy(learner("recurrent-ppo", "mlp", env), path)
    model = learner("ppo", "mlp", env)
    with refused(InputError, "3 actions", "InferenceBesideTraining 13"):
        export_policy(model, path, scenario=load_scenario("InferenceBesideTraining"))
    model.env = None
    with refused(InputError, "trained"):
        export_policy(model, path)
    with refused(InputError, "VecNormalize", "scales"):
        export_policy(PPO("MultiInputPolicy", VecNormalize(env, norm_obs_keys=["device"]), device="cpu"), path)
    elu = {"activation_fn": torch.nn.ELU}
    with refused(InputError, "ELU", "exported"):
        export_policy(PPO("MultiInputPolicy", env, policy_kwargs=elu, device="cpu"), path)
    with refused(InputError, "written"):
        export_policy(learner("ppo", "mlp", env), tmp_path / "no" / "policy.npz")
    assert list(tmp_path.iterdir()) == []
