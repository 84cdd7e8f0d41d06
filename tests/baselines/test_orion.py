"""Orion on instances worked out by hand: four SMs of one block, no latencies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.baselines.orion import Orion, SmSearch, bound_by
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.view import View
from tests.baselines.instances import launches, spans, started
from tests.devices.problems import K, problem
from tests.envs.conftest import build_view
from tests.refusals import refused

COMPUTE, MEMORY, NEITHER = (0.8, 0.2), (0.2, 0.8), (0.2, 0.2)


def beside(folder: Path, best_effort: K, urgent: tuple[float, float], own: tuple[float, float]) -> Problem:
    """A best-effort kernel beside a request of two blocks and 100 us; profiles are (issue, DRAM) shares."""
    built = problem(folder, {"ops": [K(2, 100.0)]}, {"ops": [best_effort], "priority": 1})
    profiles = zip(built.kernels, (urgent, own), strict=True)
    return replace(built, kernels=tuple(replace(k, issue=issue, dram=dram) for k, (issue, dram) in profiles))


@pytest.mark.parametrize(
    ("urgent", "own", "start_us"),
    [
        (COMPUTE, MEMORY, 0.0),
        (MEMORY, COMPUTE, 0.0),
        (COMPUTE, COMPUTE, 100.0),
        (MEMORY, MEMORY, 100.0),
        (COMPUTE, NEITHER, 0.0),
        (NEITHER, MEMORY, 0.0),
        (NEITHER, NEITHER, 0.0),
    ],
)
def test_only_kernels_bound_by_another_resource_run_beside_a_request(
    tmp_path: Path, urgent: tuple[float, float], own: tuple[float, float], start_us: float
) -> None:
    assert spans(Orion(), beside(tmp_path, K(1, 10.0), urgent, own))[1][1] == start_us


@pytest.mark.parametrize(
    ("blocks", "threshold", "start_us"),
    [
        (3, 1.0, 0.0), (4, 1.0, 100.0), (2, 0.5, 100.0), (6, 1.5, 100.0), (6, 2.0, 0.0), (9, math.inf, 0.0),
    ],
)  # fmt: skip
def test_a_kernel_for_too_many_sms_waits(tmp_path: Path, blocks: int, threshold: float, start_us: float) -> None:
    """A kernel that needs fewer SMs than the threshold goes; of three blocks two fit, the third one follows."""
    built = beside(tmp_path, K(blocks, 10.0), COMPUTE, MEMORY)
    assert spans(Orion(sm_threshold=threshold), built)[1][1] == start_us


@pytest.mark.parametrize(("own", "start_us"), [(COMPUTE, 0.0), (MEMORY, 200.0)])
def test_the_urgent_kernel_launched_last_counts(tmp_path: Path, own: tuple[float, float], start_us: float) -> None:
    """At 0 a kernel bound by compute runs, and one bound by memory is launched behind it."""
    built = problem(tmp_path, {"ops": [K(2, 100.0), K(2, 100.0)]}, {"ops": [K(1, 10.0)], "priority": 1})
    profiles = zip(built.kernels, (COMPUTE, MEMORY, own), strict=True)
    built = replace(built, kernels=tuple(replace(k, issue=issue, dram=dram) for k, (issue, dram) in profiles))
    assert spans(Orion(), built)[2][1] == start_us


def test_a_gap_between_kernels_belongs_to_the_request(tmp_path: Path) -> None:
    """From 50 to 60 us the host prepares the request's second kernel; the class of the first one still counts."""
    request = {"ops": [K(2, 50.0), "sync", K(2, 50.0, host_us=10.0)]}
    built = problem(tmp_path, request, {"ops": [K(1, 5.0)], "priority": 1, "arrivals": started(52.0)})
    memory = tuple(replace(kernel, issue=0.2, dram=0.8) for kernel in built.kernels)
    assert spans(Orion(), replace(built, kernels=memory))[2] == (0, 60.0, 110.0, 0)
    assert spans(Orion(), replace(built, kernels=memory))[1] == (1, 110.0, 115.0, 0)


@pytest.mark.parametrize("options", [{"reference_us": None}, {"reference_us": 100.0}])
def test_work_in_flight_is_throttled(tmp_path: Path, options: dict[str, Any]) -> None:
    """The request takes 100 us alone: above 25 us in flight, all of it has to finish first."""
    request = {"ops": [K(1, 100.0)], "arrivals": started(500.0)}
    built = problem(tmp_path, {"ops": [K(1, 10.0)] * 6, "priority": 1}, request)
    orion = Orion(duration_threshold=0.25, **options)
    assert launches(orion, built, 0) == [0.0, 0.0, 0.0, 30.0, 30.0, 30.0]


