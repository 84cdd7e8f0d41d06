"""The environment of dynamic parallelism: checkers, rewards, seeds, columns, both devices, learning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from gpusched_env.envs.registration import env_id
from gpusched_env.errors import InputError
from gpusched_env.games.child_launches.baselines.registry import make_launch_scheduler
from gpusched_env.games.child_launches.devices.compiled.device import CompiledWarpDevice
from gpusched_env.games.child_launches.environment.env import DynamicParallelismEnv
from gpusched_env.games.child_launches.environment.requests import RANDOM, LaunchFeature, episode_problem, log_of
from gpusched_env.games.child_launches.hardware.warp_machine import SPAWN_KEPLER
from gpusched_env.games.child_launches.scheduler import run_application
from tests.refusals import refused

SMALL = 11
"""Seed of a random application with few requests: a search with 61."""


def play(env: DynamicParallelismEnv, seed: int = 0, limit: int = 10**6) -> list[tuple[Any, ...]]:
    """Random actions until the end, drawn from a generator of their own."""
    rng = np.random.default_rng(seed)
    steps: list[tuple[Any, ...]] = []
    while len(steps) < limit and not (steps and steps[-1][2]):
        steps.append(env.step(rng.integers(2)))
    return steps


def constant(env: DynamicParallelismEnv, action: int) -> tuple[float, dict[str, Any]]:
    """Return, and the last info."""
    total, over, info = 0.0, False, {}
    while not over:
        _, reward, over, _, info = env.step(action)
        total += reward
    return total, info


@pytest.fixture(scope="module")
def env() -> DynamicParallelismEnv:
    made = gymnasium.make(env_id("DynamicParallelism")).unwrapped
    assert isinstance(made, DynamicParallelismEnv)
    return made


def test_checkers_find_nothing() -> None:
    check_env(gymnasium.make(env_id("DynamicParallelism")).unwrapped)
    check_env(gymnasium.make(env_id("DynamicParallelism"), render_mode="rgb_array").unwrapped)


def test_the_return_is_minus_one_over_the_speed_up_of_the_same_scheduler(env: DynamicParallelismEnv) -> None:
    problem, flat_ps = episode_problem(RANDOM, SMALL, SPAWN_KEPLER)
    for action, name in ((0, "flat"), (1, "baseline-dp")):
        env.reset(seed=SMALL)
        total, info = constant(env, action)
        run = run_application(make_launch_scheduler(name), problem, CompiledWarpDevice())
        if action == 1:
            assert info["children"] == run.children > 0
            assert info["time_us"] == run.time_ps / 1e6
        assert info["speedup"] == flat_ps / (1e6 * info["time_us"])
        assert total == pytest.approx(-1.0 / info["speedup"], rel=1e-9)
        assert info["episode_metrics"]["cost"] == pytest.approx(-total, rel=1e-9)


def test_programs_can_be_compiled_as_those_of_rules_are() -> None:
    """Launching whatever is above the threshold is then what the rule ``aggregation`` does."""
    program = {"threshold": 16, "coarsening": 4, "aggregated": True}
    compiled = DynamicParallelismEnv(program=program)
    compiled.reset(seed=SMALL)
    total, info = constant(compiled, 1)
    problem, flat_ps = episode_problem(RANDOM, SMALL, SPAWN_KEPLER)
    rule = make_launch_scheduler("aggregation(threshold=16,coarsening=4)")
    run = run_application(rule, problem, CompiledWarpDevice())
    assert (info["children"], info["time_us"]) == (run.children, run.time_ps / 1e6)
    assert total == pytest.approx(-run.time_ps / flat_ps, rel=1e-9)
    for given, message in (
        ({"coarse": 4}, "program: 'coarse' is no transformation"),
        ({"coarsening": 0}, "program: .*coarsening"),
        (16, "program is 16, must be a mapping"),
    ):
        with pytest.raises(InputError, match=message):
            DynamicParallelismEnv(program=given)  # type: ignore[arg-type]


def test_observations_are_finite_and_in_the_space(env: DynamicParallelismEnv) -> None:
    for seed in (0, SMALL, 27):
        observation, _ = env.reset(seed=seed)
        assert env.observation_space.contains(observation)
        steps = play(env, seed)
        assert all(env.observation_space.contains(step[0]) for step in steps)
        assert not steps[-1][0].any(), "the end shows nothing"
        assert any(step[0][LaunchFeature.KNOWN] for step in steps)


def test_both_devices_give_the_same_episode() -> None:
    episodes = []
    for device in ("compiled", "reference"):
        made = DynamicParallelismEnv(device=device)
        first, info = made.reset(seed=SMALL)
        episodes.append([(first, 0.0, False, False, info), *play(made)])
    for mine, theirs in zip(*episodes, strict=True):
        np.testing.assert_array_equal(mine[0], theirs[0])
        np.testing.assert_equal(mine[1:], theirs[1:])


def test_advantage_decides_as_spawn_does() -> None:
    """The sign of the column is the comparison of Algorithm 1."""
    made = DynamicParallelismEnv(device="reference")
    made.reset(seed=SMALL)
    spawn = make_launch_scheduler("spawn")
    device: Any = made.application.device
    views = []
    advance = device.advance

    def watched() -> Any:
        views.append(advance())
        return views[-1]

    device.advance = watched
    from gpusched_env.games.child_launches.device import SPAWN, LaunchKnowledge

    spawn.reset(LaunchKnowledge(SPAWN_KEPLER, 0, False), np.random.default_rng(0))
    steps = play(made)
    compared = 0
    for step, view in zip(steps, views, strict=True):
        if view is not None and view.blocks_ended:
            compared += 1
            assert (step[0][LaunchFeature.ADVANTAGE] >= 0.0) == (spawn.decide(view) is SPAWN)
    assert compared > 10


def test_columns_are_of_the_request(env: DynamicParallelismEnv) -> None:
    observation, _ = env.reset(seed=SMALL)
    device: Any = env.application.device
    row = device.state.request[0]
    for column, field in (
        (LaunchFeature.WORK, "work"),
        (LaunchFeature.ITEMS, "items"),
        (LaunchFeature.BLOCKS, "blocks"),
    ):
        assert observation[column] == np.float32(log_of(float(row[field])))
    assert observation[LaunchFeature.CALLS] == row["calls"] / 32
    assert observation[LaunchFeature.ROOM] == 1.0, "this GPU has no pool"


def test_seeds_repeat_episodes_and_draw_others(env: DynamicParallelismEnv) -> None:
    env.reset(seed=5)
    drawn = [env.reset()[1]["seed"] for _ in range(2)]
    env.reset(seed=5)
    assert [env.reset()[1]["seed"] for _ in range(2)] == drawn
    assert drawn[0] != drawn[1]
    first, info = env.reset(seed=SMALL)
    again, info_again = env.reset(seed=SMALL)
    np.testing.assert_array_equal(first, again)
    assert info["benchmark"] == info_again["benchmark"] == f"BFS-{SMALL}"


def test_a_benchmark_can_be_named(env: DynamicParallelismEnv) -> None:
    assert DynamicParallelismEnv("MM-small").reset(seed=0)[1]["benchmark"] == "MM-small"
    assert env.reset(seed=0, options={"benchmark": "MM-small"})[1]["benchmark"] == "MM-small"
    assert env.reset(seed=0)[1]["benchmark"] != "MM-small", "for that episode only"


@pytest.mark.long
def test_a_full_pool_that_fails_launches_masks_them() -> None:
    launches = replace(SPAWN_KEPLER.launches, pool=2, overflow="fail", hardware_queues=2)
    made = DynamicParallelismEnv(machine=replace(SPAWN_KEPLER, launches=launches))
    _, info = made.reset(seed=SMALL)
    masked = illegal = 0
    over = False
    while not over:
        legal = bool(made.action_masks()[1])
        assert info["action_mask"].tolist() == [1, int(legal)]
        masked += not legal
        _, _, over, _, info = made.step(1)
        illegal += not legal
        assert info["illegal_actions"] == illegal
    assert masked > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DynamicParallelismEnv("MM-smal"), "did you mean 'MM-small'"),
        (lambda: DynamicParallelismEnv(device="referense"), "did you mean 'reference'"),
        (lambda: DynamicParallelismEnv(render_mode="rgb"), "render_mode is 'rgb'"),  # type: ignore[arg-type]
        (lambda: DynamicParallelismEnv().reset(options={"bench": 1}), "'bench'"),
        (lambda: DynamicParallelismEnv().reset(options={"benchmark": "AMD"}), "benchmark is 'AMD'"),
    ],
)
def test_bad_arguments_are_named(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_actions_outside_the_space_and_steps_after_the_end_are_errors(env: DynamicParallelismEnv) -> None:
    with pytest.raises(ResetNeeded):
        DynamicParallelismEnv().step(0)
    env.reset(seed=SMALL)
    for action in (2, -1, "launch"):
        with refused(InputError, "action"):
            env.step(action)  # type: ignore[arg-type]
    constant(env, 0)
    with refused(ResetNeeded, "over"):
        env.step(0)


def test_text_and_pictures_show_children() -> None:
    made = DynamicParallelismEnv(render_mode="ansi")
    made.reset(seed=SMALL)
    play(made, limit=30)
    words = made.render()
    assert f"BFS-{SMALL} on" in words
    assert "launched" in words
    drawn = DynamicParallelismEnv(render_mode="rgb_array")
    drawn.reset(seed=SMALL)
    assert (drawn.render() == 255).all(), "nothing has been launched"
    constant(drawn, 1)
    assert len(np.unique(drawn.render().reshape(-1, 3), axis=0)) == 3, "waiting, running, nothing"


def test_gymnasium_vectorises_it() -> None:
    envs = gymnasium.make_vec(env_id("DynamicParallelism"), num_envs=2, vectorization_mode="sync")
    observation, info = envs.reset(seed=[SMALL, 27])
    assert observation.shape == (2, len(LaunchFeature))
    assert info["action_mask"].shape == (2, 2)
    envs.step(np.array([0, 1]))
    envs.close()
