"""Knobs of training beside a service: what can be set, what is seen, and the same on both devices."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv

from gpusched_env.envs.action_fields import PAUSES
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.extra_tables import KnobFeature
from gpusched_env.envs.features import TenantFeature
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.experiments.lib.play import play
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.commands import Partition, SetPartition, Throttle
from tests.envs.same import assert_same

BRIEF: dict[str, Any] = {"horizon_us": 60_000.0, "interval_us": 5_000.0, "restart_us": 8_000.0}
"""A dozen periods of half an iteration."""
NAMES = pytest.mark.parametrize("name", ["ServingColocated", "ServingColocatedMasked"])


def make(name: str = "ServingColocated", **kwargs: Any) -> GpuSchedulingEnv:
    arguments = {**BRIEF, **kwargs}
    if name.endswith("Masked"):
        del arguments["restart_us"]
    return GpuSchedulingEnv(name, **arguments)


def at_random(env: GpuSchedulingEnv, rng: np.random.Generator) -> int:
    """A legal action, most often none: the others do not let time pass."""
    return 0 if rng.random() < 0.5 else int(rng.choice(np.flatnonzero(env.action_masks())))


def test_the_id_of_colocation_is_that_of_its_scenario() -> None:
    made, of_scenario = gymnasium.make("gpusched/Colocation-v0"), gymnasium.make("gpusched/ServingColocated-v0")
    assert made.action_space == of_scenario.action_space
    assert made.observation_space == of_scenario.observation_space
    assert made.unwrapped.scenario.name == "ServingColocated"  # type: ignore[attr-defined]


@NAMES
def test_environments_keep_gymnasium_s_rules(name: str) -> None:
    check_env(make(name, horizon_us=20_000.0), skip_render_check=True)


def test_actions_are_the_knobs_of_best_effort_tenants() -> None:
    env = make()
    env.reset(seed=0)
    assert [name for name, _ in env.layout.parts()] == ["partition", "throttle"]
    legal = np.flatnonzero(env.action_masks()).tolist()
    said = [env.layout.describe(action, ["answers", "tuning"]) for action in legal]
    assert said == [
        "wait",
        *(f"confine tuning: {n}/4 of the SMs from the first on" for n in (1, 2, 3)),
        *(f"confine tuning: {n}/4 of the SMs up to the last" for n in (1, 2, 3)),
        *(f"let tuning sleep before each job: {n / 8:g} times its time alone" for n in PAUSES[1:]),
    ]
    commands = [env.layout.decode(action, env.view, wait_us=1.0) for action in legal]
    alone_us = float(env.view.tenants.alone_us[1])
    assert commands[1] == SetPartition(1, Partition(0, 33))
    assert commands[4] == SetPartition(1, Partition(99, 33))
    assert commands[-1] == Throttle(1, pytest.approx(16 * alone_us, abs=1e-6))  # type: ignore[arg-type]
    assert [env.layout.action_of(command, env.view) for command in commands] == legal


def test_both_knobs_are_set_at_one_instant_and_then_a_period_passes() -> None:
    env = make()
    _, info = env.reset(seed=1)
    began_us = info["time_us"]
    sleep = env.layout.first("throttle") + 1 * env.layout.choices("throttle") + PAUSES.index(8)
    confine = env.layout.first("partition") + 1 * env.layout.choices("partition") + 1
    *_, info = env.step(sleep)
    assert info["time_us"] == began_us
    observation, *_, info = env.step(confine)
    assert info["time_us"] == began_us
    # A knob is set once at an instant; nothing is left but to let the period pass.
    assert np.flatnonzero(info["action_mask"]).tolist() == [0]
    service, training = observation["knobs"]
    assert training[KnobFeature.PAUSE] == pytest.approx(1 / 2)
    assert (training[KnobFeature.THROTTLABLE], training[KnobFeature.PARTITIONABLE]) == (0.0, 0.0)
    assert (service[KnobFeature.PAUSE], service[KnobFeature.THROTTLABLE]) == (0.0, 1.0)
    assert observation["tenants"][1, TenantFeature.PARTITION_SMS] == pytest.approx(0.5)
    *_, info = env.step(0)
    assert info["time_us"] >= began_us + 5_000.0 - 1e-6
    assert info["elapsed_us"] >= 5_000.0 - 1e-6


def test_what_is_seen_of_tenants() -> None:
    """The first iteration alone takes 10.3 ms of the 20 ms, and the second is under way."""
    env = make(tenants={"answers": {"arrivals": {"kind": "poisson", "rate_per_s": 1e-9}}}, interval_us=20_000.0)
    env.reset(seed=0)
    observation, *_ = env.step(0)
    service, training = observation["knobs"]
    view = env.view
    assert service[KnobFeature.LATENCY] == service[KnobFeature.QUEUE] == service[KnobFeature.LOAD] == 0.0
    done, alone_us = float(view.tenants.jobs_done[1]), float(view.tenants.alone_us[1])
    assert done == 1.0
    assert training[KnobFeature.PROGRESS] == pytest.approx(alone_us / view.time_us, rel=1e-5)
    load = 2 * alone_us / view.time_us
    assert training[KnobFeature.LOAD] == pytest.approx(load / (1 + load), rel=1e-5)
    assert training[KnobFeature.LATENCY] == 0.0, "it has no objective"


@pytest.mark.long
@NAMES
def test_every_device_gives_the_same(name: str) -> None:
    envs = [make(name, device=device, horizon_us=40_000.0) for device in ("compiled", "reference")]
    assert_same(envs[0].reset(seed=2), envs[1].reset(seed=2), 1e-6)
    rng = np.random.default_rng(5)
    used, over, step = set(), False, 0
    while not over:
        np.testing.assert_array_equal(envs[0].action_masks(), envs[1].action_masks())
        action = at_random(envs[0], rng)
        used.add(envs[0].layout.split(action)[0])
        got, expected = (env.step(action) for env in envs)
        assert_same(got, expected, 1e-6, f"step {step}")
        over, step = got[2] or got[3], step + 1
    assert used == {"wait", "partition", "throttle"}


@pytest.mark.parametrize("threads", [1, 2])
def test_a_vector_is_as_many_single_ones(threads: int) -> None:
    vector = GpuSchedulingVectorEnv("ServingColocated", num_envs=3, threads=threads, **BRIEF)
    singles: SyncVectorEnv = SyncVectorEnv([make] * 3, autoreset_mode=vector.metadata["autoreset_mode"])
    assert_same(vector.reset(seed=[4, 5, 6]), singles.reset(seed=[4, 5, 6]), 0.0)
    rng = np.random.default_rng(1)
    for step in range(40):
        masks = vector.action_masks()
        np.testing.assert_array_equal(masks, singles.call("action_masks"))
        actions = np.where(rng.random(3) < 0.5, 0, (rng.random(masks.shape) * masks).argmax(axis=1))
        assert_same(vector.step(actions), singles.step(actions), 0.0, f"step {step}")


def test_saved_states_go_on_alike() -> None:
    env = make()
    env.reset(seed=3)
    rng = np.random.default_rng(2)
    for _ in range(6):
        env.step(at_random(env, rng))
    state = env.save_state()
    rng = np.random.default_rng(4)
    first = [env.step(at_random(env, rng)) for _ in range(8)]
    rng = np.random.default_rng(4)
    env.restore_state(state)
    for step, expected in enumerate(first):
        assert_same(env.step(at_random(env, rng)), expected, 0.0, f"step {step}")


def test_without_throttles_decisions_for_an_interval_are_who_goes_first() -> None:
    env = make(commands=["launch"])
    assert [name for name, _ in env.layout.parts()] == ["serve"]
    assert "knobs" not in env.reset(seed=0)[0]
    assert load_scenario("ServingColocated").commands == ("launch", "partition", "throttle")


def test_periods_that_pass_are_those_of_a_controller_that_does_nothing() -> None:
    """Services go first, whatever is pending is launched: as under the published controllers without their knobs."""
    env = make()
    env.reset(seed=9)
    total, over = 0.0, False
    while not over:
        _, reward, terminated, truncated, _ = env.step(0)
        total, over = total + reward, terminated or truncated
    scenario = load_scenario("ServingColocated", **{name: BRIEF[name] for name in ("horizon_us", "restart_us")})
    cost = episode_metrics(play("open-loop", build_problem(scenario), 9)).cost
    assert -total == pytest.approx(cost, rel=1e-9)
