"""The shipped scenarios: they build, are balanced as their comments say, and every baseline finishes them."""

from __future__ import annotations

from typing import get_args

import pytest

from gpusched_env.baselines.registry import make_scheduler, scheduler_names
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario, override, scenario_names
from gpusched_env.scenarios.variants import scenario_variants
from gpusched_env.scenarios.workload_sets import SetName
from gpusched_env.scheduling.reward import cost_terms, total_cost
from gpusched_env.workload.tenant import Poisson
from tests.baselines.instances import quick
from tests.sampling import sampled_pairs

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
        if name.startswith(("Serving", "MultiTenantSaturated", "SharedMemory")):
            assert program.tenant.jobs is None
            assert program.tenant.slo_us is not None or problem.scenario.reward.lost_progress > 0.0
            continue
        assert program.tenant.jobs is not None
        assert program.tenant.jobs * program.alone_us < problem.scenario.horizon_us / 2


@pytest.mark.parametrize("name", RECORDED)
def test_objectives_are_within_reach(name: str) -> None:
    for program in build_problem(load_scenario(name)).programs:
        slo = program.tenant.slo_us
        # Nothing but its neighbours on the CPU delays a real-time program.
        assert slo is None or slo > (1.1 if name == "SharedMemory" else 1.5) * program.answer_us


@pytest.mark.parametrize("name", [name for name in RECORDED if "Beside" in name and "Poisson" not in name])
def test_both_tenants_of_a_pair_count_the_same(name: str) -> None:
    assert [t.weight * (t.jobs or 0) for t in load_scenario(name).tenants] == [20.0, 20.0]


def test_the_burst_has_eight_tenants_in_three_classes_that_count_about_the_same() -> None:
    tenants = load_scenario("MultiTenantBurst").tenants
    assert [t.priority for t in tenants] == [0, 0, 1, 1, 1, 2, 2, 2]
    assert all(t.arrivals.__struct_config__.tag == "bursts" for t in tenants)
    assert all(29.0 < t.weight * (t.jobs or 0) < 31.0 for t in tenants)


@pytest.mark.parametrize("which", get_args(SetName))
def test_best_effort_work_on_the_saturated_gpu_is_worth_a_tenth_of_the_requests(which: SetName) -> None:
    """Of every variant, half from each tenant; the service is asked for 40 % of what it could serve."""
    for variant in scenario_variants(load_scenario("MultiTenantSaturated"), which):
        service, *others = build_problem(variant).programs
        assert isinstance(service.tenant.arrivals, Poisson)
        rate_per_us = service.tenant.arrivals.rate_per_s * 1e-6
        assert rate_per_us * service.alone_us == pytest.approx(0.4, rel=0.01)
        requests = variant.horizon_us * rate_per_us * service.tenant.weight
        steps = [variant.horizon_us / program.alone_us * program.tenant.weight for program in others]
        assert steps == pytest.approx([0.05 * requests] * 2, rel=0.03)


def test_systems_for_two_classes_protect_the_service_where_pass_through_does_not() -> None:
    """What Orion, REEF and Tally publish, on a GPU that others fill: the tail stays near that alone, and some progress
    is made."""
    short = {"horizon_us": 60_000.0}
    unprotected = run("MultiTenantSaturated", "pass-through", **short).metrics
    for name in ("orion", "reef", "tally"):
        metrics = run("MultiTenantSaturated", name, **short).metrics
        assert metrics.cost < 0.5 * unprotected.cost
        assert metrics.tenants[0].slo_attainment > 0.9
        assert metrics.best_effort > 0.1


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
@pytest.mark.parametrize(
    ("scheduler", "scenario"), sampled_pairs(list(map(quick, scheduler_names(windowed=False))), KINDS)
)
def test_every_baseline_finishes_before_the_horizon(scenario: str, scheduler: str) -> None:
    assert run(scenario, scheduler).done
