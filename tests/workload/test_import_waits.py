"""Waits of the host in a recording, whatever the call: they are no host time, and no length of an iteration."""

from pathlib import Path

import pytest

from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.alone import recorded_threads
from gpusched_env.workload.idle_gpu import IdleGpu
from gpusched_env.workload.importers import summarise
from gpusched_env.workload.workload import Op, OpKind, Workload
from tests.workload.kineto_traces import Event, call, imported, kernel, mark, memcpy

KERNELS, DEPTH = 600, 1000


def backlog(steps: int) -> list[Event]:
    """Steps of kernels of 45 us, 1 us apart, and 10 us of host each. The call blocks when 1,000 are pending."""
    events: list[Event] = []
    ends: list[float] = []
    host = 0.0
    for step in range(steps):
        began = host
        for _ in range(KERNELS):
            called, number = host + 6.0, len(ends)
            # A place has come free 2 us after the end of the one that is 1,000 launches back.
            free = ends[number - DEPTH] + 2.0 if number >= DEPTH else 0.0
            host = max(called + 4.0, free)
            start = max(host + 3.0, ends[-1] + 1.0 if ends else 0.0)
            ends.append(start + 45.0)
            events += [call("cudaLaunchKernel", called, host - called, number), kernel(start, 45.0, number)]
        events.append(mark(began, host - began, f"ProfilerStep#{step}"))
    return events


def host_us(workload: Workload) -> list[float]:
    return [sum(op.host_us for op in variant.all_ops) for variant in workload.variants]


def test_a_launch_that_finds_the_queue_full_waits(tmp_path: Path, gpu: GpuSpec) -> None:
    workload = imported(tmp_path, backlog(4), gpu)
    assert host_us(workload) == pytest.approx([10.0 * KERNELS] * 4)
    # The first one begins with an idle device, the others when the device has done with the one before.
    sync = gpu.timing.sync_latency_us
    assert workload.iteration_us == pytest.approx([13.0 + 46.0 * KERNELS - 1.0 + sync, *[46.0 * KERNELS + sync] * 3])
    figures = summarise(workload, gpu)
    assert abs(figures.pace) < 0.01
    assert "host work left out" not in workload.source


def overlapping(steps: int) -> list[Event]:
    """Steps of 200 us: 100 us of the host, a launch, 180 us of the device; the host goes on meanwhile."""
    events: list[Event] = []
    for step in range(steps):
        at = 200.0 * step
        events += [mark(at, 200.0, f"ProfilerStep#{step}"), call("cudaLaunchKernel", at + 100.0, 2.0, step)]
        events.append(kernel(at + 104.0, 180.0, step))
    return events


def test_what_the_host_does_behind_the_step_before_is_not_waited_for(tmp_path: Path, gpu: GpuSpec) -> None:
    workload = imported(tmp_path, overlapping(3), gpu)
    # The device is done with the first step at 284 us: 84 us of the second one's host time have passed by then.
    assert [variant.ops[0].host_us for variant in workload.variants] == [102.0, 18.0, 18.0]
    sync = gpu.timing.sync_latency_us
    assert workload.iteration_us == pytest.approx([284.0 + sync, 200.0 + sync, 200.0 + sync])
    threads = [recorded_threads(variant, (), gpu.timing) for variant in workload.variants]
    assert [IdleGpu(gpu).play(each).host_us for each in threads] == pytest.approx(workload.iteration_us, rel=0.02)
    assert "0.168 ms of host work left out in 2 of 3 iterations: it passed while the device was busy" in workload.source


