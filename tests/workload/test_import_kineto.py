"""Kineto import: literal programs from hand-made traces, and errors that name file, event and field."""

import copy
import gzip
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.importers import import_trace
from gpusched_env.workload.workload import GraphNode, Op, OpKind, decode_workload, encode_workload
from tests.refusals import refused
from tests.workload.kineto_traces import GEMM, Event, call, imported, kernel, mark, memcpy, three_kernels, write


def test_three_kernels_give_the_literal_program(tmp_path: Path, gpu: GpuSpec) -> None:
    workload = imported(tmp_path, three_kernels(), gpu)
    assert workload.name == "net"
    assert [variant.ops for variant in workload.variants] == [
        (
            Op(OpKind.KERNEL, 15.0, 0, 10.0),  # mark 1000 to return 1015
            Op(OpKind.KERNEL, 7.0, 1, 14.0),
            Op(OpKind.COPY_TO_HOST, 5.0, -1, 2.0, 64),
            Op(OpKind.SYNC, 2.0),  # called at 1029, the copy ends at 1045, seen at 1048
            Op(OpKind.KERNEL, 8.0, 0, 4.0),  # 1048 to 1056
            Op(OpKind.SYNC, 18.0),  # the device was done at 1062: all of 1056 to 1074 is the host's
        )
    ]
    assert workload.iteration_us == (74.0,)
    first, second = workload.kernels
    assert (first.grid, first.block, first.registers, first.shared_bytes) == ((264, 1, 1), (128, 1, 1), 32, 0)
    assert (first.name, first.duration_us, first.kind) == (
        "vectorized_elementwise_kernel<4, FillFunctor<float> >",
        7.0,
        "memory",
    )
    assert (second.name, second.duration_us, second.kind) == (GEMM, 14.0, "compute")
    assert (second.grid, second.shared_bytes) == ((16, 8, 1), 65536)


def test_gzip_and_files_of_workloads_round_trip(tmp_path: Path, gpu: GpuSpec) -> None:
    plain = write(tmp_path / "net.json", three_kernels())
    zipped = tmp_path / "net.kineto.json.gz"
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    workload = import_trace(zipped, gpu)
    assert workload == import_trace(plain, gpu)
    assert decode_workload(encode_workload(workload), "memory") == workload


def test_a_blocking_copy_is_a_copy_and_a_synchronisation(tmp_path: Path, gpu: GpuSpec) -> None:
    events = [
        mark(0.0, 100.0),
        call("cudaLaunchKernel", 5.0, 5.0, 1),
        kernel(12.0, 4.0, 1),
        call("cudaMemcpyAsync", 20.0, 14.0, 2),
        memcpy("Memcpy DtoH (Device -> Pageable)", 26.0, 3.0, 2, 4),
        call("cudaLaunchKernel", 36.0, 4.0, 3),
        kernel(42.0, 4.0, 3),
        call("cudaMemcpyAsync", 41.0, 20.0, 4),
        memcpy("Memcpy DtoH (Device -> Pageable)", 48.0, 6.0, 4, 8),
    ]
    assert imported(tmp_path, events, gpu).variants[0].ops == (
        Op(OpKind.KERNEL, 10.0, 0, 4.0),
        Op(OpKind.COPY_TO_HOST, 14.0, -1, 3.0, 4),  # idle device: issued 2 us before its start at 26
        Op(OpKind.SYNC, 0.0),  # seen at 32
        Op(OpKind.KERNEL, 8.0, 0, 4.0),
        Op(OpKind.COPY_TO_HOST, 1.0, -1, 6.0, 8),  # busy device: issued when called
        Op(OpKind.SYNC, 0.0),
    )


