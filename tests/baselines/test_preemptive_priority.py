"""Preemptive-resume priority on instances worked out by hand: four SMs of one block, saving four blocks takes 10 us."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.baselines.preemptive_priority import PreemptivePriority
from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.recorded import situation, tenant
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command, Preempt
from gpusched_env.scheduling.view import View
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload
from tests.baselines.instances import SAVED_BYTES, launches, spans, started
from tests.devices.problems import K, problem
from tests.refusals import refused

GPU: dict[str, Any] = {"dram_bytes_per_us": 4 * SAVED_BYTES / 10.0, "timing": {"reset_us": 10.0}}


def instance(folder: Path, training: list[K], *request: K | str) -> Problem:
    """Best-effort work at 0, a request at 30 us."""
    background = {"ops": training, "priority": 1}
    return problem(folder, background, {"ops": [*request], "arrivals": started(30.0)}, gpu=GPU)


def test_an_urgent_kernel_saves_the_running_one_which_goes_on_after_it(tmp_path: Path) -> None:
    built = instance(tmp_path, [K(4, 100.0)], K(4, 20.0))
    # Saved from 30 to 40, the request runs 40 to 60, restored meanwhile, 70 us of work are left.
    assert spans(PreemptivePriority(fine=False), built) == [(0, 0.0, 130.0, 1), (1, 40.0, 60.0, 0)]


def test_saved_blocks_come_back_into_the_room_that_the_urgent_kernel_leaves(tmp_path: Path) -> None:
    built = instance(tmp_path, [K(4, 100.0)], K(3, 60.0))
    # Restored at 50 beside the request, which has three SMs until 100: one block until then, three more at 100.
    assert spans(PreemptivePriority(fine=False), built) == [(0, 0.0, 170.0, 1), (1, 40.0, 100.0, 0)]


def test_only_blocks_in_the_way_are_saved(tmp_path: Path) -> None:
    built = instance(tmp_path, [K(4, 100.0)], K(1, 20.0))
    # Seen at 30.1 that it does not fit; one block saved in 2.5 us goes on at 52.6 for 69.9 us, the others never stop.
    assert spans(PreemptivePriority(), built) == [(0, 0.0, 122.5, 1), (1, 32.6, 52.6, 0)]
    built = instance(tmp_path, [K(4, 100.0)], K(8, 20.0))
    # All are in the way of two waves, and saved once.
    assert spans(PreemptivePriority(), built) == [(0, 0.0, 150.0, 1), (1, 40.1, 80.1, 0)]


def test_idle_sms_need_not_be_freed(tmp_path: Path) -> None:
    built = instance(tmp_path, [K(3, 100.0)], K(2, 20.0))
    # One block has the idle SM at once, one the first SM at 32.6; the saved block goes on at 50, where that ends.
    assert spans(PreemptivePriority(), built) == [(0, 0.0, 119.9, 1), (1, 30.0, 52.6, 0)]


def test_sms_of_equally_urgent_kernels_are_passed_over(tmp_path: Path) -> None:
    built = problem(
        tmp_path,
        {"ops": [K(4, 100.0)], "priority": 1},
        {"ops": [K(2, 50.0)], "arrivals": started(30.0)},
        {"ops": [K(2, 20.0)], "arrivals": started(45.0)},
        gpu=GPU,
    )
    # SMs 0 and 1 are freed until 35.1, SMs 2 and 3 from 45.1 to 50.1. What is left of the four blocks, 69.9 and
    # 54.9 us, is shared: two go on at 70.1, two at 85.1.
    assert spans(PreemptivePriority(), built) == [(0, 0.0, 147.5, 2), (1, 35.1, 85.1, 0), (2, 50.1, 70.1, 0)]


def test_room_that_is_taken_before_an_urgent_kernel_arrives_is_freed_then(tmp_path: Path) -> None:
    gpu = {**GPU, "timing": {"launch_latency_us": 10.0}}
    request = {"ops": [K(4, 20.0)], "arrivals": started(2.0)}
    built = problem(tmp_path, {"ops": [K(4, 100.0)], "priority": 1}, request, gpu=gpu)
    # All SMs are idle when the request is launched at 2 us, and have been taken for 2 us when it arrives at 12.
    assert spans(PreemptivePriority(), built) == [(0, 10.0, 140.0, 1), (1, 22.1, 42.1, 0)]


def test_further_sms_are_freed_where_others_turn_out_to_be_in_use(tmp_path: Path) -> None:
    built = problem(
        tmp_path,
        {"ops": [K(1, 100.0)], "priority": 1},
        {"ops": [K(1, 100.0)], "arrivals": started(10.0)},
        {"ops": [K(2, 100.0)], "priority": 1},
        {"ops": [K(3, 20.0)], "arrivals": started(50.0)},
        gpu=GPU,
    )
    # The urgent kernel is taken to be on SM 0, and is on SM 3: SMs 1 to 3 give room for two blocks at 55.1, SM 0 for
    # the third at 57.6. Tenant 0's block goes on at 75.1 for 44.9 us, tenant 2's at 75.1 and 77.6 for 49.9.
    assert spans(PreemptivePriority(), built) == [
        (0, 0.0, 120.0, 1), (2, 0.0, 127.5, 1), (1, 10.0, 110.0, 0), (3, 55.1, 77.6, 0),
    ]  # fmt: skip


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
    at_once = [(0, 0.0, 160.0, 2), (1, 40.0, 60.0, 0), (1, 85.0, 105.0, 0)]
    assert spans(PreemptivePriority(fine=False), built) == at_once
    # Room kept open: nothing is in the way at 75; restored from 95 to 105.
    kept = [(0, 0.0, 175.0, 1), (1, 40.0, 60.0, 0), (1, 75.0, 95.0, 0)]
    assert spans(PreemptivePriority(keep_open_us=15.0), built) == kept
    assert spans(PreemptivePriority(keep_open_us=math.inf), built) == kept
    # Room is kept until 70 only: restored at 80, when the request's second kernel has the GPU until 95.
    assert spans(PreemptivePriority(keep_open_us=10.0), built)[0] == (0, 0.0, 165.0, 1)


def test_urgent_kernels_find_room_on_reserved_sms_without_a_save(tmp_path: Path) -> None:
    """One of four SMs is reserved: three blocks of the training run at once, the fourth at 100."""
    reserved = PreemptivePriority(reserved=0.25)
    assert spans(reserved, instance(tmp_path, [K(4, 100.0)], K(1, 20.0))) == [(0, 0.0, 200.0, 0), (1, 30.0, 50.0, 0)]
    # Of two blocks one has the reserved SM at once, the other one the next SM at 32.6. The block saved there does not
    # go on at 50 on the reserved SM, but where it was, at 52.6 for 69.9 us.
    rows = spans(reserved, instance(tmp_path, [K(3, 100.0)], K(2, 20.0)))
    assert rows == [(0, 0.0, 122.5, 1), (1, 30.0, 52.6, 0)]


def test_reserved_sms_spare_a_save_a_kernel(tmp_path: Path) -> None:
    """The request's second kernel comes 15 us after the end of the first, where saved blocks had gone on."""
    request = K(1, 20.0), "sync", K(1, 20.0, host_us=15.0)
    for reserved, saves in ((0.0, 2), (0.25, 0)):
        rows = spans(PreemptivePriority(reserved=reserved), instance(tmp_path, [K(4, 100.0)], *request))
        assert rows[0][3] == saves


