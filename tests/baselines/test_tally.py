"""Tally on instances worked out by hand: four SMs of one block, no latencies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpusched_env.baselines.tally import Tally
from gpusched_env.errors import InputError
from tests.baselines.instances import launches, spans, started
from tests.devices.problems import K, problem

LATER = {"ops": [K(1, 1.0)], "arrivals": started(5000.0)}


def test_a_kernel_whose_blocks_stay_stops_between_two_of_them_and_pays_for_that_beforehand(tmp_path: Path) -> None:
    """Its two rounds would take 50 us and take 62.5, so it starts 12.5 late; it goes on 100 us after the request."""
    background = {"ops": [K(8, 25.0)], "priority": 1}
    built = problem(tmp_path, background, {"ops": [K(4, 20.0)], "arrivals": started(20.0)})
    assert spans(Tally(turnaround_us=20.0), built) == [(0, 12.5, 182.5, 1), (1, 37.5, 57.5, 0)]
    # Without the wait and the cost it goes on at once.
    assert spans(Tally(idle_us=0.0, overhead=0.0), built) == [(0, 0.0, 70.0, 1), (1, 25.0, 45.0, 0)]


def test_a_kernel_that_would_give_way_too_late_runs_as_it_is(tmp_path: Path) -> None:
    """Half a round of 25 us, slower by a quarter, is 15.6 us, and a slice 25."""
    background = {"ops": [K(8, 25.0)], "priority": 1}
    built = problem(tmp_path, background, {"ops": [K(4, 20.0)], "arrivals": started(20.0)})
    assert spans(Tally(turnaround_us=15.6), built) == [(0, 0.0, 50.0, 0), (1, 50.0, 70.0, 0)]


@pytest.mark.parametrize(
    ("launch_us", "expected"),
    [
        # In slices it is as fast as by itself: drained after every round.
        (0.0, [(0, 0.0, 90.0, 2)]),
        # Three slices take 92 us, a speed of 0.98: no form has 1, slices are the first to have 0.9.
        (1.0, [(0, 1.0, 93.0, 2)]),
        # 102 us, a speed of 0.88: at 0.8 blocks that stay come first. They pay 22.5 us.
        (6.0, [(0, 28.5, 118.5, 0)]),
    ],
)
def test_slices_pay_their_launches(tmp_path: Path, launch_us: float, expected: list[Any]) -> None:
    gpu = {"timing": {"launch_latency_us": launch_us}}
    built = problem(tmp_path, {"ops": [K(12, 30.0)], "priority": 1}, LATER, gpu=gpu)
    assert spans(Tally(), built)[:1] == expected


def test_best_effort_kernels_wait_until_urgent_ones_have_paused(tmp_path: Path) -> None:
    """Also where there is room: Tally shares time, not space. A short gap between urgent kernels is theirs."""
    background = {"ops": [K(1, 5.0)], "priority": 1}
    request = {"ops": [K(1, 20.0), "sync", K(1, 20.0, host_us=30.0)]}
    built = problem(tmp_path, background, request)
    assert (0, 170.0, 175.0, 0) in spans(Tally(), built)
    assert (0, 45.0, 50.0, 0) in spans(Tally(idle_us=25.0), built)


def test_one_best_effort_kernel_in_total_is_in_flight(tmp_path: Path) -> None:
    best_effort = {"ops": [K(1, 10.0)] * 2, "priority": 1}
    built = problem(tmp_path, best_effort, best_effort, LATER)
    assert sorted(launches(Tally(), built, 0) + launches(Tally(), built, 1)) == [0.0, 10.0, 20.0, 30.0]
    assert launches(Tally(in_flight=3), built, 0) == [0.0, 0.0]
    assert launches(Tally(in_flight=3), built, 1) == [0.0, 10.0]


def test_what_waits_behind_a_stopped_kernel_does_not_keep_it_away(tmp_path: Path) -> None:
    background = {"ops": [K(8, 25.0), K(4, 20.0)], "priority": 1}
    built = problem(tmp_path, background, {"ops": [K(4, 20.0)], "arrivals": started(10.0)})
    tally = Tally(idle_us=0.0, overhead=0.0, in_flight=2)
    assert spans(tally, built) == [(0, 0.0, 70.0, 1), (0, 70.0, 90.0, 0), (1, 25.0, 45.0, 0)]


def test_best_effort_tenants_have_levels(tmp_path: Path) -> None:
    """The kernel of the middle level stops the one below at 25 us, which goes on when it has ended."""
    low, middle = {"ops": [K(8, 25.0)], "priority": 2}, {"ops": [K(4, 20.0)], "priority": 1, "arrivals": started(20.0)}
    built = problem(tmp_path, low, middle, LATER)
    assert spans(Tally(overhead=0.0), built)[:2] == [(0, 0.0, 70.0, 1), (1, 25.0, 45.0, 0)]


def test_after_a_long_pause_kernels_run_as_they_are(tmp_path: Path) -> None:
    background = {"ops": [K(8, 10.0)], "priority": 1, "arrivals": started(300.0)}
    built = problem(tmp_path, {"ops": [K(4, 50.0)]}, background)
    assert (1, 305.0, 325.0, 0) in spans(Tally(), built)
    assert (1, 300.0, 320.0, 0) in spans(Tally(original_after_us=250.0), built)


def test_what_a_kernel_has_paid_of_its_slowness_counts_after_a_request(tmp_path: Path) -> None:
    """12.5 us are due: 5 are paid when a request comes, and 7.5 after its pause."""
    background = {"ops": [K(8, 25.0)], "priority": 1}
    built = problem(tmp_path, background, {"ops": [K(4, 20.0)], "arrivals": started(5.0)})
    assert spans(Tally(turnaround_us=20.0), built) == [(0, 132.5, 182.5, 0), (1, 5.0, 25.0, 0)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"turnaround_us": 0.0}, "turnaround_us is 0"),
        ({"idle_us": -1.0}, "idle_us -1.0"),
        ({"in_flight": 0}, "in_flight is 0"),
        ({"overhead": -0.1}, "overhead -0.1"),
        ({"min_speed": 0.0}, "min_speed 0.0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Tally(**options)
