"""The reference device keeps pace with SimPy, and does not pay for the size of a grid."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from gpusched_env.experiments.benchmarks.reference_speed import compare, kernel_cost_us, record_episode, replay
from gpusched_env.scenarios.problem import build_problem
from gpusched_env.scenarios.scenario import load_scenario

LEAST_RATIO = 0.1
"""Events a second over bare SimPy's: a guard against regressions, with a margin for busy machines."""


@pytest.mark.benchmark(group="reference device")
def test_the_device_processes_events_at_a_fair_share_of_bare_simpy(benchmark: BenchmarkFixture) -> None:
    problem = build_problem(load_scenario("InferenceBesideTraining", horizon_us=60_000))
    episode = record_episode(problem)
    run = benchmark.pedantic(replay, args=(episode,), rounds=3, warmup_rounds=1)
    compared = compare(episode, rounds=3)
    benchmark.extra_info.update(ratio=compared.ratio, events=run.events, kernels=episode.kernels)
    assert compared.ratio > LEAST_RATIO


def test_a_replay_does_what_the_recording_did() -> None:
    episode = record_episode(build_problem(load_scenario("Toy")))
    assert episode.kernels == 4
    assert replay(episode).events == replay(episode).events > 4 * 3


@pytest.mark.benchmark(group="reference device")
def test_a_kernel_costs_the_same_however_large_its_grid(benchmark: BenchmarkFixture) -> None:
    kernel_cost_us(10**4, 5)
    small, large = kernel_cost_us(10**4, 50), benchmark.pedantic(kernel_cost_us, args=(10**6, 50))
    benchmark.extra_info["ratio"] = large / small
    assert large < 2.0 * small
