"""Policies: the slot network's symmetry, its independence of the number of slots, and what algorithms do with it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpusched_env.agents.policies.registry import policy_names, policy_of
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.features import DeviceFeature, PendingFeature, RunningFeature
from gpusched_env.envs.observations import Observation
from gpusched_env.errors import InputError
from tests.agents.learners import ALGORITHMS, EVERYTHING, environment, learner, learner_class, played
from tests.refusals import refused

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def numbers_and_values(model: BaseAlgorithm, observations: Observation) -> tuple[NDArray[Any], NDArray[Any]]:
    import torch

    policy: Any = model.policy
    tables, _ = policy.obs_to_tensor(observations)
    with torch.no_grad():
        features = policy.extract_features(tables)
        return policy.mlp_extractor.actor(features).numpy(), policy.predict_values(tables).numpy()


def with_tenants(observations: Observation, order: Sequence[int], rows: int) -> Observation:
    """The same states with tenant ``order[s]`` in slot ``s`` of ``rows``."""
    before = observations["tenants"].shape[1]
    changed = {name: table.copy() for name, table in observations.items()}
    for name in ("pending", "tenants"):
        table = np.zeros((len(changed[name]), rows, changed[name].shape[2]), np.float32)
        table[:, : len(order)] = observations[name][:, list(order)]
        changed[name] = table
    owner = np.rint(observations["running"][..., RunningFeature.TENANT] * before).astype(int)
    slot_of = np.array([0, *(1 + np.argsort(order))])
    changed["running"][..., RunningFeature.TENANT] = (slot_of[owner] / rows).astype(np.float32)
    there = changed["pending"][..., PendingFeature.PRESENT] > 0.5
    owners = (np.arange(rows) + 1) / np.float32(rows)
    changed["pending"][..., PendingFeature.TENANT] = np.where(there, owners, 0.0)
    changed["device"][:, DeviceFeature.LAUNCHABLE] *= np.float32(before / rows)
    return changed


def by_slot(layout: ActionLayout, numbers: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Numbers of wait, launches ``(B, slots, priorities)``, preemptions and partitions ``(B, slots, sizes)``."""
    first = 1 + layout.slots * len(layout.stream_priorities)
    last = first + layout.running_slots * len(layout.modes)
    return (
        numbers[:, :1],
        numbers[:, 1:first].reshape(len(numbers), layout.slots, -1),
        numbers[:, first:last],
        numbers[:, last:].reshape(len(numbers), layout.slots, -1),
    )


@pytest.mark.parametrize("algo", ["maskable-ppo", "ppo"])
def test_tenants_that_change_places_change_places_in_the_output(algo: str) -> None:
    env = environment(8, scenario="ThreeTenants", **EVERYTHING)
    model = learner(algo, "slots", env)
    observations = played(env, 300)
    shown = np.unique(observations["running"][..., RunningFeature.TENANT])
    assert len(shown[shown > 0.0]) == 3, "kernels of all three tenants"
    order = (2, 0, 1)
    numbers, values = numbers_and_values(model, observations)
    moved_numbers, moved_values = numbers_and_values(model, with_tenants(observations, order, 3))
    wait, launch, preempt, partition = by_slot(env.env.layout, numbers)
    moved_wait, moved_launch, moved_preempt, moved_partition = by_slot(env.env.layout, moved_numbers)
    assert np.ptp(launch, axis=1).min() > 1e-6, "tenants differ"
    np.testing.assert_allclose(moved_launch, launch[:, order], atol=1e-6)
    np.testing.assert_allclose(moved_partition, partition[:, order], atol=1e-6)
    np.testing.assert_allclose(moved_wait, wait, atol=1e-6)
    np.testing.assert_allclose(moved_preempt, preempt, atol=1e-6)
    np.testing.assert_allclose(moved_values, values, atol=1e-5)


def test_the_weights_fit_any_number_of_slots() -> None:
    narrow = environment(8, scenario="ThreeTenants", **EVERYTHING)
    wide = environment(8, scenario="ThreeTenants", slots=8, **EVERYTHING)
    model, wider = (learner("maskable-ppo", "slots", env) for env in (narrow, wide))
    wider.policy.load_state_dict(model.policy.state_dict())
    observations = played(narrow, 300)
    padded = with_tenants(observations, (0, 1, 2), 8)
    numbers, values = numbers_and_values(model, observations)
    wider_numbers, wider_values = numbers_and_values(wider, padded)
    expected = by_slot(narrow.env.layout, numbers)
    got = by_slot(wide.env.layout, wider_numbers)
    np.testing.assert_allclose(got[0], expected[0], atol=1e-6)
    np.testing.assert_allclose(got[1][:, :3], expected[1], atol=1e-6)
    np.testing.assert_allclose(got[2], expected[2], atol=1e-6)
    np.testing.assert_allclose(got[3][:, :3], expected[3], atol=1e-6)
    np.testing.assert_allclose(wider_values, values, atol=1e-5)


@pytest.mark.parametrize(("algo", "policy"), [(algo, name) for algo in ALGORITHMS for name in policy_names(algo)])
def test_every_algorithm_learns_and_its_model_can_be_saved(algo: str, policy: str) -> None:
    import torch

    torch.set_num_threads(1)
    env = environment(2, scenario="Toy")
    model = learner(algo, policy, env)
    before = {name: weight.clone() for name, weight in model.policy.state_dict().items()}
    model.learn(64)
    after = model.policy.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in before)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded = learner_class(algo).load(file, device="cpu")
    for name, weight in loaded.policy.state_dict().items():
        assert torch.equal(weight, after[name]), name
    observations = env.reset()
    np.testing.assert_array_equal(
        loaded.predict(observations, deterministic=True)[0], model.predict(observations, deterministic=True)[0]
    )


def test_the_slot_policy_finds_the_best_schedule_of_toy() -> None:
    """With a learning rate that falls to 0, as Toy's own settings have it: else the policy comes and goes."""
    import torch
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.evaluation import evaluate_policy
    from stable_baselines3.common.utils import LinearSchedule

    torch.set_num_threads(1)
    model = learner(
        "maskable-ppo", "slots", environment(16, scenario="Toy"), n_steps=32, batch_size=128, n_epochs=10,
        learning_rate=LinearSchedule(3e-3, 0.0, 1.0),
    )  # fmt: skip
    model.learn(6144)
    assert isinstance(model, MaskablePPO)
    mean, _ = evaluate_policy(model, environment(2, scenario="Toy"), n_eval_episodes=2)
    assert mean == pytest.approx(-1.04)


def test_what_is_refused() -> None:
    layout = ActionLayout(2, 8, (0,))
    with refused(InputError, "'pppo'", "did you mean 'ppo'"):
        policy_of("pppo", "mlp", layout)
    with refused(InputError, "'slots'", "mlp"):
        policy_of("recurrent-ppo", "slots", layout)
    with refused(InputError, "'slot'", "slots"):
        policy_of("ppo", "slot", layout)
