"""The shipped scenarios: they build, are balanced as their comments say, and every baseline finishes them."""

from __future__ import annotations

import pytest

from gpusched_env.baselines.registry import make_scheduler, scheduler_names
from gpusched_env.devices import make_device
from gpusched_env.scenarios.problem import build_problem
from gpusched_env.scenarios.scenario import load_scenario, override, scenario_names
from gpusched_env.scheduling.reward import cost_terms, total_cost
from gpusched_env.scheduling.session import Episode, run_episode

RECORDED = ["InferenceBesideTraining", "InferenceBesideTrainingPoisson", "ThreeTenants"]


def run(scenario: str, scheduler: str, **changes: object) -> Episode:
    problem = build_problem(override(load_scenario(scenario), **changes))
    return run_episode(make_scheduler(scheduler), problem, make_device("reference"), 0)


def cost(episode: Episode) -> float:
    return total_cost(episode.problem, cost_terms(episode.problem, episode.costs))


def test_names() -> None:
    assert {*RECORDED, "Toy"} <= set(scenario_names())


@pytest.mark.parametrize("name", [*RECORDED, "Toy"])
def test_scenarios_build_and_every_tenant_is_finite(name: str) -> None:
    """Otherwise an episode would end only at the horizon, or tenants without end would weigh nothing."""
    problem = build_problem(load_scenario(name))
    assert problem.scenario.name == name
    for program in problem.programs:
        assert program.tenant.jobs is not None
        assert program.tenant.jobs * program.alone_us < problem.scenario.horizon_us / 2


@pytest.mark.parametrize("name", RECORDED)
def test_objectives_are_within_reach(name: str) -> None:
    for program in build_problem(load_scenario(name)).programs:
        slo = program.tenant.slo_us
        assert slo is None or slo > 1.5 * program.alone_us


def test_both_tenants_of_the_default_scenario_count_the_same() -> None:
    assert [t.weight * (t.jobs or 0) for t in load_scenario("InferenceBesideTraining").tenants] == [20.0, 20.0]


def test_interference_costs_and_priorities_help() -> None:
    """A shortened default scenario tells schedulers apart, in the order of the literature."""
    short = {"tenants": {"inference": {"jobs": 6}, "training": {"jobs": 1}}}
    costs = {
        name: cost(run("InferenceBesideTraining", name, **short))
        for name in ("pass-through", "priority-streams", "fifo")
    }
    without_interference = 6.0 + 4.0
    assert without_interference < costs["priority-streams"] < 0.95 * costs["pass-through"]
    assert costs["pass-through"] < 0.95 * costs["fifo"]


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", scheduler_names())
@pytest.mark.parametrize("scenario", RECORDED)
def test_every_baseline_finishes_before_the_horizon(scenario: str, scheduler: str) -> None:
    assert run(scenario, scheduler).done
