"""GPreempt on instances worked out by hand: four SMs of one block, no latencies."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusched_env.baselines.gpreempt import GPreempt
from gpusched_env.errors import InputError
from tests.baselines.instances import SAVED_BYTES, spans, started
from tests.devices.problems import K, problem
from tests.refusals import refused

GPU = {"dram_bytes_per_us": 4 * SAVED_BYTES / 10.0}
"""Four blocks are saved in 10 us."""


def test_best_effort_kernels_leave_for_a_request_and_go_on_after_it(tmp_path: Path) -> None:
    """Saved from 5 to 15 us; the request runs until 35. Read back until 45, there are 5 us to go."""
    request = {"ops": [K(4, 10.0)] * 2, "arrivals": started(5.0)}
    built = problem(tmp_path, {"ops": [K(4, 10.0)] * 2, "priority": 1}, request, gpu=GPU)
    assert spans(GPreempt(), built) == [(0, 0.0, 50.0, 1), (0, 50.0, 60.0, 0), (1, 15.0, 25.0, 0), (1, 25.0, 35.0, 0)]


@pytest.mark.parametrize(("hint", "starts_us"), [(True, 25.0), (False, 35.0)])
def test_the_switch_is_hidden_while_the_host_prepares(tmp_path: Path, hint: bool, starts_us: float) -> None:
    """The request comes at 5 us, its kernel at 25: saving takes 10 us from one or the other."""
    request = {"ops": [K(4, 10.0, host_us=20.0)], "arrivals": started(5.0)}
    built = problem(tmp_path, {"ops": [K(4, 100.0)], "priority": 1}, request, gpu=GPU)
    assert spans(GPreempt(hint=hint), built)[1][1] == starts_us


def test_a_middle_class_may_be_latency_critical(tmp_path: Path) -> None:
    middle = {"ops": [K(2, 20.0)], "priority": 1}
    built = problem(tmp_path, {"ops": [K(2, 50.0)]}, middle, {"ops": [K(4, 10.0)], "priority": 2}, gpu=GPU)
    assert [start for _, start, _, _ in spans(GPreempt(), built)][1] == 50.0
    assert [start for _, start, _, _ in spans(GPreempt(classes=2), built)] == [0.0, 0.0, 50.0]


def test_wrong_options_are_refused() -> None:
    with refused(InputError, "classes 0"):
        GPreempt(classes=0)
