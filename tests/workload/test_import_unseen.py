"""Traces that have waits of streams for events, but no record of any: what the times show of them."""

from pathlib import Path

import pytest

from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.importers import summarise
from gpusched_env.workload.workload import Op, OpKind
from tests.workload.kineto_traces import Event, call, imported, kernel, mark, memcpy


def wait(ts: float, number: int, tid: int = 1) -> Event:
    return call("cudaStreamWaitEvent", ts, 1.0, number, tid=tid)


def beside(*, thread: int = 1, starts: float = 423.0) -> list[Event]:
    """A kernel of 400 us in stream 20 with a short one behind it, and beside them two in stream 7.

    Args:
        thread: that waits, and launches all but the last one, which is thread 1's.
        starts: when the last one does.
    """
    return [
        mark(0.0, 600.0),
        call("cudaLaunchKernel", 10.0, 4.0, 1, tid=thread),
        kernel(20.0, 400.0, 1, stream=20),
        wait(15.0, 2, tid=thread),
        call("cudaLaunchKernel", 20.0, 4.0, 3, tid=thread),
        kernel(28.0, 30.0, 3),
        call("cudaLaunchKernel", 25.0, 4.0, 7, tid=thread),
        kernel(421.0, 12.0, 7, stream=20),
        wait(30.0, 4, tid=thread),
        call("cudaLaunchKernel", 40.0, 4.0, 5),
        kernel(starts, 10.0, 5),
        call("cudaDeviceSynchronize", 45.0, starts - 32.0, 6),
    ]


@pytest.mark.parametrize("thread", [1, 2])
def test_what_starts_when_another_stream_is_done_has_waited_for_it(tmp_path: Path, gpu: GpuSpec, thread: int) -> None:
    """The wait is the last one before it, whichever thread made it: not for all that the other stream has, but for the
    first launch. Of the other wait nothing is shown."""
    workload = imported(tmp_path, beside(thread=thread), gpu)
    assert workload.variants[0].ops == (
        Op(OpKind.KERNEL, 14.0, 0, 400.0),
        Op(OpKind.RECORD, 0.0, 0),
        Op(OpKind.KERNEL, 10.0, 0, 30.0, stream=1),
        Op(OpKind.KERNEL, 5.0, 0, 12.0),
        Op(OpKind.WAIT, 2.0, 0, stream=1),
        Op(OpKind.KERNEL, 13.0, 0, 10.0, stream=1),
        Op(OpKind.SYNC, 1.0),
    )
    assert abs(summarise(workload, gpu).pace) < 0.02
    assert "1 waits for events paired with the record before them; 1 waits for events left out" in workload.source


def test_what_starts_some_time_later_shows_nothing(tmp_path: Path, gpu: GpuSpec) -> None:
    """The wait is then taken to be for what was launched just before it."""
    (variant,) = imported(tmp_path, beside(starts=460.0), gpu).variants
    kernel = OpKind.KERNEL
    expected = [kernel, kernel, kernel, OpKind.RECORD, OpKind.WAIT, kernel, OpKind.SYNC]
    assert [op.kind for op in variant.ops] == expected


def prefetching(steps: int) -> list[Event]:
    """Each step of 500 us copies for 100 us in a stream of its own, while the kernel of the step before is running.

    The kernel of the first one begins when its copy is done. The others wait for the copy of the step before.
    """
    events: list[Event] = []
    for step in range(steps):
        at, number = 500.0 * step, 10 * step
        events += [
            mark(at, 500.0, f"ProfilerStep#{step}"),
            call("cudaMemcpyAsync", at + 10.0, 4.0, number),
            memcpy("Memcpy HtoD (Pinned -> Device)", at + 20.0, 100.0, number, 1_000_000, stream=20),
            wait(at + 15.0, number + 1),
            call("cudaLaunchKernel", at + 20.0, 4.0, number + 2),
            kernel(at + 301.0, 499.0, number + 2) if step else kernel(123.0, 677.0, number + 2),
        ]
    return events


def test_a_wait_that_nothing_has_waited_at_is_left_out(tmp_path: Path, gpu: GpuSpec) -> None:
    workload = imported(tmp_path, prefetching(4), gpu)
    kinds = [[op.kind for op in variant.ops] for variant in workload.variants]
    without = [OpKind.COPY_TO_DEVICE, OpKind.KERNEL, OpKind.SYNC]
    assert kinds[0] == [OpKind.COPY_TO_DEVICE, OpKind.RECORD, OpKind.WAIT, OpKind.KERNEL, OpKind.SYNC]
    assert kinds[1:] == [without] * 3
    assert workload.iteration_us[1:] == pytest.approx([500.0 + gpu.timing.sync_latency_us] * 3)
    assert abs(summarise(workload, gpu).pace) < 0.02


def test_a_wait_for_a_record_that_was_seen_stays(tmp_path: Path, gpu: GpuSpec) -> None:
    seen = [call("cudaEventRecord", 500.0 * step + 14.5, 0.25, 10 * step + 5) for step in range(4)]
    workload = imported(tmp_path, [*prefetching(4), *seen], gpu)
    assert all(OpKind.WAIT in {op.kind for op in variant.ops} for variant in workload.variants)
