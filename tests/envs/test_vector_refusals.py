"""What the vector environment refuses, and that a refusal changes nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode

from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import load_scenario
from tests.envs.same import assert_same
from tests.refusals import refused

SAME_STEP = AutoresetMode.SAME_STEP
THREE_TENANTS = msgspec.to_builtins(load_scenario("ThreeTenants").tenants)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs is 0"),
        ({"num_envs": True}, "num_envs is True, must be an integer"),
        ({"num_envs": 2**63}, "one takes 64 KiB or more: this machine's memory holds"),
        ({"render_mode": "human"}, "render_mode is 'human'"),
        ({"render_mode": 5}, "render_mode is 5; known: ansi, rgb_array"),
        ({"device": "reference"}, "runs on 'compiled' only"),
        ({"autoreset_mode": "SAMESTEP"}, "did you mean 'SAME_STEP'"),
        ({"threads": 0}, "threads is 0"),
        ({"wait_us": 0.0}, "wait_us is 0.0"),
        ({"running_slots": 0}, "running_slots is 0"),
        ({"slots": 1}, "slots is 1, but scenario Toy has 2 tenants"),
        ({"scenario": "Tay"}, "did you mean 'Toy'"),
        ({"horizn_us": 3.0}, "horizn_us"),
        ({"scenarios": [{}]}, "scenarios must be a list of 2 mappings"),
        ({"scenarios": [{}, {"gpu": "h1000"}]}, "h1000"),
        ({"scenarios": [{}, {"horizon_us": -1.0}]}, "environment 1: .*horizon_us"),
        ({"scenarios": [{}, {"stream_priorities": [0, -1]}]}, "environment 1: .*shape the action space"),
        ({"scenarios": [{}, {"tenants": THREE_TENANTS}], "slots": 2}, "slots is 2, but .* has 3 tenants"),
    ],
)
def test_arguments_that_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GpuSchedulingVectorEnv(**{"scenario": "Toy", "num_envs": 2, **arguments})


MASK = np.ones(3, np.bool_)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": [1, 2]}, "seed has 2 entries, but there are 3 environments"),
        ({"seed": [1, -2, 3]}, "the seed of environment 1 is -2"),
        ({"options": {"scenaro": {}}}, "did you mean 'scenario'"),
        ({"options": {"scenario": 3}}, "must be a mapping"),
        (
            {"options": {"scenario": {1: 2}}},
            "reset option scenario must be a mapping of scenario fields, by their names",
        ),
        ({"options": {"scenarios": [{}, {1: 2}, {}]}}, r"reset option scenarios\[1\] must be a mapping"),
        ({"options": {"scenarios": [{}]}}, "must be a list of 3 mappings"),
        ({"options": {"scenarios": [{}, {}, {"gpu": "h1000"}]}}, "h1000"),
        ({"options": {"scenarios": [{}, {}, {"tenants": THREE_TENANTS}]}}, "environment 2: .*do not fit into 2 slots"),
        ({"options": {"reset_mask": [True, True, True]}}, "must be a bool array"),
        ({"options": {"reset_mask": MASK[:2]}}, r"of shape \(3,\)"),
        ({"options": {"reset_mask": MASK.astype(int)}}, "must be a bool array"),
        ({"options": {"reset_mask": ~MASK}}, "with a True"),
    ],
)
def test_a_refused_reset_changes_nothing(arguments: dict[str, Any], message: str, toys: GpuSchedulingVectorEnv) -> None:
    other = GpuSchedulingVectorEnv("Toy", num_envs=3)
    for env in (toys, other):
        env.reset(seed=1)
        env.step([1, 2, 0])
    with pytest.raises(InputError, match=message):
        toys.reset(**arguments)
    assert_same(toys.step([2, 1, 1]), other.step([2, 1, 1]), 0.0)
    assert_same(toys.reset(), other.reset(), 0.0)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 3, 0], r"action 3 of environment 1 is not in 0\.\.2"),
        ([0, 0, -1], r"action -1 of environment 2 is not in 0\.\.2"),
        ([0, 0], r"of shape \(3,\), got int64 of shape \(2,\)"),
        ([0.0, 1.0, 0.0], "must be integers"),
        (1, "must be integers of shape"),
    ],
)
def test_refused_actions_change_nothing(actions: Any, message: str, toys: GpuSchedulingVectorEnv) -> None:
    toys.reset(seed=0)
    masks = toys.action_masks()
    with pytest.raises(InputError, match=message):
        toys.step(actions)
    np.testing.assert_array_equal(toys.action_masks(), masks)
    *_, infos = toys.step([0, 0, 0])
    np.testing.assert_array_equal(infos["elapsed_us"], [100.0] * 3)


def test_episodes_must_have_begun() -> None:
    env = GpuSchedulingVectorEnv("Toy", num_envs=2, autoreset_mode="DISABLED", horizon_us=100.0)
    for call in (lambda: env.step([0, 0]), env.action_masks):
        with refused(ResetNeeded, "reset()", "first"):
            call()
    with refused(ResetNeeded, "reset_mask", "first"):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset(seed=0)
    _, _, _, truncations, _ = env.step([0, 0])
    assert truncations.all()
    env.reset(options={"reset_mask": np.array([True, False])})
    with refused(ResetNeeded, "environment 1", "over"):
        env.step([0, 0])


def test_a_step_that_failed_needs_a_reset() -> None:
    draws = iter([None, {"horizon_us": -1.0}, None])
    env = GpuSchedulingVectorEnv(
        "Toy", horizon_us=100.0, autoreset_mode="SAME_STEP", sample_scenario=lambda e, rng: next(draws)
    )
    env.reset(seed=0)
    with refused(InputError, "environment 0", "horizon_us"):
        env.step([0])
    with refused(ResetNeeded, "failed"):
        env.step([0])
    env.reset(options={"scenario": {"horizon_us": 50.0}})
    assert env.step([0])[4]["final_info"]["time_us"] == 50.0


def test_a_closed_environment_says_so() -> None:
    env = GpuSchedulingVectorEnv("Toy", num_envs=64, threads=2)
    env.reset(seed=0)
    env.close()
    env.close()
    for call in (env.reset, lambda: env.step([0] * 64), env.action_masks):
        with pytest.raises(ClosedEnvironmentError):
            call()
