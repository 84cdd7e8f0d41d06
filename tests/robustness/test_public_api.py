"""Attacks on the public API: each gives a right result or one clear error, never a crash, a hang or a wrong answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from gpusched_env import build_problem, load_scenario, make_device
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import IllegalCommand, InputError
from gpusched_env.scheduling.commands import Launch, Partition, Preempt, Reject, SetPartition, Wait
from tests.refusals import refused
from tests.robustness.playing import play, started

TOY = load_scenario("Toy")
ALL_COMMANDS = {"commands": ["launch", "preempt", "partition", "reject"]}
DEVICES = ["compiled", "reference"]


# ---- actions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "action",
    [-1, 3, 10**30, 2**63, np.uint64(2**64 - 1), 0.0, 1.5, math.nan, math.inf, "0", b"0", None, [0], [0, 1], {}, 0j,
     np.float32(1), np.array([0]), np.array([0, 1]), np.array(0.0), np.array([])],
    ids=repr,
)  # fmt: skip
def test_what_is_no_action_is_refused(action: Any) -> None:
    env = started()
    before = env.save_state()
    with refused(InputError, "action"):
        env.step(action)
    assert env.episode().decisions == 0
    assert play(env) == play(started())
    env.restore_state(before)


@pytest.mark.parametrize("action", [1, np.int8(1), np.uint64(1), np.array(1), True], ids=repr)
def test_integers_of_all_kinds_are_actions(action: Any) -> None:
    env, other = started(), started()
    observation, *rest = env.step(action)
    expected, *others = other.step(1)
    assert all(np.array_equal(observation[name], expected[name]) for name in expected)
    assert rest[:3] == others[:3]


@pytest.mark.parametrize(
    "actions",
    [[0], [0, 0, 0], 0, [[0], [0]], [0.0, 1.0], ["0", "0"], [0, -1], [0, 3], [0, 2**62], None, [None, 0], []],
    ids=repr,
)
def test_what_are_no_actions_of_a_vector_environment_is_refused(actions: Any) -> None:
    envs = GpuSchedulingVectorEnv("Toy", num_envs=2)
    envs.reset(seed=0)
    with refused(InputError, "action"):
        envs.step(actions)
    _, rewards, *_ = envs.step([0, 0])
    assert rewards.tolist() == [-0.4, -0.4]
    envs.close()


def test_an_episode_begins_with_a_reset_and_ends_at_its_end() -> None:
    env = GpuSchedulingEnv("Toy")
    for early in (lambda: env.step(0), env.action_masks, env.save_state, env.episode, lambda: env.view):
        with refused(ResetNeeded, "reset"):
            early()
    play(env)
    with refused(ResetNeeded, "over"):
        env.step(0)
    assert play(env)[1]
    envs = GpuSchedulingVectorEnv("Toy", num_envs=2)
    with refused(ResetNeeded, "reset"):
        envs.step([0, 0])
    envs.close()
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
        envs.step([0, 0])


# ---- seeds and options -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [-1, 1.5, math.nan, "0", b"1", [1], np.array(3), {}], ids=repr)
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    with refused(gymnasium.error.Error, "Seed"):
        GpuSchedulingEnv("Toy").reset(seed=seed)
    envs = GpuSchedulingVectorEnv("Toy", num_envs=2)
    with refused(InputError, "seed"):
        envs.reset(seed=seed)
    envs.close()


@pytest.mark.parametrize("seed", [0, 2**31, 2**63 - 2, 2**63, 2**200], ids=str)
def test_large_seeds_are_seeds_or_refused(seed: int) -> None:
    assert GpuSchedulingEnv("Toy").reset(seed=seed)[1]["seed"] == seed
    envs = GpuSchedulingVectorEnv("Toy", num_envs=2)
    if seed < 2**63 - 1:
        assert envs.reset(seed=seed)[1]["seed"].tolist() == [seed, seed + 1]
    else:
        with refused(InputError, "in 0"):
            envs.reset(seed=seed)
    envs.close()


@pytest.mark.parametrize("seeds", [[1.5, 0], [0], [0, 1, 2], "01", [None, "x"], [0, 2**64], [math.nan, 0]], ids=repr)
def test_what_are_no_seeds_of_a_vector_environment_is_refused(seeds: Any) -> None:
    envs = GpuSchedulingVectorEnv("Toy", num_envs=2)
    with refused(InputError, "seed"):
        envs.reset(seed=seeds)
    envs.close()


@pytest.mark.parametrize(
    "options", ["x", 5, {"x": 1}, {"scenario": 5}, {"scenario": {"horizon_us": math.inf}}], ids=str
)
def test_what_are_no_options_is_refused(options: Any) -> None:
    for env in (GpuSchedulingEnv("Toy"), GpuSchedulingVectorEnv("Toy", num_envs=2)):
        with pytest.raises(InputError, match=r"option|horizon_us"):
            env.reset(seed=0, options=options)


# ---- settings --------------------------------------------------------------------------------------

NOT_NUMBERS = (math.nan, math.inf, -1.0, "5", None)
FIELDS: list[tuple[str, Callable[[Any], dict[str, Any]], tuple[Any, ...]]] = [
    ("horizon_us", lambda value: {"horizon_us": value}, NOT_NUMBERS),
    ("decision_us", lambda value: {"decision_us": value}, NOT_NUMBERS),
    ("wait_us", lambda value: {"wait_us": value}, (math.nan, 0, -1.0, "5", None)),
    ("turnaround", lambda value: {"reward": {"turnaround": value}}, NOT_NUMBERS),
    ("scatter", lambda value: {"profiles": {"scatter": value}}, NOT_NUMBERS),
    ("weight", lambda value: {"tenants": {"batch": {"weight": value}}}, NOT_NUMBERS),
    ("slo_us", lambda value: {"tenants": {"batch": {"slo_us": value}}}, NOT_NUMBERS[:4]),
    ("iteration_us", lambda value: {"tenants": {"batch": {"iteration_us": value}}}, NOT_NUMBERS[:4]),
    ("host_us", lambda value: {"tenants": {"batch": {"host_us": value}}}, NOT_NUMBERS[:4]),
    (
        "rate_per_s",
        lambda value: {"tenants": {"batch": {"arrivals": {"kind": "poisson", "rate_per_s": value}}}},
        NOT_NUMBERS,
    ),
    (
        "think_us",
        lambda value: {"tenants": {"batch": {"arrivals": {"kind": "closed-loop", "think_us": value}}}},
        NOT_NUMBERS,
    ),
    ("jobs", lambda value: {"tenants": {"batch": {"jobs": value}}}, (0, -1, 1.5, 2**70, math.nan)),
    ("priority", lambda value: {"tenants": {"batch": {"priority": value}}}, (-1, 1.5, 2**70)),
    ("lookahead", lambda value: {"lookahead": value}, (0, 10**9, 2**70, 1.5)),
    ("streams", lambda value: {"streams": value}, (-1, 10**9, 2**70)),
    ("launch_depth", lambda value: {"launch_depth": value}, (0, 2**70)),
    ("slots", lambda value: {"slots": value}, (0, -1, 1, 1.5, 10**9, "2")),
    ("running_slots", lambda value: {"running_slots": value}, (0, -1, 1.5, 10**9, math.nan)),
    ("record", lambda value: {"record": value}, ("x", 5)),
    ("device", lambda value: {"device": value}, ("x", 5, None)),
    ("gpu", lambda value: {"gpu": value}, ("x", 5, None)),
]


@pytest.mark.parametrize(
    ("field", "settings"),
    [pytest.param(name, make(value), id=f"{name}={value!r}") for name, make, values in FIELDS for value in values],
)
def test_settings_out_of_range_are_refused_by_name(field: str, settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"(?i){field}"):
        GpuSchedulingEnv("Toy", **settings)


@pytest.mark.parametrize(
    "settings",
    [{"horizon_us": 1e12}, {"horizon_us": 1e-300}, {"decision_us": 1e12}, {"wait_us": math.inf}, {"wait_us": 1e-300}],
    ids=str,
)
def test_settings_at_the_edge_give_an_episode(settings: dict[str, Any]) -> None:
    rewards, over = play(GpuSchedulingEnv("Toy", **settings))
    assert over
    assert -10.0 < sum(rewards) < 0.0


# ---- commands --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DEVICES)
def test_what_is_no_command_is_refused_and_changes_nothing(name: str) -> None:
    device = make_device(name)
    device.reset(build_problem(load_scenario("Toy", **ALL_COMMANDS)), 0)
    device.apply(Launch(0))
    before = device.view()
    wrong: list[Any] = [
        None, 5, "launch", Launch, Launch("0"), Launch(math.nan), Launch(1.5), Launch(2**70), Launch(1, priority=-0.5),  # type: ignore[arg-type]
        Launch(1, priority="x"), Launch(1, partition=5), Launch(1, partition=Partition(0, 0)),  # type: ignore[arg-type]
        Launch(1, partition=Partition(0.5, 1.5)), Launch(1, partition=Partition(2**40, 1)), Launch(1, stream=2**70),  # type: ignore[arg-type]
        Launch(1, stream=0.5), Preempt(0, "x"), Preempt(0.5, "drain"), SetPartition(2**70, None),  # type: ignore[arg-type]
        SetPartition(0.5, None), SetPartition(-1, None), Reject(0, 0.5), Reject(2**70, 2**70), Reject(-1, 0),  # type: ignore[arg-type]
        Wait(math.nan), Wait(-1.0), Wait("x"), Wait(None),  # type: ignore[arg-type]
    ]  # fmt: skip
    for command in wrong:
        with pytest.raises(IllegalCommand):
            device.apply(command)
    after = device.view()
    assert np.array_equal(before.pending.array, after.pending.array)
    assert np.array_equal(before.tenants.array, after.tenants.array)
    device.apply(Launch(1))
    device.apply(Wait(50.0))
    assert device.advance() is not None
    assert device.time_us == 50.0


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_goes_back_to_its_own_snapshots_only(name: str) -> None:
    device = make_device(name)
    for foreign in ("x", None, 5, (), (1, 2, 3, 4), b"\x00" * 100):
        with refused(InputError, "snapshot"):
            device.restore(foreign)
    problem = build_problem(TOY)
    expected = run_episode(make_scheduler("pass-through"), problem, make_device(name), 0).costs.makespan_us
    assert run_episode(make_scheduler("pass-through"), problem, device, 0).costs.makespan_us == expected
