"""The mask against the device itself: what it allows is accepted, everything else is refused."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.errors import IllegalCommand
from gpusched_env.scheduling.commands import Command

ALL = ["launch", "preempt", "partition", "reject"]
WAYS = ["drain", "save", "reset", "save-part"]


def check_here(env: GpuSchedulingEnv) -> None:
    """Try every action's command at the present decision."""
    legal = env.action_masks()
    snapshot, view = env.device.snapshot(), env.view
    before = [table.array.copy() for table in (view.pending, view.running, view.tenants)]
    for action in np.flatnonzero(~legal).tolist():
        try:
            command = decode(env, action)
        except IllegalCommand:
            continue
        if env.layout.action_of(command, view, streams=env.problem.streams) != action:
            continue  # The one job of a tenant is not offered twice.
        with pytest.raises(IllegalCommand):
            env.device.apply(command)
    now = env.device.view()
    for table, old in zip((now.pending, now.running, now.tenants), before, strict=True):
        np.testing.assert_array_equal(table.array, old)
    assert now.time_us == view.time_us
    for action in np.flatnonzero(legal).tolist():
        copy = type(env.device)()
        copy.restore(snapshot)
        copy.apply(decode(env, action))


def decode(env: GpuSchedulingEnv, action: int) -> Command:
    return env.layout.decode(action, env.view, wait_us=env.wait_us, streams=env.problem.streams)


def walk(env: GpuSchedulingEnv, seed: int, steps: int, checked: int) -> set[str]:
    """Play at random, checking the last ``checked`` decisions; returns the kinds of commands that were given."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    kinds = set()
    for step in range(steps):
        if steps - step <= checked:
            check_here(env)
        # Launches twice as often as the rest, so that something runs.
        legal = np.flatnonzero(env.action_masks())
        action = int(rng.choice(legal if rng.random() < 0.5 else legal[: 1 + env.layout.pending_slots]))
        kinds.add(env.layout.describe(action).split()[0])
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            break
    return kinds


@pytest.mark.long
@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"commands": ALL},
        {"commands": ALL, "slots": 4, "running_slots": 1, "stream_priorities": [0, -1]},
        {"commands": ALL, "preemption": WAYS, "lookahead": 3, "streams": 2},
        {"commands": ALL, "preemption": ["reset"], "decision_us": 7.0},
        {"commands": ALL, "contexts": "per-tenant"},
    ],
    ids=["launch", "all", "few-rows", "windows", "slow-decisions", "sliced"],
)
@pytest.mark.parametrize("device", ["compiled", "reference"])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**20))
def test_toy(setting: dict[str, Any], device: str, seed: int) -> None:
    walk(GpuSchedulingEnv("Toy", device=device, **setting), seed, steps=25, checked=25)


@functools.cache
def three_tenants() -> GpuSchedulingEnv:
    return GpuSchedulingEnv("ThreeTenants", commands=ALL, preemption=WAYS, lookahead=2)


@settings(max_examples=5)
@given(seed=st.integers(0, 2**20), steps=st.integers(1, 80))
def test_recorded_workloads(seed: int, steps: int) -> None:
    walk(three_tenants(), seed, steps, checked=2)


def test_the_walks_above_use_every_kind_of_command() -> None:
    kinds = walk(GpuSchedulingEnv("Toy", commands=ALL), seed=1, steps=25, checked=0)
    assert kinds == {"wait", "launch", "preempt", "confine", "reject"}
