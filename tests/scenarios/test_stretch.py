"""Scenarios in slow motion: whatever tenants do takes longer, in proportion."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from gpusched_env.devices import make_device
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.names import new_scheduler
from gpusched_env.scenarios.adapting import in_real_time
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused

ARRIVALS: list[dict[str, Any]] = [
    {"kind": "closed-loop", "think_us": 40.0, "start_us": 5.0},
    {"kind": "periodic", "period_us": 90.0},
    {"kind": "bursts", "rate_per_s": 9000.0, "mean_size": 2.0},
    {"kind": "trace", "times_us": [5.0, 40.0, 41.0, 90.0], "at_end": "repeats", "window": "drawn"},
]


def played(problem: Problem) -> Episode:
    return run_episode(new_scheduler("priority-streams"), problem, make_device("compiled"), 3, record="kernels")


@pytest.mark.parametrize("arrivals", ARRIVALS)
@pytest.mark.parametrize("variation", [False, True])
def test_with_a_gpu_that_takes_no_time_of_its_own_all_takes_so_many_times_as_long(
    arrivals: dict[str, Any], variation: bool
) -> None:
    scenario = load_scenario("Toy", variation=variation)
    tenants = tuple(msgspec.convert(msgspec.to_builtins(t) | {"arrivals": arrivals}, type(t)) for t in scenario.tenants)
    scenario = msgspec.structs.replace(scenario, tenants=tenants)
    one, eight = (
        played(in_real_time(build_problem(msgspec.structs.replace(scenario, stretch=factor)))) for factor in (1.0, 8.0)
    )
    assert len(one.timeline.jobs) > 0
    for table in ("jobs", "kernels"):
        ours, theirs = (getattr(episode.timeline, table) for episode in (one, eight))
        assert len(ours) == len(theirs), table
        for name, found in theirs.dict().items():
            # Times of each event are rounded to picoseconds.
            factor = 8.0 if name.endswith("_us") else 1.0
            np.testing.assert_allclose(found, factor * ours.dict()[name], rtol=1e-6, atol=1e-3, err_msg=name)
    assert eight.end_us == pytest.approx(8.0 * one.end_us, rel=1e-6)
    # The cost of Toy is a sum of turnarounds.
    assert eight.metrics.cost == pytest.approx(8.0 * one.metrics.cost, rel=1e-6)


def test_traffic_and_copies_grow_with_the_time_and_shapes_stay() -> None:
    one, eight = (build_problem(load_scenario("InferenceBesideTraining", stretch=factor)) for factor in (1.0, 8.0))
    for short, long in zip(one.kernels, eight.kernels, strict=True):
        assert long.duration_us == pytest.approx(8.0 * short.duration_us)
        assert long.block["dram_bytes"] == pytest.approx(8.0 * short.block["dram_bytes"])
        assert (long.kernel.grid, long.footprint) == (short.kernel.grid, short.footprint)
    jobs = [problem.programs[1].variants[0] for problem in (one, eight)]
    assert [op.bytes for op in jobs[1]] == [8 * op.bytes for op in jobs[0]]
    assert eight.scenario.tenants[0].slo_us == 8.0 * one.scenario.tenants[0].slo_us
    assert eight.programs[0].alone_us == pytest.approx(8.0 * one.programs[0].alone_us, rel=1e-3)


def test_a_problem_is_not_stretched_again() -> None:
    problem = build_problem(load_scenario("Toy", stretch=3.0))
    assert problem.scenario.stretch == 1.0
    assert build_problem(problem.scenario).scenario.horizon_us == problem.scenario.horizon_us


def test_nothing_can_be_quicker() -> None:
    with refused(InputError, "stretch"):
        load_scenario("Toy", stretch=0.5)
