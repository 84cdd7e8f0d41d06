"""Saving a vector environment in the middle of its episodes, and going back."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.errors import InputError
from tests.refusals import refused


def sample(number: int, rng: np.random.Generator) -> dict[str, Any]:
    return {"gpu": ("h100-sxm", "h200-sxm")[int(rng.integers(2))]}


def make(mode: AutoresetMode, count: int = 5) -> GpuSchedulingVectorEnv:
    return GpuSchedulingVectorEnv(
        "InferenceBesideTraining",
        commands=["launch", "partition"],
        num_envs=count,
        horizon_us=700.0,
        autoreset_mode=mode,
        sample_scenario=sample,
    )


def go_on(env: GpuSchedulingVectorEnv, rng: np.random.Generator, steps: int) -> list[Any]:
    seen = []
    for _ in range(steps):
        masks = env.action_masks()
        step = env.step((rng.random(masks.shape) * masks).argmax(axis=1))
        if "final_obs" in step[-1]:
            # An array of objects cannot be compared; a list can.
            step[-1]["final_obs"] = step[-1]["final_obs"].tolist()
        seen.append(step)
    return seen


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_another_process_goes_on_exactly(mode: AutoresetMode) -> None:
    env, rng = make(mode), np.random.default_rng(0)
    env.reset(seed=4)
    # To where the last step ended an episode: with NEXT_STEP a reset is due.
    while not (go_on(env, rng, 1)[0][3]).any():
        pass
    state, drawn = pickle.dumps(env.save_state()), pickle.dumps(rng)
    expected = go_on(env, rng, 400)
    assert sum(int((step[2] | step[3]).sum()) for step in expected) > 5, "episodes must begin and end on the way"
    other = make(mode)
    other.reset(seed=99)
    go_on(other, np.random.default_rng(1), 30)
    observations, infos = other.restore_state(pickle.loads(state))
    np.testing.assert_array_equal(infos["action_mask"], other.action_masks())
    assert set(observations) == {"pending", "running", "tenants", "device"}
    np.testing.assert_equal(go_on(other, pickle.loads(drawn), 400), expected)
    assert [rng.bit_generator.state for rng in other.np_random] == [rng.bit_generator.state for rng in env.np_random]


def test_a_state_of_other_environments_is_refused() -> None:
    env = make(AutoresetMode.SAME_STEP)
    env.reset(seed=0)
    state = env.save_state()
    other = make(AutoresetMode.SAME_STEP, count=4)
    with refused(InputError, "5 environments", "environment 4"):
        other.restore_state(state)
