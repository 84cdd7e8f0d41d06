"""Preemptive-resume priority on instances worked out by hand: four SMs of one block, saving four blocks takes 10 us."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.baselines.preemptive_priority import PreemptivePriority
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem
from tests.baselines.instances import SAVED_BYTES, launches, spans, started
from tests.devices.problems import K, problem

GPU: dict[str, Any] = {"dram_bytes_per_us": 4 * SAVED_BYTES / 10.0, "timing": {"reset_us": 10.0}}


def instance(folder: Path, training: list[K], *request: K | str) -> Problem:
    """Best-effort work at 0, a request at 30 us."""
    background = {"ops": training, "priority": 1}
    return problem(folder, background, {"ops": [*request], "arrivals": started(30.0)}, gpu=GPU)


def test_an_urgent_kernel_saves_the_running_one_which_goes_on_after_it(tmp_path: Path) -> None:
    built = instance(tmp_path, [K(4, 100.0)], K(4, 20.0))
    # Saved from 30 to 40, the request runs 40 to 60, restored meanwhile, 70 us of work are left.
    assert spans(PreemptivePriority(), built) == [(0, 0.0, 130.0, 1), (1, 40.0, 60.0, 0)]


def test_saved_blocks_come_back_into_the_room_that_the_urgent_kernel_leaves(tmp_path: Path) -> None:
    built = instance(tmp_path, [K(4, 100.0)], K(3, 60.0))
    # Restored at 50 beside the request, which has three SMs until 100: one block until then, three more at 100.
    assert spans(PreemptivePriority(), built) == [(0, 0.0, 170.0, 1), (1, 40.0, 100.0, 0)]


def test_nothing_is_preempted_while_idle_sms_suffice(tmp_path: Path) -> None:
    built = instance(tmp_path, [K(2, 100.0)], K(2, 20.0))
    assert spans(PreemptivePriority(), built) == [(0, 0.0, 100.0, 0), (1, 30.0, 50.0, 0)]


def test_modes_differ_in_what_they_cost_whom(tmp_path: Path) -> None:
    built = instance(tmp_path, [K(8, 50.0)], K(4, 20.0))
    # Reset: killed until 40, started over at 60. Drain: the first wave ends at 50, the second one runs at 70.
    assert spans(PreemptivePriority("reset"), built) == [(0, 0.0, 160.0, 1), (1, 40.0, 60.0, 0)]
    assert spans(PreemptivePriority("drain"), built) == [(0, 0.0, 120.0, 1), (1, 50.0, 70.0, 0)]


def test_a_kernel_that_cannot_be_reset_is_drained(tmp_path: Path) -> None:
    built = instance(tmp_path, [K(8, 50.0, idempotent=False)], K(4, 20.0))
    assert spans(PreemptivePriority("reset"), built) == [(0, 0.0, 120.0, 1), (1, 50.0, 70.0, 0)]


def test_keeping_room_open_between_close_kernels_spares_a_second_save(tmp_path: Path) -> None:
    """The request's second kernel comes 15 us after the end of the first, at 75 us."""
    built = instance(tmp_path, [K(4, 100.0)], K(4, 20.0), "sync", K(4, 20.0, host_us=15.0))
    # At once: restored at 50, it goes on at 60, is saved again from 75 to 85, and has 55 us left at 105.
    assert spans(PreemptivePriority(), built) == [(0, 0.0, 160.0, 2), (1, 40.0, 60.0, 0), (1, 85.0, 105.0, 0)]
    # Room kept open: nothing is in the way at 75; restored from 95 to 105.
    kept = [(0, 0.0, 175.0, 1), (1, 40.0, 60.0, 0), (1, 75.0, 95.0, 0)]
    assert spans(PreemptivePriority(keep_open_us=15.0), built) == kept
    assert spans(PreemptivePriority(keep_open_us=math.inf), built) == kept
    # Room is kept until 70 only: restored at 80, when the request's second kernel has the GPU until 95.
    assert spans(PreemptivePriority(keep_open_us=10.0), built)[0] == (0, 0.0, 165.0, 1)


def test_three_urgencies(tmp_path: Path) -> None:
    built = problem(
        tmp_path,
        {"ops": [K(4, 100.0)], "priority": 2},
        {"ops": [K(4, 50.0)], "priority": 1, "arrivals": started(30.0)},
        {"ops": [K(4, 20.0)], "arrivals": started(60.0)},
        gpu=GPU,
    )
    # 40 to 60 the second, saved until 70, 70 to 90 the most urgent, 90 to 120 the second, 120 to 190 the last,
    # which was preempted once more while it waited for room, at no cost.
    assert spans(PreemptivePriority(), built) == [(0, 0.0, 190.0, 2), (1, 40.0, 120.0, 1), (2, 70.0, 90.0, 0)]


def test_streams_hold_a_few_kernels(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 10.0)] * 5})
    assert launches(PreemptivePriority(depth=2), built, 0) == [0.0, 0.0, 10.0, 20.0, 30.0]


@pytest.mark.parametrize(
    "options", [{"mode": "kill"}, {"depth": 0}, {"keep_open_us": -1.0}, {"keep_open_us": math.nan}]
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="preemptive-priority: mode"):
        PreemptivePriority(**options)