def test_iterations_are_profiler_steps(tmp_path: Path, gpu: GpuSpec) -> None:
    events: list[Event] = [call("cudaLaunchKernel", 900.0, 5.0, 90), kernel(910.0, 1.0, 90)]
    for i, ts in enumerate((1000.0, 2000.0, 3000.0)):
        events += [
            mark(ts, 1000.0, f"ProfilerStep#{i}"),
            mark(ts + 10.0, 50.0, "Optimizer.step#SGD.step"),
            call("cudaLaunchKernel", ts + 10.0 + i, 5.0, i),
            kernel(ts + 20.0, 5.0 + i, i),
            call("cudaDeviceSynchronize", ts + 17.0, 12.0, 100 + i),
        ]
    # A step without device work (the profiler's last one often is) is no iteration.
    events += [mark(4000.0, 10.0, "ProfilerStep#3")]
    workload = imported(tmp_path, events, gpu)
    assert [[op.duration_us for op in variant.ops] for variant in workload.variants] == [[5, 0], [6, 0], [7, 0]]
    assert [variant.ops[0].host_us for variant in workload.variants] == [15.0, 16.0, 17.0]
    assert workload.iteration_us == (29.0, 29.0, 29.0)
    assert workload.kernels[0].duration_us == 6.0


def test_annotations_by_name_and_the_whole_trace(tmp_path: Path, gpu: GpuSpec) -> None:
    events = three_kernels()
    events[1]["name"] = "forward"
    named = imported(tmp_path, events, gpu, "forward")
    assert named.variants[0].ops[0].host_us == 15.0
    whole = imported(tmp_path, events, gpu)
    assert whole.variants[0].ops[0].host_us == 5.0
    assert whole.variants[0].ops[1:] == named.variants[0].ops[1:]
    open_end = imported(tmp_path, events[:-1], gpu)
    assert open_end.variants[0].ops[-1] == Op(OpKind.SYNC, 0.0)  # the trace ends with the launch at 1056
    assert open_end.iteration_us == (55.0,)  # 1010 to 1062, seen at 1065
    with refused(InputError, "'backward'", "forward"):
        imported(tmp_path, events, gpu, "backward")


def test_a_synchronisation_closes_an_open_iteration(tmp_path: Path, gpu: GpuSpec) -> None:
    workload = imported(tmp_path, three_kernels()[:-1], gpu)
    assert workload.variants[0].ops[-1] == Op(OpKind.SYNC, 44.0)  # from 1056 to the end of the mark
    assert workload.iteration_us == (100.0,)
    assert "closing synchronisation added to 1 of 1 iteration" in workload.source


def test_threads_that_overlap_are_host_threads(tmp_path: Path, gpu: GpuSpec) -> None:
    events = [
        mark(0.0, 100.0),
        call("cudaLaunchKernel", 10.0, 5.0, 1),
        call("cudaLaunchKernel", 12.0, 8.0, 2, tid=2),
        call("cudaLaunchKernel", 16.0, 2.0, 3),
        kernel(30.0, 5.0, 3, stream=7),
        kernel(22.0, 6.0, 2, stream=13),
        kernel(17.0, 7.0, 1, stream=7),
        call("cudaDeviceSynchronize", 25.0, 20.0, 4),
    ]
    workload = imported(tmp_path, events, gpu)
    (variant,) = workload.variants
    assert variant.ops == (Op(OpKind.KERNEL, 15.0, 0, 7.0), Op(OpKind.KERNEL, 3.0, 0, 5.0), Op(OpKind.SYNC, 7.0))
    # From the beginning of the iteration on.
    assert variant.threads == ((Op(OpKind.KERNEL, 20.0, 0, 6.0, stream=1),),)
    assert workload.stream_priorities == (0, 0)


def test_kernels_of_a_graph_share_one_launch(tmp_path: Path, gpu: GpuSpec) -> None:
    events = [
        mark(0.0, 50.0),
        call("cudaGraphLaunch", 10.0, 8.0, 1),
        kernel(24.5, 5.0, 1),
        kernel(20.0, 4.0, 1),
        call("cudaDeviceSynchronize", 20.0, 15.0, 2),
    ]
    workload = imported(tmp_path, events, gpu)
    assert workload.variants[0].ops == (Op(OpKind.GRAPH, 18.0, 0), Op(OpKind.SYNC, 2.0))
    assert workload.graphs == ((GraphNode(OpKind.KERNEL, 0, 4.0), GraphNode(OpKind.KERNEL, 0, 5.0, after=(0,))),)


