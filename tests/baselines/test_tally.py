"""Tally on instances worked out by hand: four SMs of one block, no latencies."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusched_env.baselines.tally import Tally
from gpusched_env.errors import InputError
from tests.baselines.instances import launches, spans, started
from tests.devices.problems import K, problem

LATER = {"ops": [K(1, 1.0)], "arrivals": started(500.0)}


def test_a_kernel_longer_than_the_bound_is_drained_at_a_block_boundary(tmp_path: Path) -> None:
    background = {"ops": [K(8, 25.0)], "priority": 1}
    built = problem(tmp_path, background, {"ops": [K(4, 20.0)], "arrivals": started(10.0)})
    assert spans(Tally(), built) == [(0, 0.0, 70.0, 1), (1, 25.0, 45.0, 0)]
    # Within the bound a kernel runs as it is; its second wave is behind the urgent blocks all the same.
    assert spans(Tally(turnaround_us=50.0), built) == [(0, 0.0, 70.0, 0), (1, 25.0, 45.0, 0)]


def test_best_effort_kernels_wait_while_an_urgent_one_runs(tmp_path: Path) -> None:
    """Also where there is room: Tally shares time, not space. A gap between urgent kernels is theirs."""
    background = {"ops": [K(1, 5.0)], "priority": 1}
    request = {"ops": [K(1, 20.0), "sync", K(1, 20.0, host_us=30.0)]}
    assert (0, 20.0, 25.0, 0) in spans(Tally(), problem(tmp_path, background, request))


def test_kernels_in_flight_stay_within_the_bound_together(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 10.0)] * 6, "priority": 1}, LATER)
    assert launches(Tally(turnaround_us=30.0), built, 0) == [0.0, 0.0, 0.0, 10.0, 20.0, 30.0]
    assert launches(Tally(turnaround_us=5.0), built, 0) == [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]


def test_a_kernel_that_can_be_drained_counts_with_the_time_of_a_wave(tmp_path: Path) -> None:
    """Ten waves of 10 us each: three such kernels fit in a bound of 30 us."""
    built = problem(tmp_path, {"ops": [K(40, 10.0)] * 4, "priority": 1}, LATER)
    assert launches(Tally(turnaround_us=30.0), built, 0) == [0.0, 0.0, 0.0, 100.0]


def test_what_waits_behind_a_drained_kernel_does_not_keep_it_away(tmp_path: Path) -> None:
    background = {"ops": [K(8, 25.0), K(4, 20.0)], "priority": 1}
    built = problem(tmp_path, background, {"ops": [K(4, 20.0)], "arrivals": started(10.0)})
    assert spans(Tally(turnaround_us=45.0), built) == [(0, 0.0, 70.0, 1), (0, 70.0, 90.0, 0), (1, 25.0, 45.0, 0)]


def test_wrong_options_are_refused() -> None:
    with pytest.raises(InputError, match="turnaround_us is 0"):
        Tally(turnaround_us=0.0)