def test_what_the_device_waits_for_all_the_same_stays(tmp_path: Path, gpu: GpuSpec) -> None:
    """The host synchronises at the end of each step: nothing overlaps."""
    events = overlapping(3)
    for step in range(3):
        events.append(call("cudaDeviceSynchronize", 200.0 * step + 103.0, 184.0, 10 + step))
    later = [event | {"ts": event["ts"] + 100.0 * ((event["ts"]) // 200.0)} for event in events]
    workload = imported(tmp_path, [mark | {"dur": 300.0} if "Step" in mark["name"] else mark for mark in later], gpu)
    assert [round(variant.ops[0].host_us, 3) for variant in workload.variants] == [102.0, 102.0, 102.0]
    assert "host work left out" not in workload.source


def test_a_short_queue_is_not_full(tmp_path: Path, gpu: GpuSpec) -> None:
    """A launch of 500 us among 600 that are pending is slow for another reason, which the recording does not tell."""
    events = backlog(1)
    events[-3]["dur"] += 500.0
    (variant,) = imported(tmp_path, events, gpu).variants
    assert variant.ops[KERNELS - 1].host_us == 510.0


def around(*between: Event) -> list[Event]:
    """Two kernels, the first from 14 to 114, and what the host does between their launches."""
    return [
        mark(0.0, 200.0),
        call("cudaLaunchKernel", 6.0, 4.0, 1),
        kernel(14.0, 100.0, 1),
        call("cudaEventRecord", 11.0, 1.0, 2),
        *between,
        call("cudaLaunchKernel", 136.0, 4.0, 8),
        kernel(144.0, 10.0, 8),
        call("cudaDeviceSynchronize", 150.0, 7.0, 9),
    ]


QUERIES = [call("cudaEventQuery", 20.0 + 10.0 * k, 2.0, 10 + k) for k in range(11)]


@pytest.mark.parametrize("between", [[call("cudaFree", 20.0, 110.0, 3)], QUERIES], ids=["free", "queries"])
def test_a_call_that_returns_when_the_device_is_done_has_waited(
    tmp_path: Path, gpu: GpuSpec, between: list[Event]
) -> None:
    (variant,) = imported(tmp_path, around(*between), gpu).variants
    ops = [op for op in variant.ops if op.kind is not OpKind.RECORD]
    kinds = {OpKind.SYNC, OpKind.SYNC_EVENT}
    assert [op.kind in kinds for op in ops] == [False, True, False, True]
    # Called at 20, seen at 114 and the latency: all that passes until the second launch returns is host time again.
    assert ops[2].host_us == pytest.approx(140.0 - 114.0 - gpu.timing.sync_latency_us)
    assert sum(op.host_us for op in variant.ops[:-2]) == pytest.approx(20.0)


def test_a_call_that_may_wait_and_did_not_is_host_time(tmp_path: Path, gpu: GpuSpec) -> None:
    for between in ([call("cudaMalloc", 20.0, 50.0, 3)], QUERIES[:5], [call("cudaMalloc", 120.0, 10.0, 3)]):
        (variant,) = imported(tmp_path, around(*between), gpu).variants
        assert variant.ops == (
            Op(OpKind.KERNEL, 10.0, 0, 100.0),
            Op(OpKind.KERNEL, 130.0, 0, 10.0),
            Op(OpKind.SYNC, 10.0),
        )


def after_a_copy(memory: str, size: int) -> list[Event]:
    """A copy to the device from 30 to 1040, whose call lasts from 20 to 1020, and a kernel launched at 1060."""
    return [
        mark(0.0, 1100.0),
        call("cudaMemcpyAsync", 20.0, 1000.0, 1),
        memcpy(f"Memcpy HtoD ({memory} -> Device)", 30.0, 1010.0, 1, size),
        call("cudaLaunchKernel", 1060.0, 4.0, 2),
        kernel(1066.0, 10.0, 2),
        call("cudaDeviceSynchronize", 1068.0, 11.0, 3),
    ]


def test_a_call_that_moves_pageable_memory_returns_with_the_last_piece_under_way(tmp_path: Path, gpu: GpuSpec) -> None:
    workload = imported(tmp_path, after_a_copy("Pageable", 10_000_000), gpu)
    timing = gpu.timing
    issued, seen = 30.0 - timing.launch_latency_us, 1040.0 + timing.sync_latency_us
    assert workload.variants[0].ops == (
        Op(OpKind.COPY_TO_DEVICE, issued, -1, 1010.0, 10_000_000),
        Op(OpKind.SYNC, 0.0),
        Op(OpKind.KERNEL, 1064.0 - seen, 0, 10.0),
        Op(OpKind.SYNC, 4.0),
    )
    assert summarise(workload, gpu).pace == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize(("memory", "size"), [("Pinned", 10_000_000), ("Pageable", 64_000)])
def test_a_call_that_does_not_move_memory_itself_is_host_time(
    tmp_path: Path, gpu: GpuSpec, memory: str, size: int
) -> None:
    (variant,) = imported(tmp_path, after_a_copy(memory, size), gpu).variants
    assert [op.kind for op in variant.ops] == [OpKind.COPY_TO_DEVICE, OpKind.KERNEL, OpKind.SYNC]
    assert variant.ops[0].host_us == 1020.0


def test_a_thread_that_only_looks_is_no_host_thread(tmp_path: Path, gpu: GpuSpec) -> None:
    watching = [call("cudaEventQuery", 20.0 + 10.0 * k, 2.0, 10 + k, tid=2) for k in range(11)]
    (variant,) = imported(tmp_path, around(*watching), gpu).variants
    assert variant.threads == ()
    assert [op.kind for op in variant.ops] == [OpKind.KERNEL, OpKind.KERNEL, OpKind.SYNC]


def test_waits_without_any_record_wait_for_the_launch_before(tmp_path: Path, gpu: GpuSpec) -> None:
    events = [
        mark(0.0, 200.0),
        call("cudaLaunchKernel", 6.0, 4.0, 1),
        kernel(14.0, 100.0, 1),
        call("cudaStreamWaitEvent", 12.0, 2.0, 2),
        call("cudaLaunchKernel", 16.0, 4.0, 3),
        kernel(118.0, 20.0, 3, stream=20),
        call("cudaDeviceSynchronize", 30.0, 112.0, 4),
    ]
    workload = imported(tmp_path, events, gpu)
    assert workload.variants[0].ops == (
        Op(OpKind.KERNEL, 10.0, 0, 100.0),
        Op(OpKind.RECORD, 2.0, 0),
        Op(OpKind.WAIT, 2.0, 0, stream=1),
        Op(OpKind.KERNEL, 6.0, 0, 20.0, stream=1),
        Op(OpKind.SYNC, 10.0),
    )
    assert "1 waits for events paired with the record before them" in workload.source


def test_whoever_asks_again_later_has_worked_meanwhile(tmp_path: Path, gpu: GpuSpec) -> None:
    asking = [call("cudaEventQuery", at, 2.0, at) for at in (13, 125)]
    (variant,) = imported(tmp_path, around(*asking), gpu).variants
    assert [op.host_us for op in variant.ops] == [10.0, 130.0, 10.0]