def test_profiler_overhead_is_not_host_time(tmp_path: Path, gpu: GpuSpec) -> None:
    overhead = {"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "ts": 1002.0, "dur": 6.0, "tid": 0}
    workload = imported(tmp_path, [*three_kernels(), overhead], gpu)
    assert workload.variants[0].ops[0].host_us == 9.0
    assert workload.iteration_us == (68.0,)


def test_overhead_during_a_threads_calls_is_not_its_own(tmp_path: Path, gpu: GpuSpec) -> None:
    overhead = {"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "ts": 1002.0, "dur": 30.0, "tid": 0}
    assert imported(tmp_path, [*three_kernels(), overhead], gpu) == imported(tmp_path, three_kernels(), gpu)


def test_the_first_iteration_does_not_pay_for_the_profilers_set_up(tmp_path: Path, gpu: GpuSpec) -> None:
    events: list[Event] = []
    for i, (ts, first) in enumerate(((0.0, 700.0), (2000.0, 20.0), (4000.0, 30.0))):
        events += [
            mark(ts, 1000.0, f"ProfilerStep#{i}"),
            call("cudaLaunchKernel", ts + first - 5.0, 5.0, i),
            kernel(ts + first + 2.0, 5.0, i),
            call("cudaDeviceSynchronize", ts + first + 1.0, 9.0, 100 + i),
        ]
    workload = imported(tmp_path, events, gpu)
    assert [variant.ops[0].host_us for variant in workload.variants] == [30.0, 20.0, 30.0]
    assert workload.iteration_us == (40.0, 30.0, 40.0)


def many_kernels(lost: int) -> list[Event]:
    events = [mark(0.0, 1000.0)]
    for i in range(40):
        events.append(kernel(10.0 * i + 7.0, 5.0, i))
        if not 20 <= i < 20 + lost:
            events.append(call("cudaLaunchKernel", 10.0 * i, 5.0, i))
    return [*events, call("cudaDeviceSynchronize", 401.0, 5.0, 99)]


def test_a_lost_launch_is_inferred_just_before_its_start(tmp_path: Path, gpu: GpuSpec) -> None:
    workload = imported(tmp_path, many_kernels(lost=1), gpu)
    ops = workload.variants[0].ops
    assert len(ops) == 41
    assert [op.host_us for op in ops[19:22]] == [10.0, 10.0, 10.0]
    assert "1 launches without a host call" in workload.source


def test_a_lost_launch_stays_before_the_next_of_its_stream(tmp_path: Path, gpu: GpuSpec) -> None:
    events = many_kernels(lost=0)
    # The second kernel waits in its stream behind a long first one; its launch was lost.
    events = [event for event in events if event.get("args", {}).get("correlation") not in (0, 1)]
    events += [call("cudaLaunchKernel", 1.0, 2.0, 0), kernel(5.0, 16.0, 0), kernel(22.0, 2.0, 1)]
    ops = imported(tmp_path, events, gpu).variants[0].ops
    assert [op.duration_us for op in ops[:3]] == [16.0, 2.0, 5.0]
    assert [op.host_us for op in ops[:3]] == [3.0, 17.0, 5.0]


def test_too_many_lost_launches_are_an_error(tmp_path: Path, gpu: GpuSpec) -> None:
    with refused(InputError, "net.pt.trace.json", "3 of 40 kernels"):
        imported(tmp_path, many_kernels(lost=3), gpu)


def broken(change: Event | None = None, event: int = 3, **args: Any) -> list[Event]:
    events = copy.deepcopy(three_kernels())
    events[event] |= change or {}
    events[event]["args"] = events[event].get("args", {}) | args
    return events


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (broken(grid=[0, 1, 1]), r"traceEvents\[3\]\.args: field 'grid' is \[0, 1, 1\], expected three integers of at"),
        (broken(grid=[8, 1]), r"traceEvents\[3\]\.args: field 'grid' is \[8, 1\]"),
        (broken(grid=None), r"traceEvents\[3\]\.args: field 'grid' is None"),
        (broken(block="128"), r"traceEvents\[3\]\.args: field 'block' is '128'"),
        (broken(**{"registers per thread": 256}), r"'registers per thread' is 256, expected an integer of at least 0"),
        (broken(**{"shared memory": -4}), r"traceEvents\[3\]\.args: field 'shared memory' is -4"),
        (broken({"dur": -1.0}), r"traceEvents\[3\]: field 'dur' is -1\.0, expected microseconds, not negative"),
        (broken({"ts": -5}), r"traceEvents\[3\]: field 'ts' is -5"),
        (broken({"ts": "soon"}), r"traceEvents\[3\]: field 'ts' is 'soon'"),
        (broken({"dur": -1.0}, event=2), r"traceEvents\[2\]: field 'dur' is -1\.0"),
        (broken({"name": 5}, event=2), r"traceEvents\[2\]: field 'name' is 5, expected a string"),
        (broken(event=7, bytes=None), r"traceEvents\[7\]\.args: field 'bytes' is None"),
        (broken({"tid": "main"}, event=2), r"traceEvents\[2\]: field 'tid' is 'main', expected an integer"),
        (broken(stream="x"), r"traceEvents\[3\]\.args: field 'stream' is 'x'"),
        (broken(device=1), r"a workload is one process on one GPU; say which \(device=, --device; process=, --process"),
        (broken(**{"shared memory": 300_000}), r"kernel vectorized_elementwise_kernel.*shared memory per block"),
        ([*three_kernels(), 5], r"traceEvents\[12\] is 5, expected an object"),
        ([e for e in three_kernels() if e.get("cat") != "kernel"], r"no GPU kernel in the trace"),
        ([], r"no GPU kernel in the trace"),
        ([mark(0.0, 5.0), *three_kernels()[2:]], r"none of its 1 iterations launches a kernel"),
    ],
)
def test_errors_name_file_event_and_field(tmp_path: Path, gpu: GpuSpec, events: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=r"net\.pt\.trace\.json: .*" + message.removeprefix("^")):
        imported(tmp_path, events, gpu)


