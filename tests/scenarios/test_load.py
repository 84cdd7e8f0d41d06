"""Scenarios whose jobs come faster or slower."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scenarios.variants import faster_arrivals, with_load
from gpusched_env.workload.tenant import ArrivalProcess, Trace
from gpusched_env.workload.trace_replay import replay_of


@pytest.mark.parametrize(
    ("arrivals", "twice"),
    [
        ({"kind": "poisson", "rate_per_s": 5.0}, {"rate_per_s": 10.0}),
        ({"kind": "bursts", "rate_per_s": 5.0, "mean_size": 3.0}, {"rate_per_s": 10.0}),
        (
            {"kind": "regimes", "rate_per_s": 0.0, "busy_rate_per_s": 7.0, "calm_us": 2.0, "busy_us": 1.0},
            {"busy_rate_per_s": 14.0},
        ),
        ({"kind": "periodic", "period_us": 90.0, "start_us": 3.0}, {"period_us": 45.0}),
        ({"kind": "closed-loop", "think_us": 40.0}, {"think_us": 20.0}),
        ({"kind": "backlog", "start_us": 7.0}, {}),
        ({"kind": "trace", "times_us": [1.0, 3.0], "mean_rate_per_s": 5.0}, {"speed": 2.0}),
    ],
)
def test_twice_the_rate_is_half_the_gap(arrivals: dict[str, Any], twice: dict[str, Any]) -> None:
    process: ArrivalProcess = msgspec.convert(arrivals, ArrivalProcess)
    assert msgspec.to_builtins(faster_arrivals(process, 2.0)) == msgspec.to_builtins(process) | twice


def test_a_trace_is_played_twice_as_fast() -> None:
    trace = Trace(times_us=(1.0, 3.0), mean_rate_per_s=5.0)
    assert replay_of(faster_arrivals(trace, 2.0)).jobs_a_us == pytest.approx(10e-6)


def test_a_problem_has_the_load_in_its_arrivals() -> None:
    scenario = load_scenario("ServingPoisson", load=1.5)
    given = [tenant.arrivals for tenant in load_scenario("ServingPoisson").tenants]
    arrivals = [program.tenant.arrivals for program in build_problem(scenario).programs]
    assert arrivals == [faster_arrivals(process, 1.5) for process in given]
    assert with_load(with_load(scenario)) == with_load(scenario)
