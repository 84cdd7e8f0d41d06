"""The shipped scenarios: they build, are balanced as their comments say, and every baseline finishes them."""

from __future__ import annotations

import pytest

from gpusched_env.baselines.registry import make_scheduler, scheduler_names
from gpusched_env.devices import make_device
from gpusched_env.scenarios.problem import build_problem
from gpusched_env.scenarios.scenario import load_scenario, override, scenario_names
from gpusched_env.scheduling.reward import cost_terms, total_cost
from gpusched_env.scheduling.session import Episode, run_episode
from tests.baselines.instances import quick

RECORDED = sorted({*scenario_names()} - {"Toy"})
KINDS = ["InferenceBesideTraining", "InferenceBesideTrainingPoisson", "ThreeTenants", "MultiTenantBurst"]
"""One of each kind: the other pairs of networks are like the first."""


def run(scenario: str, scheduler: str, **changes: object) -> Episode:
    problem = build_problem(override(load_scenario(scenario), **changes))
    return run_episode(make_scheduler(scheduler), problem, make_device("compiled"), 0)


def cost(episode: Episode) -> float:
    return total_cost(episode.problem, cost_terms(episode.problem, episode.costs))


def test_names() -> None:
    pairs = {f"InferenceBesideTraining{name}" for name in ("Bert", "Detection", "Gpt2", "MobileNet", "Vgg", "Vit")}
    assert {*KINDS, *pairs, "Toy"} <= set(scenario_names())


@pytest.mark.parametrize("name", [*RECORDED, "Toy"])
def test_scenarios_build_and_every_tenant_is_finite_or_billed_until_the_horizon(name: str) -> None:
    """Otherwise an episode would end only at the horizon, or tenants without end would weigh nothing."""
    problem = build_problem(load_scenario(name))
    assert problem.scenario.name == name
    for program in problem.programs:
        if name.startswith("Serving"):
            assert program.tenant.jobs is None
            assert program.tenant.slo_us is not None or problem.scenario.reward.lost_progress > 0.0
            continue
        assert program.tenant.jobs is not None
        assert program.tenant.jobs * program.alone_us < problem.scenario.horizon_us / 2


@pytest.mark.parametrize("name", RECORDED)
def test_objectives_are_within_reach(name: str) -> None:
    for program in build_problem(load_scenario(name)).programs:
        slo = program.tenant.slo_us
        assert slo is None or slo > 1.5 * program.alone_us


@pytest.mark.parametrize("name", [name for name in RECORDED if "Beside" in name and "Poisson" not in name])
def test_both_tenants_of_a_pair_count_the_same(name: str) -> None:
    assert [t.weight * (t.jobs or 0) for t in load_scenario(name).tenants] == [20.0, 20.0]


def test_the_burst_has_eight_tenants_in_three_classes_that_count_about_the_same() -> None:
    tenants = load_scenario("MultiTenantBurst").tenants
    assert [t.priority for t in tenants] == [0, 0, 1, 1, 1, 2, 2, 2]
    assert all(t.arrivals.__struct_config__.tag == "bursts" for t in tenants)
    assert all(29.0 < t.weight * (t.jobs or 0) < 31.0 for t in tenants)


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


def test_filling_gaps_costs_less_than_leaving_them() -> None:
    """FIKIT in the situation that it was made for."""
    assert cost(run("PriorityFill", "fikit")) < 0.9 * cost(run("PriorityFill", "exclusive"))


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", [quick(name) for name in scheduler_names(windowed=False)])
@pytest.mark.parametrize("scenario", KINDS)
def test_every_baseline_finishes_before_the_horizon(scenario: str, scheduler: str) -> None:
    assert run(scenario, scheduler).done