def test_by_default_as_much_is_in_flight_as_in_the_artefact(tmp_path: Path) -> None:
    """160 us: with 170 in flight the next kernel waits until these have finished."""
    request = {"ops": [K(1, 100.0)], "arrivals": started(500.0)}
    built = problem(tmp_path, {"ops": [K(1, 10.0)] * 18, "priority": 1}, request)
    assert launches(Orion(), built, 0) == [0.0] * 17 + [170.0]


@pytest.mark.parametrize(("turns", "order"), [("round-robin", [1, 2, 1, 2]), ("priority", [1, 1, 2, 2])])
def test_best_effort_tenants_take_turns(tmp_path: Path, turns: Any, order: list[int]) -> None:
    """A kernel at a time is in flight, of two tenants; the first one is more urgent."""
    later = {"ops": [K(1, 1.0)], "arrivals": started(500.0)}
    best_effort = [{"ops": [K(4, 20.0)] * 2, "priority": priority} for priority in (1, 2)]
    built = problem(tmp_path, later, *best_effort)
    rows = spans(Orion(reference_us=400.0, turns=turns), built)
    assert [tenant for tenant, *_ in sorted(rows, key=lambda row: row[1])] == [*order, 0]


def sm_search(folder: Path, slowdown: float) -> tuple[SmSearch, Callable[[int, float], View]]:
    """A search beside a job of 100 us alone; the best-effort kernels need 3 and 8 SMs. And a view after jobs."""
    built = problem(folder, {"ops": [K(4, 100.0)]}, {"ops": [K(3, 10.0), K(8, 10.0)], "priority": 1})

    def after(jobs: int, took_us: float) -> View:
        rows = {"priority": 0, "jobs_done": jobs, "last_turnaround_us": took_us}, {"priority": 1}
        return build_view((), (), rows, time_us=0.0, sms=4, busy_sms=0, occupancy=0.0, dram=0.0)

    return SmSearch(built.knowledge, [True, False], slowdown), after


def test_the_threshold_is_searched_up_to_the_largest_best_effort_need(tmp_path: Path) -> None:
    """A step every ten jobs: each halves what is left of 0 to 8 SMs."""
    search, after = sm_search(tmp_path, 1.2)
    found = [search.threshold(after(jobs, 115.0)) for jobs in range(41)]
    assert found == [4] * 10 + [6] * 10 + [7] * 21
    search, after = sm_search(tmp_path, 1.2)
    found = [search.threshold(after(jobs, 125.0)) for jobs in range(41)]
    assert found == [4] * 10 + [2] * 10 + [1] * 10 + [0] * 11


def test_the_search_looks_at_the_mean_of_ten_jobs(tmp_path: Path) -> None:
    search, after = sm_search(tmp_path, 1.2)
    found = [search.threshold(after(jobs, 200.0 if jobs == 3 else 110.0)) for jobs in range(11)]
    # 9 x 110 and 200 us: 119 on average.
    assert found[-1] == 6


@pytest.mark.parametrize(("slowdown", "start_us"), [(0.5, 1150.0), (2.0, 1050.0)])
def test_what_is_tolerated_decides_on_best_effort_kernels(tmp_path: Path, slowdown: float, start_us: float) -> None:
    """Jobs of 100 us with pauses of 5, the tenth of which begins at 1045 us. The largest best-effort need is 3 SMs.

    So 1 SM may be needed before that, 2 or 0 after it: a kernel that needs 2 and comes at 1050 us, with a job, goes at
    once or in the next pause.
    """
    request = {"ops": [K(2, 100.0)], "jobs": 26, "arrivals": {"kind": "closed-loop", "think_us": 5.0}}
    best_effort = {"ops": [K(2, 10.0)], "priority": 1, "arrivals": started(1050.0)}
    widest = {"ops": [K(3, 10.0)], "priority": 1, "arrivals": started(1e5)}
    rows = spans(Orion(search_slowdown=slowdown), problem(tmp_path, request, best_effort, widest))
    assert next(start for tenant, start, *_ in rows if tenant == 1) == start_us


def test_classes() -> None:
    assert bound_by(0.7, 0.3, 0.6) == "compute"
    assert bound_by(0.3, 0.7, 0.6) == "memory"
    assert bound_by(0.65, 0.7, 0.6) == "memory"
    assert bound_by(0.59, 0.59, 0.6) == "neither"


@pytest.mark.parametrize(
    "options",
    [
        {"sm_threshold": 0.0},
        {"duration_threshold": 0.0},
        {"bound": 1.5},
        {"reference_us": 0.0},
        {"search_slowdown": 0.0},
        {"turns": "lottery"},
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with refused(InputError, "orion"):
        Orion(**options)
