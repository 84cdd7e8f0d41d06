"""Policies that let one queue run at a time, on instances worked out by hand: four SMs of one block, no latencies."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusched_env.baselines.cfs import CompletelyFair
from gpusched_env.baselines.las import LeastAttainedService
from gpusched_env.baselines.mlfq import MultiLevelFeedback
from gpusched_env.baselines.one_queue import OneQueue
from gpusched_env.baselines.xsched_partition import XSchedPartition
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem
from tests.baselines.instances import spans, started
from tests.devices.problems import K, problem
from tests.refusals import refused

KERNEL = K(4, 10.0)


def order(scheduler: OneQueue, built: Problem) -> list[int]:
    """Tenants in the order in which their kernels ran."""
    return [tenant for tenant, *_ in sorted(spans(scheduler, built), key=lambda row: row[1])]


def test_turns_are_as_long_as_weights_say(tmp_path: Path) -> None:
    """Slices of 27 and 9 us: from 0, 27, 36 and 63 us on. What was launched ends in the other's slice."""
    built = problem(tmp_path, {"ops": [KERNEL] * 6, "weight": 3.0}, {"ops": [KERNEL] * 2})
    assert order(XSchedPartition(slice_us=18.0, threshold=1), built) == [0, 0, 0, 1, 0, 0, 0, 1]


@pytest.mark.parametrize("idle_us", [0.0, 5.0])
def test_a_turn_ends_when_nothing_is_left_to_do_and_somebody_notices(tmp_path: Path, idle_us: float) -> None:
    built = problem(tmp_path, {"ops": [KERNEL]}, {"ops": [KERNEL]})
    starts_us = [row[1] for row in spans(XSchedPartition(slice_us=100.0, idle_us=idle_us), built)]
    assert starts_us == [0.0, 10.0 + idle_us]


def test_what_is_left_of_a_slice_is_kept_but_for_a_tenth(tmp_path: Path) -> None:
    scheduler = XSchedPartition(slice_us=100.0)
    spans(scheduler, problem(tmp_path, {"ops": [KERNEL]}, {"ops": [KERNEL]}))
    scheduler._saved_us[0] = 150.0
    assert scheduler._budget_us(0) == pytest.approx(100.0 + 100.0 + 0.9 * 50.0)


def test_under_cfs_whoever_ran_least_for_its_weight_runs(tmp_path: Path) -> None:
    """Virtual times after each kernel: 10 and 0, 5, 10; 20 and 15, 20; 30 and 25, 30."""
    built = problem(tmp_path, {"ops": [KERNEL] * 3}, {"ops": [KERNEL] * 6, "weight": 2.0})
    assert order(CompletelyFair(slice_us=10.0, threshold=1), built) == [0, 1, 1, 0, 1, 1, 0, 1, 1]


def test_under_cfs_who_is_new_has_no_arrears(tmp_path: Path) -> None:
    """At 35 us the first has 35: both go on from there, and take turns."""
    built = problem(tmp_path, {"ops": [KERNEL] * 6}, {"ops": [KERNEL] * 2, "arrivals": started(35.0)})
    assert order(CompletelyFair(slice_us=10.0, threshold=1), built) == [0, 0, 0, 0, 1, 0, 1, 0]


def test_under_las_a_job_that_comes_runs_at_once_and_then_as_long_as_others(tmp_path: Path) -> None:
    """The first has 25 us of service when the second comes, which runs until it has as much."""
    built = problem(tmp_path, {"ops": [KERNEL] * 6}, {"ops": [KERNEL] * 4, "arrivals": started(25.0)})
    assert order(LeastAttainedService(slice_us=10.0, threshold=1), built)[:6] == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(("levels", "starts_us"), [(1, 40.0), (2, 30.0)])
def test_under_mlfq_who_uses_up_its_slice_sinks(tmp_path: Path, levels: int, starts_us: float) -> None:
    """At 20 us the first has used its slice. What comes at 25 us goes before it, or, on one level, after a slice."""
    built = problem(tmp_path, {"ops": [KERNEL] * 6}, {"ops": [KERNEL], "arrivals": started(25.0)})
    ran = spans(MultiLevelFeedback(slice_us=20.0, levels=levels, threshold=1), built)
    assert [row[1] for row in ran if row[0] == 1] == [starts_us]


def test_slices_and_waits_are_lengths() -> None:
    with refused(InputError, "slice_us is 0", "above 0"):
        XSchedPartition(slice_us=0.0)
    with refused(InputError, "idle_us is -1", "at least 0"):
        XSchedPartition(idle_us=-1.0)
    with refused(InputError, "levels 0", "at least 1"):
        MultiLevelFeedback(levels=0)
