"""XSched on instances worked out by hand: four SMs of one block, no latencies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpusched_env.baselines.xsched import XSched
from gpusched_env.errors import InputError
from tests.baselines.instances import SAVED_BYTES, launches, spans, started
from tests.devices.problems import K, problem


def test_at_the_threshold_launching_pauses_until_half_has_finished(tmp_path: Path) -> None:
    later = {"ops": [K(1, 1.0)], "arrivals": started(500.0)}
    built = problem(tmp_path, {"ops": [K(4, 10.0)] * 10, "priority": 1}, later)
    assert launches(XSched(threshold=4), built, 0) == [0.0, 0.0, 0.0, 0.0, 20.0, 20.0, 40.0, 40.0, 60.0, 60.0]
    assert launches(XSched(threshold=1), built, 0) == [10.0 * i for i in range(10)]


def test_the_most_urgent_queue_has_no_limit(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 10.0)] * 10}, {"ops": [K(1, 1.0)], "priority": 1})
    assert launches(XSched(threshold=2), built, 0) == [0.0] * 10
    # The other queue is suspended until the last of them has finished.
    assert launches(XSched(threshold=2), built, 1) == [100.0]


def test_a_request_waits_for_what_is_in_flight(tmp_path: Path) -> None:
    """Streams take turns at equal priority: every launched kernel gets between two kernels of the request."""
    background = {"ops": [K(4, 10.0)] * 6, "priority": 1}
    request = {"ops": [K(4, 10.0)] * 2, "arrivals": started(5.0)}
    built = problem(tmp_path, background, request)
    assert spans(XSched(threshold=4), built)[-2:] == [(1, 10.0, 20.0, 0), (1, 30.0, 40.0, 0)]
    assert spans(XSched(threshold=1), built)[-2:] == [(1, 10.0, 20.0, 0), (1, 20.0, 30.0, 0)]


def test_level_3_interrupts_the_running_kernel(tmp_path: Path) -> None:
    background = {"ops": [K(4, 10.0)] * 3, "priority": 1}
    request = {"ops": [K(4, 10.0)] * 2, "arrivals": started(5.0)}
    built = problem(tmp_path, background, request, gpu={"dram_bytes_per_us": 4 * SAVED_BYTES / 10.0})
    # Saved from 5 to 15, the request runs 15 to 35, restored until 45; the kernels behind come after it.
    assert spans(XSched(threshold=3, level=3), built) == [
        (0, 0.0, 50.0, 1),
        (0, 50.0, 60.0, 0),
        (0, 60.0, 70.0, 0),
        (1, 15.0, 25.0, 0),
        (1, 25.0, 35.0, 0),
    ]


@pytest.mark.parametrize("options", [{"threshold": 0}, {"level": 2}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="xsched: threshold"):
        XSched(**options)
