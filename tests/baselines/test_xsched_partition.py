"""XSched's partition of time on instances worked out by hand: four SMs of one block, no latencies."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusched_env.baselines.xsched_partition import XSchedPartition
from gpusched_env.errors import InputError
from tests.baselines.instances import spans
from tests.devices.problems import K, problem
from tests.refusals import refused

KERNEL = K(4, 10.0)


def test_turns_are_as_long_as_weights_say(tmp_path: Path) -> None:
    """Slices of 27 and 9 us: from 0, 27, 36 and 63 us on. What was launched ends in the other's slice."""
    built = problem(tmp_path, {"ops": [KERNEL] * 6, "weight": 3.0}, {"ops": [KERNEL] * 2})
    ran = spans(XSchedPartition(slice_us=18.0, threshold=1), built)
    assert [tenant for tenant, *_ in sorted(ran, key=lambda row: row[1])] == [0, 0, 0, 1, 0, 0, 0, 1]


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


def test_slices_and_waits_are_lengths() -> None:
    with refused(InputError, "slice_us 0", "above 0"):
        XSchedPartition(slice_us=0.0)
