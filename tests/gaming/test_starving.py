"""Serving some tenants only: it costs more than serving all, whatever their arrivals, objectives and horizons."""

from __future__ import annotations

import pytest

from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.scenarios.scenario import load_scenario
from tests.gaming.policies import fewer_jobs, honest, idle_from, play, starving

SHIPPED = ("InferenceBesideTraining", "PriorityFill", "ThreeTenants", "Toy")


@pytest.mark.parametrize(
    ("scenario", "slot", "name"),
    [(name, slot, tenant.name) for name in SHIPPED for slot, tenant in enumerate(load_scenario(name).tenants)],
)
def test_any_tenant_of_the_shipped_scenarios(scenario: str, slot: int, name: str) -> None:
    """Closed loops with and without think times, Poisson arrivals, bursts and backlogs."""
    env = GpuSchedulingEnv(scenario, tenants=fewer_jobs(scenario, 5))
    for seed in range(2):
        fair, unfair = play(env, honest, seed), play(env, starving(slot), seed)
        assert fair.terminated
        assert not unfair.terminated
        assert unfair.cost > 1.5 * fair.cost
        assert unfair.figures[f"{name}/completed"] == 0
        assert unfair.figures[f"{name}/unfinished"] >= 1
        assert "antt" not in unfair.figures, "without a completed job there is no mean slowdown to look good"


def test_finishing_the_cheap_jobs_and_never_the_expensive_ones() -> None:
    env = GpuSchedulingEnv("MultiTenantBurst", tenants=fewer_jobs("MultiTenantBurst", 10))
    alone_us = [program.alone_us for program in env.problem.programs]
    dear = sorted(range(8), key=alone_us.__getitem__)[4:]
    fair, cheap = play(env, honest), play(env, starving(*dear))
    assert cheap.figures["ranking/slowdown"] < 1.05 * fair.figures["ranking/slowdown"], "the cheap ones fare well"
    assert cheap.cost > 10 * fair.cost


@pytest.mark.parametrize("jobs", [5, None], ids=["five steps", "endless"])
def test_a_closed_loop_that_cannot_finish_before_the_horizon(jobs: int | None) -> None:
    """One step of the training is always in the system: what it costs until the horizon hangs on nothing.

    Without the charge for what is left, never serving it would be cheapest.
    """
    env = GpuSchedulingEnv(
        "InferenceBesideTraining",
        horizon_us=60_000.0,
        tenants={"inference": {"jobs": jobs}, "training": {"jobs": jobs}},
    )
    fair, unfair = play(env, honest), play(env, starving(1))
    assert not fair.terminated
    assert unfair.integral < fair.integral
    assert unfair.cost > 1.05 * fair.cost


MISSES = {
    "reward": {"slo_miss": 1.0},
    "tenants": {"inference": {"jobs": 8, "slo_us": 2000.0}, "training": {"jobs": 2}},
}


def test_a_closed_loop_whose_misses_are_counted() -> None:
    """A request that is never answered misses its objective once, and no other follows it."""
    env = GpuSchedulingEnv("InferenceBesideTraining", horizon_us=150_000.0, **MISSES)
    fair, unfair = play(env, honest), play(env, starving(0))
    assert unfair.integral == 1.0 < fair.integral < 8.0
    assert unfair.cost == 8.0, "every request that was to come"


def test_putting_off_the_answer_beyond_the_horizon_so_that_no_request_follows() -> None:
    env = GpuSchedulingEnv("InferenceBesideTraining", horizon_us=150_000.0, **MISSES)
    fair, late = play(env, honest), play(env, idle_from(5_000.0))
    assert late.integral < fair.integral
    assert late.cost > 1.5 * fair.cost


def test_an_endless_tenant_starved_to_end_the_episode_early() -> None:
    """The episode is over with the training's only step; what arrived until then is not forgotten."""
    env = GpuSchedulingEnv(
        "InferenceBesideTrainingPoisson", tenants={"inference": {"jobs": None}, "training": {"jobs": 1}}
    )
    fair, unfair = play(env, honest), play(env, starving(0))
    assert fair.terminated
    assert unfair.terminated
    assert unfair.figures["end_us"] < fair.figures["end_us"]
    left = unfair.figures["inference/unfinished"]
    assert unfair.cost == pytest.approx(unfair.integral + left), "a slowdown of 1 for each request left"
    assert unfair.cost > 1.5 * fair.cost
