"""What an agent is told: nothing of the future, and nothing that it could bend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.observations import Observation
from tests.gaming.policies import honest, play

Seen = list[tuple[float, Observation]]


def watch(until_us: float, **overrides: Any) -> Seen:
    """Times and observations of an honest episode up to a time."""
    env = GpuSchedulingEnv("ThreeTenants", **overrides)
    observation, _ = env.reset(seed=6)
    seen: Seen = []
    while env.view.time_us < until_us:
        seen.append((env.view.time_us, observation))
        observation, *_ = env.step(honest(env))
    return seen


def assert_same(one: Seen, other: Seen) -> None:
    assert [time_us for time_us, _ in one] == [time_us for time_us, _ in other]
    for (_, ours), (_, theirs) in zip(one, other, strict=True):
        for name, table in ours.items():
            np.testing.assert_array_equal(table, theirs[name])


@pytest.mark.long
def test_later_arrivals_do_not_show() -> None:
    """The same episode up to the moment from which on the bursty tenant's requests are more, or fewer."""
    tenants = {"question-answering": {"jobs": 4}, "image-tagging": {"jobs": 2}, "fine-tuning": {"jobs": 3}}
    more = {**tenants, "image-tagging": {"jobs": 12}}
    env = GpuSchedulingEnv("ThreeTenants", tenants=more)
    play(env, honest, seed=6)
    jobs = env.device.timeline.jobs.array
    third_us = float(np.sort(jobs[jobs[:, 0] == 1, 2])[2])
    few, many = watch(third_us, tenants=tenants), watch(third_us, tenants=more)
    assert len(few) > 500
    assert_same(few, many)
    assert len(watch(third_us + 5000.0, tenants=tenants)) != len(watch(third_us + 5000.0, tenants=more))


def test_actual_durations_do_not_show() -> None:
    """Neither column of a running kernel tells how long it will really take: profiled times are the same for all."""
    env = GpuSchedulingEnv("InferenceBesideTraining")
    identities: dict[int, set[float]] = {}
    scales: dict[int, set[float]] = {}
    for program in env.problem.programs:
        for variant in program.variants:
            for op in variant:
                scales.setdefault(op.identity, set()).add(op.scale)
    env.reset(seed=1)
    for _ in range(3000):
        for identity, profiled_us in zip(env.view.running.identity, env.view.running.profiled_us, strict=True):
            identities.setdefault(int(identity), set()).add(float(profiled_us))
        env.step(honest(env))
    assert len(identities) > 20
    assert max(len(scales[identity]) for identity in identities) > 10, "they do vary"
    assert all(len(told) == 1 for told in identities.values())


def test_wrong_profiles_change_neither_the_device_nor_the_cost() -> None:
    """Who lies to an agent about durations changes what it decides, not what a given decision costs."""
    tenants = {"inference": {"jobs": 3}, "training": {"jobs": 1}}
    right = play(GpuSchedulingEnv("InferenceBesideTraining", tenants=tenants), honest)
    for seed in range(3):
        env = GpuSchedulingEnv("InferenceBesideTraining", tenants=tenants, profiles={"scatter": 4.0, "seed": seed})
        assert play(env, honest).cost == pytest.approx(right.cost, rel=1e-12)
