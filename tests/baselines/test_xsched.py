"""XSched on instances worked out by hand: four SMs of one block, no latencies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpusched_env.baselines.xsched import XSched
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem
from tests.baselines.instances import SAVED_BYTES, launches, spans, started
from tests.devices.problems import K, problem


def test_at_the_threshold_launching_pauses_until_a_batch_has_finished(tmp_path: Path) -> None:
    later = {"ops": [K(1, 1.0)], "arrivals": started(500.0)}
    built = problem(tmp_path, {"ops": [K(4, 10.0)] * 10, "priority": 1}, later)
    assert launches(XSched(threshold=4), built, 0) == [0.0, 0.0, 0.0, 0.0, 20.0, 20.0, 40.0, 40.0, 60.0, 60.0]
    assert launches(XSched(threshold=4, batch=3), built, 0) == [0.0] * 4 + [30.0] * 3 + [60.0] * 3
    assert launches(XSched(threshold=1), built, 0) == [10.0 * i for i in range(10)]


def test_the_most_urgent_queues_have_a_threshold_of_their_own(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 10.0)] * 10}, {"ops": [K(1, 1.0)], "priority": 1})
    assert launches(XSched(threshold=2), built, 0) == [0.0] * 10
    assert launches(XSched(urgent_threshold=8), built, 0) == [0.0] * 8 + [40.0] * 2
    # The other queue is suspended until the last of them has finished.
    assert launches(XSched(threshold=2), built, 1) == [100.0]


def test_queues_have_as_many_levels_as_there_are_priorities(tmp_path: Path) -> None:
    tenants = [{"ops": [K(1, 10.0)], "priority": priority} for priority in (2, 1, 0)]
    assert spans(XSched(), problem(tmp_path, *tenants)) == [(0, 20.0, 30.0, 0), (1, 10.0, 20.0, 0), (2, 0.0, 10.0, 0)]


def test_a_request_waits_for_what_is_in_flight(tmp_path: Path) -> None:
    """Streams take turns at equal priority: every launched kernel gets between two kernels of the request."""
    background = {"ops": [K(4, 10.0)] * 6, "priority": 1}
    request = {"ops": [K(4, 10.0)] * 2, "arrivals": started(5.0)}
    built = problem(tmp_path, background, request)
    assert spans(XSched(threshold=4), built)[-2:] == [(1, 10.0, 20.0, 0), (1, 30.0, 40.0, 0)]
    assert spans(XSched(threshold=1), built)[-2:] == [(1, 10.0, 20.0, 0), (1, 20.0, 30.0, 0)]
    # At level 2 only the kernel that runs is in its way.
    assert spans(XSched(threshold=4, level=2), built)[-2:] == [(1, 10.0, 20.0, 0), (1, 20.0, 30.0, 0)]


def test_at_level_2_a_kernel_joins_the_queue_just_in_time(tmp_path: Path) -> None:
    """A launch takes 3 us: the second kernel is launched when the first, from 3 to 13 us, has 3 to go."""
    later = {"ops": [K(1, 1.0)], "arrivals": started(500.0)}
    gpu = {"timing": {"launch_latency_us": 3.0}}
    built = problem(tmp_path, {"ops": [K(4, 10.0)] * 3, "priority": 1}, later, gpu=gpu)
    assert launches(XSched(level=2), built, 0) == [0.0, 10.0, 20.0]
    assert launches(XSched(level=1), built, 0) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("interrupt", "ends_us"), [("save", 50.0), ("reset", 45.0)])
def test_level_3_interrupts_the_running_kernel(tmp_path: Path, interrupt: Any, ends_us: float) -> None:
    background = {"ops": [K(4, 10.0)] * 3, "priority": 1}
    request = {"ops": [K(4, 10.0)] * 2, "arrivals": started(5.0)}
    gpu = {"dram_bytes_per_us": 4 * SAVED_BYTES / 10.0, "timing": {"reset_us": 10.0}}
    built = problem(tmp_path, background, request, gpu=gpu)
    # Off the GPU at 15, the request runs until 35. A saved kernel is restored until 45 and has 5 us to go, a killed
    # one starts over; the kernels behind come after it.
    assert spans(XSched(threshold=3, level=3, interrupt=interrupt), built) == [
        (0, 0.0, ends_us, 1),
        (0, ends_us, ends_us + 10.0, 0),
        (0, ends_us + 10.0, ends_us + 20.0, 0),
        (1, 15.0, 25.0, 0),
        (1, 25.0, 35.0, 0),
    ]


def deadlines(folder: Path) -> Problem:
    """Due at 300 us, at 100 and never; kernels of one block, so that all could run side by side."""
    return problem(
        folder,
        {"ops": [K(1, 10.0)] * 2, "slo_us": 300.0},
        {"ops": [K(1, 10.0)] * 2, "slo_us": 100.0, "priority": 1},
        {"ops": [K(1, 10.0)], "priority": 0},
    )


def test_kedf_runs_the_queues_of_the_earliest_deadlines_whatever_their_priority(tmp_path: Path) -> None:
    first = [start for _, start, _, _ in spans(XSched("kedf"), deadlines(tmp_path))]
    assert first == [20.0, 30.0, 0.0, 10.0, 40.0]
    two = [start for _, start, _, _ in spans(XSched("kedf", k=2), deadlines(tmp_path))]
    assert two == [0.0, 10.0, 0.0, 10.0, 20.0]


def test_a_queue_without_laxity_left_goes_before_all_others(tmp_path: Path) -> None:
    """Of 100 us a job of 30 alone can wait for 70; then one urgent kernel is in flight, until 80."""
    lax = {"ops": [K(4, 10.0)] * 3, "priority": 1, "slo_us": 100.0}
    built = problem(tmp_path, lax, {"ops": [K(4, 20.0)] * 10})
    assert spans(XSched("lax", urgent_threshold=1), built)[:4] == [
        (0, 80.0, 90.0, 0),
        (0, 90.0, 100.0, 0),
        (0, 100.0, 110.0, 0),
        (1, 0.0, 20.0, 0),
    ]
    assert launches(XSched("lax", urgent_threshold=1), built, 1)[3:5] == [60.0, 110.0]
    assert launches(XSched("lax", urgent_threshold=1, margin=2.0), built, 0)[0] == 40.0
    assert launches(XSched("hpf", urgent_threshold=1), built, 0)[0] == 200.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0}, "threshold 0"),
        ({"level": 4}, "level 4"),
        ({"policy": "edf"}, "policy 'edf'"),
        ({"k": 0}, "k 0"),
        ({"margin": 0.0}, "margin 0.0"),
        ({"threshold": 4, "batch": 5}, "batch is 5"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"xsched: .*{message}"):
        XSched(**options)
