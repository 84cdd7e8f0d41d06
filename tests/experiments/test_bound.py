"""The cost with every tenant alone: solved by hand, below what schedulers reach, with the draws of the full episode."""

from __future__ import annotations

import pytest

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.devices import make_device
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.experiments.ranking.bound import AloneProblems, has_bound, only_tenant
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario, scenario_names


def passed_through(scenario: Scenario, seed: int) -> Episode:
    return run_episode(PassThrough(), build_problem(scenario), make_device("compiled"), seed)


@pytest.mark.parametrize("device", ["compiled", "reference"])
def test_toy(device: str) -> None:
    """Alone, batch takes 300 us and urgent, three times as important, 210 us (docs/toy.md)."""
    assert AloneProblems(load_scenario("Toy")).cost(device, 0) == pytest.approx(0.300 + 3 * 0.210)


def test_missed_objectives_count() -> None:
    scenario = load_scenario("Toy", reward={"slo_miss": 1.0}, tenants={"urgent": {"slo_us": 205.0}})
    assert AloneProblems(scenario).cost("compiled", 0) == 3.0


@pytest.mark.long
def test_arrivals_are_those_of_the_full_episode() -> None:
    scenario = load_scenario("MultiTenantBurst", horizon_us=30_000.0)
    full = passed_through(scenario, 3)
    assert (full.costs.arrived > 1).sum() == 5, "of eight tenants"
    for row in range(len(scenario.tenants)):
        alone = passed_through(only_tenant(scenario, row), 3)
        assert alone.costs.arrived[row] == full.costs.arrived[row]
        assert alone.costs.arrived.sum() == full.costs.arrived[row], "nobody else has a job"
        times = [
            set(episode.timeline.jobs.column("arrived_us")[episode.timeline.jobs.column("tenant") == row])
            for episode in (alone, full)
        ]
        assert times[1] <= times[0], "jobs that completed beside others arrived at the same times alone"
    assert AloneProblems(scenario).cost("compiled", 3) < episode_metrics(full).cost


def test_energy_and_makespan_belong_to_all_tenants_together() -> None:
    shared = [scenario for scenario in map(load_scenario, scenario_names()) if len(scenario.tenants) > 1]
    assert all(map(has_bound, shared))
    assert not has_bound(load_scenario("KernelGraph")), "its one tenant is alone anyway"
    assert not has_bound(load_scenario("Toy", reward={"turnaround": 1.0, "energy": 0.1}))
    assert not has_bound(load_scenario("Toy", reward={"makespan": 1.0}))
