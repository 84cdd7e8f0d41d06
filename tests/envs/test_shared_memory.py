"""Budgets of CPU cores beside a real-time program: what can be set, what is seen, and the same on both devices."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv

from gpusched_env.data.parboil import memory_mix
from gpusched_env.envs.action_fields import BUDGETS
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.extra_tables import CoreFeature
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scenarios.variants import variant_changes
from gpusched_env.scenarios.workload_sets import Substitute
from gpusched_env.scheduling.commands import SetBudget
from gpusched_env.workload.cores.spec import MOST_EVENTS
from tests.envs.same import assert_same
from tests.refusals import refused

NAME = "SharedMemory"
BRIEF: dict[str, Any] = {"horizon_us": 60_000.0}
"""Two frames."""


def make(**kwargs: Any) -> GpuSchedulingEnv:
    return GpuSchedulingEnv(NAME, **{**BRIEF, **kwargs})


def at_random(env: GpuSchedulingEnv, rng: np.random.Generator) -> int:
    """A legal action, most often none: the others do not let time pass."""
    return 0 if rng.random() < 0.5 else int(rng.choice(np.flatnonzero(env.action_masks())))


def budget(env: GpuSchedulingEnv, core: int, events: int) -> int:
    return env.layout.first("budget") + core * len(BUDGETS) + BUDGETS.index(events)


def test_the_environment_keeps_gymnasium_s_rules() -> None:
    check_env(make(horizon_us=20_000.0), skip_render_check=True)


def test_actions_are_the_budgets_of_cores_with_processes() -> None:
    env = make()
    env.reset(seed=0)
    assert [name for name, _ in env.layout.parts()] == ["budget"]
    legal = np.flatnonzero(env.action_masks()).tolist()
    # Row 0 runs the program's host alone, and no core is regulated yet.
    said = [env.layout.describe(action, ["frames"]) for action in legal]
    assert said == [
        "wait",
        *(f"set the budget of the CPU core in row {c}: {n} misses a period" for c in range(1, 5) for n in BUDGETS[:-1]),
    ]
    commands = [env.layout.decode(action, env.view, wait_us=1.0) for action in legal]
    assert commands[1] == SetBudget(1, 64)
    assert [env.layout.action_of(command, env.view) for command in commands] == legal


def test_all_budgets_are_set_at_one_instant_and_then_a_period_passes() -> None:
    env = make()
    _, info = env.reset(seed=1)
    began_us = info["time_us"]
    for core in range(1, 5):
        observation, *_, info = env.step(budget(env, core, 64))
        assert info["time_us"] == began_us
    assert np.flatnonzero(info["action_mask"]).tolist() == [0], "each is set once at an instant"
    cores = observation["cores"]
    assert cores[:, CoreFeature.SETTABLE].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert cores[1:, CoreFeature.BUDGET] == pytest.approx(np.log(64) / np.log(MOST_EVENTS))
    *_, info = env.step(0)
    assert info["elapsed_us"] == pytest.approx(1000.0)
    for _ in range(5):
        observation, *_ = env.step(0)
    cores = observation["cores"]
    # The hogs on rows 1 and 3 stand; the busy process on row 4 misses nothing, and runs.
    assert cores[[1, 3, 4], CoreFeature.THROTTLED].tolist() == [1.0, 1.0, 0.0]
    assert cores[0, [CoreFeature.HOSTS, CoreFeature.LOCKED]].tolist() == [1.0, 1.0]
    assert cores[[1, 4], CoreFeature.MISS_RATE] == pytest.approx([0.5, 0.0], abs=1e-6)
    assert cores[4, CoreFeature.COMPUTE_SHARE] == pytest.approx(1.0)


def test_the_return_is_late_frames_and_the_time_for_which_cores_stood() -> None:
    env = make()
    env.reset(seed=0)
    total, over = 0.0, False
    for core in range(1, 5):
        total += float(env.step(budget(env, core, 8192))[1])
    while not over:
        _, reward, terminated, truncated, info = env.step(0)
        total, over = total + float(reward), terminated or truncated
    terms = info["reward_terms"]
    stood_ms = float(env.view.cores.throttled_us.sum()) / 1e3
    assert stood_ms > 0.0
    assert terms["throttled"] == pytest.approx(-stood_ms)
    assert total == pytest.approx(terms["throttled"] + terms["slo_miss"])


@pytest.mark.long
def test_every_device_gives_the_same() -> None:
    envs = [make(device=device) for device in ("compiled", "reference")]
    assert_same(envs[0].reset(seed=2), envs[1].reset(seed=2), 1e-6)
    rng = np.random.default_rng(5)
    over, step = False, 0
    while not over:
        np.testing.assert_array_equal(envs[0].action_masks(), envs[1].action_masks())
        action = at_random(envs[0], rng)
        got, expected = (env.step(action) for env in envs)
        assert_same(got, expected, 1e-6, f"step {step}")
        over, step = got[2] or got[3], step + 1


def test_a_vector_is_as_many_single_ones() -> None:
    vector = GpuSchedulingVectorEnv(NAME, num_envs=3, **BRIEF)
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


def test_variants_are_the_generated_mixes() -> None:
    sets = load_scenario(NAME).workload_sets
    assert sets is not None
    for variants, held_out in ((sets.train, False), (sets.held_out, True)):
        mixes = [msgspec.convert(memory_mix(seed, held_out=held_out), Substitute) for seed in range(len(variants))]
        assert [variant["frames"] for variant in variants] == mixes
    env = make()
    change = variant_changes(load_scenario(NAME), "held_out")[0]
    assert change["cores"]["cores"][1]["processes"][0]["name"] == "scan"
    observation, _ = env.reset(seed=0, options={"scenario": change})
    assert observation["cores"][1:, CoreFeature.TASKS] == pytest.approx([2 / 3, 1 / 2, 2 / 3, 2 / 3])


def test_without_budgets_there_is_no_table_of_cores() -> None:
    env = make(commands=["launch"])
    assert [name for name, _ in env.layout.parts()] == ["serve"]
    assert "cores" not in env.reset(seed=0)[0]


def test_neighbours_of_too_few_cores_are_refused() -> None:
    sets = {"train": [{"frames": {"workload": "parboil(benchmark=bfs)", "neighbours": [[]]}}], "held_out": [{}]}
    with refused(InputError, "1 cores", "4 run"):
        load_scenario(NAME, workload_sets=sets)