def test_missing_grid_is_named(tmp_path: Path, gpu: GpuSpec) -> None:
    events = three_kernels()
    del events[3]["args"]["grid"]
    with refused(InputError, "traceEvents[3].args", "'grid'"):
        imported(tmp_path, events, gpu)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"no recording; accepted are .*Kineto JSON.*SQLite"),
        (b"ts,dur\n1,2\n", "no recording; accepted are"),
        (gzip.compress(b"ts,dur\n", mtime=0), "no recording; accepted are"),
        (b'{"traceEvents": [', "not valid JSON"),
        (b"\xff\xfe{}", "no recording; accepted are"),
        (b'{"\xff": 1}', "no list 'traceEvents'"),
        (b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not valid JSON"),
        (gzip.compress(b"[" + b"0," * 2**24 + b"0]", mtime=0), "more than 64 times its size"),
        (gzip.compress(b"SQLite format 3\0", mtime=0), "unzip it first"),
        (gzip.compress(b'{"traceEvents": []}', mtime=0)[:-9], "damaged or truncated gzip"),
        (gzip.compress(b'{"traceEvents": []}', mtime=0)[:12] + b"!!!!!!!!", "damaged or truncated gzip"),
        (b'{"events": []}', "no list 'traceEvents'"),
        (b'{"traceEvents": 3}', "no list 'traceEvents'"),
        (b"[1, 2]", "no list 'traceEvents', but events alone, as PyTorch before 1.8"),
    ],
)
def test_files_that_are_no_kineto_traces(tmp_path: Path, gpu: GpuSpec, content: bytes, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"bad\.json: .*{message}"):
        import_trace(path, gpu)


def test_an_absent_file(tmp_path: Path, gpu: GpuSpec) -> None:
    with refused(InputError, "absent.json", "file"):
        import_trace(tmp_path / "absent.json", gpu)


@pytest.mark.parametrize("device", ["NVIDIA H100 NVL", "NVIDIA GeForce RTX 2080", ""])
def test_an_unknown_device_asks_for_a_specification(tmp_path: Path, device: str) -> None:
    path = write(tmp_path / "net.json", three_kernels(), device)
    with refused(InputError, "net.json", "gpu=, --gpu", "h100-sxm"):
        import_trace(path)
