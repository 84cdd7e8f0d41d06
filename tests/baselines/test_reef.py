"""REEF on instances worked out by hand: four SMs of one block, killing takes 10 us, no other latencies."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusched_env.baselines.reef import Reef
from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem
from tests.baselines.instances import launches, spans, started
from tests.devices.problems import K, problem
from tests.refusals import refused


def instance(folder: Path, idempotent: bool = True) -> Problem:
    """Best-effort work on all SMs at 0; a request for two SMs at 30; more best-effort work for two at 35."""
    return problem(
        folder,
        {"ops": [K(4, 100.0, idempotent=idempotent)], "priority": 1},
        {"ops": [K(2, 50.0)], "arrivals": started(30.0)},
        {"ops": [K(2, 30.0)], "priority": 1, "arrivals": started(35.0)},
        gpu={"timing": {"reset_us": 10.0}},
    )


def test_a_request_kills_what_runs_and_is_padded_with_what_fits_beside_it(tmp_path: Path) -> None:
    # Killed until 40; the request runs 40 to 90 and is padded 40 to 70; the killed kernel starts over at 90.
    assert spans(Reef(), instance(tmp_path)) == [(0, 0.0, 190.0, 1), (1, 40.0, 90.0, 0), (2, 40.0, 70.0, 0)]


def test_without_padding_best_effort_kernels_wait_for_the_end_of_the_request(tmp_path: Path) -> None:
    without = [(0, 0.0, 190.0, 1), (1, 40.0, 90.0, 0), (2, 190.0, 220.0, 0)]
    assert spans(Reef(padding=False), instance(tmp_path)) == without


def test_reef_n_lets_running_kernels_finish(tmp_path: Path) -> None:
    finished = [(0, 0.0, 100.0, 0), (1, 100.0, 150.0, 0), (2, 100.0, 130.0, 0)]
    assert spans(Reef(reset=False), instance(tmp_path)) == finished


def test_a_kernel_that_cannot_be_killed_is_drained(tmp_path: Path) -> None:
    built = instance(tmp_path, idempotent=False)
    assert spans(Reef(), built) == [(0, 0.0, 100.0, 0), (1, 100.0, 150.0, 0), (2, 100.0, 130.0, 0)]


def test_padding_is_shorter_than_what_is_left_of_the_request(tmp_path: Path) -> None:
    """On two SMs a kernel of four blocks takes two rounds: 60 us beside 50."""
    best_effort = {"ops": [K(4, 30.0)], "priority": 1}
    assert spans(Reef(), problem(tmp_path, {"ops": [K(2, 50.0)]}, best_effort))[1] == (1, 50.0, 80.0, 0)
    assert spans(Reef(), problem(tmp_path, {"ops": [K(2, 60.0)]}, best_effort))[1] == (1, 0.0, 60.0, 0)


@pytest.mark.parametrize(("recall", "ends_us"), [(True, [80.0, 120.0]), (False, [120.0, 160.0])])
def test_a_killed_kernel_pads_if_nothing_is_queued_behind_it(
    tmp_path: Path, recall: bool, ends_us: list[float]
) -> None:
    """The request runs from 30 to 80 us. Of two kernels of 40 us the first is gone at 40, and just fits beside it."""
    best_effort = {"ops": [K(2, 40.0)] * 2, "priority": 1}
    request = {"ops": [K(2, 50.0)], "arrivals": started(30.0)}
    built = problem(tmp_path, best_effort, request, gpu={"timing": {"reset_us": 10.0}})
    rows = spans(Reef(recall=recall), built)
    assert [(end, preempted) for tenant, _, end, preempted in rows if tenant == 0] == [(ends_us[0], 1), (ends_us[1], 0)]


@pytest.mark.parametrize(("recall", "expected"), [(True, [0.0, 20.0, 40.0]), (False, [0.0, 0.0, 25.0])])
def test_device_queues_hold_a_few_kernels_or_only_the_next_one_in_time(
    tmp_path: Path, recall: bool, expected: list[float]
) -> None:
    """A launch takes 5 us: the second kernel is launched when the first one, from 5 to 25 us, has 5 to go."""
    later = {"ops": [K(1, 1.0)], "arrivals": started(500.0)}
    gpu = {"timing": {"launch_latency_us": 5.0}}
    built = problem(tmp_path, {"ops": [K(4, 20.0)] * 3, "priority": 1}, later, gpu=gpu)
    assert launches(Reef(recall=recall), built, 0) == expected


def test_wrong_options_are_refused() -> None:
    with refused(InputError, "is 0", "depth"):
        Reef(depth=0)


def test_killed_kernels_start_over_and_lose_what_they_had_done(tmp_path: Path) -> None:
    """Two rounds of blocks, of which the first was complete at 50 us: killed at 60, both run again."""
    request = {"ops": [K(4, 20.0)], "arrivals": started(60.0)}
    built = problem(tmp_path, {"ops": [K(8, 50.0)], "priority": 1}, request, gpu={"timing": {"reset_us": 10.0}})
    assert spans(Reef(), built) == [(0, 0.0, 190.0, 1), (1, 70.0, 90.0, 0)]


@pytest.mark.parametrize(("recall", "expected"), [(True, [72.0, 112.0]), (False, [72.0, 0.0])])
def test_what_would_be_queued_when_a_request_comes_is_not_launched(
    tmp_path: Path, recall: bool, expected: list[float]
) -> None:
    """The request comes 7 us into the first kernel, which is killed at once and comes back at 72 us, until 117.

    With recall the second kernel joins the queue 5 us before that, as long as a launch takes. Without, it is in it from
    the beginning, and could not be taken back. It starts right behind the first one in both cases.
    """
    request = {"ops": [K(4, 50.0)], "arrivals": started(12.0)}
    gpu = {"timing": {"launch_latency_us": 5.0, "reset_us": 10.0}}
    built = problem(tmp_path, {"ops": [K(4, 40.0)] * 2, "priority": 1}, request, gpu=gpu)
    assert launches(Reef(recall=recall), built, 0) == expected
    assert spans(Reef(recall=recall), built) == [(0, 5.0, 117.0, 1), (0, 117.0, 157.0, 0), (1, 22.0, 72.0, 0)]


def test_padding_stays_off_the_blocks_of_the_request(tmp_path: Path) -> None:
    """The request has SMs 0 and 1 for 60 us: four blocks of 30 us pad it in two rounds on the two SMs behind."""
    built = problem(tmp_path, {"ops": [K(2, 60.0), K(4, 10.0)]}, {"ops": [K(4, 30.0)], "priority": 1})
    blocks = run_episode(Reef(), built, CompiledDevice(), 0, record="blocks").timeline
    owner = dict(zip(blocks.kernels.column("id"), blocks.kernels.column("tenant"), strict=True))
    table = blocks.blocks.dict()
    pad = {int(sm) for sm, kernel in zip(table["sm"], table["kernel"], strict=True) if owner[kernel] == 1}
    assert pad == {2, 3}
    assert spans(Reef(), built) == [(0, 0.0, 60.0, 0), (0, 60.0, 70.0, 0), (1, 0.0, 60.0, 0)]


def test_a_device_queue_holds_two_kernels(tmp_path: Path) -> None:
    """The published depth: a third kernel is launched when the first one has ended."""
    later = {"ops": [K(1, 1.0)], "arrivals": started(500.0)}
    built = problem(tmp_path, {"ops": [K(4, 20.0)] * 4, "priority": 1}, later)
    assert launches(Reef(recall=False), built, 0) == [0.0, 0.0, 20.0, 40.0]
    assert launches(Reef(recall=False, depth=3), built, 0) == [0.0, 0.0, 0.0, 20.0]
