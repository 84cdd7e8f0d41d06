"""Environments and devices are not copied with the addresses of their memory in them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import pytest
from gymnasium.error import ResetNeeded

from gpusched_env import build_problem, load_scenario, make_device
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.games.child_launches.environment.env import DynamicParallelismEnv
from tests.refusals import refused
from tests.robustness.playing import play, started


def wrapped() -> Any:
    env = gymnasium.wrappers.TimeLimit(GpuSchedulingEnv("Toy"), 100)
    env.reset(seed=0)
    return env


def several() -> Any:
    envs = GpuSchedulingVectorEnv("Toy", num_envs=2)
    envs.reset(seed=0)
    return envs


def for_sb3() -> Any:
    pytest.importorskip("stable_baselines3")
    from gpusched_env.agents.sb3_vec_env import Sb3VecEnv

    return Sb3VecEnv(GpuSchedulingVectorEnv("Toy", num_envs=2, autoreset_mode="SAME_STEP"))


def device() -> Any:
    compiled = make_device("compiled")
    compiled.reset(build_problem(load_scenario("Toy")), 0)
    return compiled


def pickled(original: Any) -> Any:
    return pickle.loads(pickle.dumps(original))


@pytest.mark.parametrize("make", [started, wrapped, several, for_sb3, device])
@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_copies_are_refused(make: Callable[[], Any], copied: Callable[[Any], Any]) -> None:
    with refused(TypeError, "save_state()"):
        copied(make())


@pytest.mark.parametrize("make", [started, several])
def test_shallow_copies_are_refused(make: Callable[[], Any]) -> None:
    with refused(TypeError, "save_state()"):
        copy.copy(make())


def test_a_launch_environment_has_no_shallow_copy() -> None:
    env = DynamicParallelismEnv("random", device="reference")
    env.reset(seed=0)
    with refused(TypeError, "original's"):
        copy.copy(env)


@pytest.mark.parametrize("steps", [0, 5, None])
@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
@pytest.mark.parametrize("name", ["reference", "compiled"])
def test_a_copied_launch_environment_goes_on_by_itself(
    name: str, copied: Callable[[Any], Any], steps: int | None
) -> None:
    """At its start, under way, and at its end (``None``)."""
    env = DynamicParallelismEnv("random", device=name)
    env.reset(seed=3)
    played = [env.step(1)[1:4] for _ in range(steps or 0)] if steps is not None else to_the_end(env)
    again = copied(env)
    assert again.application.device.time_ps == env.application.device.time_ps
    if steps is None:
        assert played[-1][1], "it is over"
        with pytest.raises(ResetNeeded):
            again.step(1)
        again.reset(seed=3)
        assert to_the_end(again) == played
        return
    before = env.application.device.time_ps
    rest = to_the_end(again)
    assert env.application.device.time_ps == before, "the original stays where it is"
    assert rest == to_the_end(env)
    assert rest[-1][1]


def to_the_end(env: DynamicParallelismEnv) -> list[Any]:
    """Rewards and ends of the other steps of an episode that launches every second child."""
    found: list[Any] = []
    while not found or not found[-1][1]:
        found.append(env.step(len(found) % 2)[1:4])
    return found


def test_a_launch_environment_without_an_episode_can_be_copied() -> None:
    env = copy.deepcopy(DynamicParallelismEnv("random", device="reference"))
    env.reset(seed=3)
    other = DynamicParallelismEnv("random")
    other.reset(seed=3)
    assert to_the_end(env) == to_the_end(other)


def test_an_environment_goes_on_after_a_refused_copy() -> None:
    env = started()
    with pytest.raises(TypeError):
        copy.deepcopy(env)
    assert play(env) == play(started())