def test_all_but_the_most_urgent_keep_off_reserved_sms(tmp_path: Path) -> None:
    built = problem(
        tmp_path,
        {"ops": [K(4, 10.0)], "priority": 2},
        {"ops": [K(4, 10.0)], "priority": 1, "arrivals": started(50.0)},
        {"ops": [K(4, 10.0)], "arrivals": started(100.0)},
        gpu=GPU,
    )
    # At least one SM is left to them.
    for reserved, each_us in ((0.5, 20.0), (0.99, 40.0)):
        assert [end - start for _, start, end, _ in spans(PreemptivePriority(reserved=reserved), built)] == [
            each_us, each_us, 10.0,
        ]  # fmt: skip


def kernels_of(name: str, blocks: int, threads: int, duration_us: float) -> Workload:
    """One kernel a job, after which the host waits."""
    kernel = Kernel(
        name=name, grid=(blocks, 1, 1), block=(threads, 1, 1), registers=32, duration_us=duration_us, kind="latency"
    )
    ops = (Op(OpKind.KERNEL, 0.0, 0, duration_us, 0), Op(OpKind.SYNC, 0.0))
    return Workload(
        name=name, gpu="h100-sxm", source="made", kernels=(kernel,), variants=(Variant(ops=ops),), iteration_us=(1.0,)
    )


@pytest.mark.parametrize(("spread", "sms"), [(True, 8), (False, 2)])
def test_an_urgent_kernel_may_be_packed_onto_few_sms(spread: bool, sms: int) -> None:
    """Eight blocks of 512 threads, of which an SM holds four, beside a training that fills all 132 SMs."""
    workloads = {"long": kernels_of("long", 264, 1024, 1000.0), "short": kernels_of("short", 8, 512, 10.0)}
    training, request = (
        tenant("long", priority=1),
        tenant("short", arrivals={"kind": "backlog", "start_us": 30.0}, jobs=1),
    )
    built = situation([training, request], workloads=workloads)
    asked: list[Command] = []

    class Listening(PreemptivePriority):
        def decide(self, view: View) -> Command:
            asked.append(super().decide(view))
            return asked[-1]

    episode = run_episode(Listening(spread=spread), built, CompiledDevice(), 0, record="kernels")
    assert [command.partition.sms for command in asked if isinstance(command, Preempt) and command.partition] == [sms]
    assert len(episode.timeline.jobs) == 1


def test_three_urgencies(tmp_path: Path) -> None:
    built = problem(
        tmp_path,
        {"ops": [K(4, 100.0)], "priority": 2},
        {"ops": [K(4, 50.0)], "priority": 1, "arrivals": started(30.0)},
        {"ops": [K(4, 20.0)], "arrivals": started(60.0)},
        gpu=GPU,
    )
    # 40 to 60 the second, saved until 70, 70 to 90 the most urgent, 90 to 120 the second, 120 to 190 the last,
    # which was launched again at 40 and waited for room all that time: it had not started, so nothing of it was saved.
    assert spans(PreemptivePriority(fine=False), built) == [(0, 0.0, 190.0, 1), (1, 40.0, 120.0, 1), (2, 70.0, 90.0, 0)]


def test_streams_hold_a_few_kernels(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 10.0)] * 5})
    assert launches(PreemptivePriority(depth=2), built, 0) == [0.0, 0.0, 10.0, 20.0, 30.0]


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "kill"},
        {"depth": 0},
        {"keep_open_us": -1.0},
        {"keep_open_us": math.nan},
        {"reserved": 1.0},
        {"reserved": -0.1},
        {"reserved": math.nan},
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with refused(InputError, "preemptive-priority"):
        PreemptivePriority(**options)
