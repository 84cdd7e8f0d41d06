"""Not working: during the whole episode, when the horizon is near, or to save energy."""

from __future__ import annotations

import itertools

import pytest

from gpusched_env.envs.env import GpuSchedulingEnv
from tests.gaming.policies import fewer_jobs, honest, idle, idle_from, play


@pytest.mark.parametrize("scenario", ["InferenceBesideTraining", "PriorityFill", "ThreeTenants", "MultiTenantBurst"])
def test_an_episode_without_a_completed_job(scenario: str) -> None:
    env = GpuSchedulingEnv(scenario, tenants=fewer_jobs(scenario, 5))
    fair, lazy = play(env, honest), play(env, idle)
    assert lazy.cost > 20 * fair.cost
    assert not {"antt", "energy_per_job_j"} & lazy.figures.keys(), "figures that nothing defines are left out"


def test_idling_before_a_horizon_that_comes_too_soon() -> None:
    """The earlier an agent stops to work, the more it costs: jobs that were begun count for nothing."""
    env = GpuSchedulingEnv("InferenceBesideTraining", horizon_us=60_000.0)
    costs = [play(env, idle_from(at_us)).cost for at_us in (60_000.0, 50_000.0, 40_000.0, 20_000.0, 0.0)]
    for later, earlier in itertools.pairwise(costs):
        assert earlier > later + 4.0, "a training step or four requests less"


@pytest.mark.parametrize("horizon_us", [400_000.0, 30_000.0], ids=["long", "short"])
@pytest.mark.parametrize("term", ["energy", "makespan"])
def test_objectives_that_do_not_count_jobs(term: str, horizon_us: float) -> None:
    """An idle GPU draws little, and a makespan ends at the horizon; what is left must be paid for."""
    tenants = {"inference": {"jobs": 8}, "training": {"jobs": 2}}
    env = GpuSchedulingEnv("InferenceBesideTraining", reward={term: 1.0}, tenants=tenants, horizon_us=horizon_us)
    fair, lazy = play(env, honest), play(env, idle)
    assert fair.terminated == (horizon_us == 400_000.0)
    if term == "energy":
        assert lazy.integral < 44.0 + 1e-9, "110 W"
        assert (lazy.integral < fair.integral) == (horizon_us == 30_000.0)
    elif horizon_us == 30_000.0:
        assert lazy.integral == fair.integral == 30.0
    assert lazy.cost > 1.2 * fair.cost


def test_what_is_left_is_charged_by_hand() -> None:
    """`Toy` at 500 us: batch takes 300 us alone, urgent 210 us; the idle GPU draws 10 W, the busy one 60 W."""
    reward = {"turnaround": 1.0, "slowdown": 1.0, "slo_miss": 1.0, "energy": 1.0, "makespan": 1.0, "lost_progress": 1.0}
    for device in ("compiled", "reference"):
        env = GpuSchedulingEnv("Toy", device=device, horizon_us=500.0, reward=reward)
        env.reset(seed=0)
        over = False
        while not over:
            _, _, _, over, info = env.step(0)
        terms = {name: -value for name, value in info["reward_terms"].items()}
        assert terms == pytest.approx(
            {
                "turnaround": (0.500 + 0.300) + 3 * (0.500 + 0.210),
                "slowdown": 800 / 300 + 3 * 710 / 210,
                "slo_miss": 3.0,
                "energy": (500 * 10 + 510 * 60) * 1e-6,
                "makespan": 0.500 + 0.510,
                "lost_progress": 0.0,
                "throttled": 0.0,
            }
        )
