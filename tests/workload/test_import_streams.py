"""Streams, events, graphs and host threads of a trace, as literal programs."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.workload.alone import recorded_threads
from gpusched_env.workload.idle_gpu import IdleGpu
from gpusched_env.workload.importers import import_trace, summarise
from gpusched_env.workload.workload import (
    GraphNode,
    Marks,
    Op,
    OpKind,
    Variant,
    Workload,
    decode_workload,
    encode_workload,
)
from tests.workload.kineto_traces import Event, call, imported, kernel, mark, memcpy

TRACES = Path(__file__).parent / "traces"


def detail(kind: str, correlation: int, stream: int, **more: Any) -> Event:
    """What Kineto adds of a call with ``enable_cuda_sync_events``."""
    args = {"cuda_sync_kind": kind, "stream": stream, "correlation": correlation} | more
    return {"ph": "X", "cat": "cuda_sync", "name": kind, "ts": 0.0, "dur": 1.0, "tid": stream, "args": args}


def launch(at: float, correlation: int, start: float, duration: float, stream: int, tid: int = 1) -> list[Event]:
    """A launch call of 2 us and its kernel."""
    return [
        call("cudaLaunchKernel", at, 2.0, correlation, tid=tid),
        kernel(start, duration, correlation, stream=stream),
    ]


def overlapped_copy() -> list[Event]:
    """A copy in a stream of its own behind a kernel, beside another one, and before a third."""
    return [
        mark(0.0, 100.0),
        *launch(13.0, 1, 17.0, 10.0, 7),
        call("cudaEventRecordWithFlags", 16.0, 1.0, 2),
        call("cudaStreamWaitEvent", 18.0, 1.0, 3),
        call("cudaMemcpyAsync", 20.0, 2.0, 4),
        memcpy("Memcpy HtoD (Pinned -> Device)", 31.0, 10.0, 4, stream=13),
        call("cudaEventRecord", 23.0, 1.0, 5),
        *launch(26.0, 6, 28.0, 10.0, 7),
        call("cudaStreamWaitEvent", 29.0, 1.0, 7),
        *launch(32.0, 8, 45.0, 5.0, 7),
        call("cudaStreamSynchronize", 36.0, 17.0, 9),
    ]


def dependencies(variant: Variant) -> dict[tuple[int, int], tuple[tuple[int, int], ...]]:
    """What operations wait for by events."""
    marks = Marks(variant)
    places = [(t, p) for t, ops in enumerate(variant.all_threads) for p in range(len(ops))]
    return {place: marks.awaited(*place) for place in places if marks.awaited(*place)}


def test_a_copy_stream_with_two_events(tmp_path: Path, gpu: GpuSpec) -> None:
    workload = imported(tmp_path, overlapped_copy(), gpu)
    (variant,) = workload.variants
    assert variant.ops == (
        Op(OpKind.KERNEL, 15.0, 0, 10.0),
        Op(OpKind.RECORD, 2.0, 0),
        Op(OpKind.WAIT, 2.0, 0, stream=1),
        Op(OpKind.COPY_TO_DEVICE, 3.0, -1, 10.0, 64, 1),
        Op(OpKind.RECORD, 2.0, 1, stream=1),
        Op(OpKind.KERNEL, 4.0, 0, 10.0),
        Op(OpKind.WAIT, 2.0, 1),
        Op(OpKind.KERNEL, 4.0, 0, 5.0),
        Op(OpKind.SYNC_STREAM, 2.0),
    )
    assert dependencies(variant) == {(0, 3): ((0, 0),), (0, 7): ((0, 3),)}
    assert workload.stream_priorities == (0, 0)
    assert "2 waits for events paired with the record before them" in workload.source
    assert decode_workload(encode_workload(workload), "memory") == workload
    played = IdleGpu(gpu).play(recorded_threads(variant, workload.graphs, gpu.timing))
    (spans,) = played.spans
    # Behind another stream's work: 3.7 us after its end.
    assert spans[0] == ((17.0, 27.0),)
    assert [pytest.approx(span) for parts in spans for span in parts] == [
        (17.0, 27.0), (30.7, 40.7), (30.0, 40.0), (44.4, 49.4)
    ]  # fmt: skip
    assert played.host_us == pytest.approx(52.4)


def test_recorded_events_decide(tmp_path: Path, gpu: GpuSpec) -> None:
    events = [
        mark(0.0, 100.0),
        *launch(3.0, 1, 7.0, 10.0, 7),
        call("cudaEventRecord", 6.0, 1.0, 2),
        *launch(8.0, 3, 12.0, 3.0, 13),
        call("cudaEventRecord", 11.0, 1.0, 4),
        call("cudaStreamWaitEvent", 13.0, 1.0, 5),
        *launch(15.0, 6, 21.0, 5.0, 20),
        call("cudaDeviceSynchronize", 20.0, 9.0, 7),
    ]
    paired = imported(tmp_path, events, gpu)
    assert dependencies(paired.variants[0]) == {(0, 4): ((0, 1),)}, "the last record"
    named = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 2, "wait_on_cuda_event_id": 40}
    told = imported(tmp_path, [*events, detail("Stream Wait Event", 5, 20, **named)], gpu)
    assert dependencies(told.variants[0]) == {(0, 4): ((0, 0),)}
    assert "paired" not in told.source
    # PyTorch's calls: Kineto knows the event but not its record.
    unnamed = {"wait_on_stream": -1, "wait_on_cuda_event_record_corr_id": -1}
    events.insert(-1, call("cudaEventSynchronize", 18.0, 1.0, 8))
    again = imported(
        tmp_path,
        [
            *events,
            detail("Stream Wait Event", 5, 20, **unnamed, wait_on_cuda_event_id=41),
            detail("Event Sync", 8, -1, **unnamed, wait_on_cuda_event_id=40),
        ],
        gpu,
    )
    # The record that another event has taken is not event 40's.
    assert dependencies(again.variants[0]) == {(0, 5): ((0, 2),), (0, 6): ((0, 0),)}


def forked(named: bool = False, cudnn: bool = True) -> list[Event]:
    """A kernel, three branches of two kernels each, side by side, and a kernel behind all of them; as cuDNN makes the
    calls (one record before the branches, then a record and a wait for each) or as PyTorch's ``wait_stream`` does (a
    record for each branch before them, too)."""
    events = [mark(0.0, 200.0), *launch(3.0, 1, 7.0, 10.0, 7)]
    at, correlation = 6.0, 2

    def add(name: str, **more: Any) -> None:
        nonlocal at, correlation
        events.append(call(name, at, 0.5, correlation))
        if named and more:
            silent = {"wait_on_cuda_event_record_corr_id": -1, "wait_on_cuda_event_id": 2, "wait_on_stream": -1}
            events.append(detail("Stream Wait Event", correlation, **more, **silent))
        at, correlation = at + 1.0, correlation + 1

    for branch in (13, 14, 15):
        if not cudnn or branch == 13:
            add("cudaEventRecord")
        add("cudaStreamWaitEvent", stream=branch)
    for branch in (13, 14, 15):
        for start in (20.0, 31.0):
            events.extend(launch(at, correlation, start + branch - 13, 10.0, branch))
            at, correlation = at + 3.0, correlation + 1
    for _ in range(3):
        add("cudaEventRecord")
        add("cudaStreamWaitEvent", stream=7)
    return [*events, *launch(at, correlation, 47.0, 5.0, 7), call("cudaDeviceSynchronize", at + 3.0, 30.0, 99)]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("cudnn", [False, True])
def test_branches_are_forked_and_joined(tmp_path: Path, gpu: GpuSpec, named: bool, cudnn: bool) -> None:
    """Kineto knows the stream of a wait at most, and never that of a record."""
    (variant,) = imported(tmp_path, forked(named, cudnn), gpu).variants
    kernels = [place for place, op in enumerate(variant.ops) if op.kind is OpKind.KERNEL]
    assert [variant.ops[place].stream for place in kernels] == [0, 1, 1, 2, 2, 3, 3, 0]
    (first, *branches, last) = ((0, place) for place in kernels)
    found = {place: sorted(awaited) for place, awaited in dependencies(variant).items()}
    assert found == {**{branch: [first] for branch in branches[::2]}, last: branches[1::2]}


def test_a_second_fork_waits_for_the_join(tmp_path: Path, gpu: GpuSpec) -> None:
    """PyTorch's ``wait_stream`` twice in a row, behind branches that have been joined: both wait for the same."""
    events = forked()[:-1]
    events += [call("cudaEventRecord", 60.0, 0.5, 60), call("cudaStreamWaitEvent", 61.0, 0.5, 61)]
    events += [call("cudaEventRecord", 62.0, 0.5, 62), call("cudaStreamWaitEvent", 63.0, 0.5, 63)]
    events += [*launch(64.0, 64, 67.0, 5.0, 13), *launch(67.0, 67, 70.0, 5.0, 14)]
    events += [call("cudaDeviceSynchronize", 70.0, 30.0, 99)]
    (variant,) = imported(tmp_path, events, gpu).variants
    kernels = [(0, place) for place, op in enumerate(variant.ops) if op.kind is OpKind.KERNEL]
    found = dependencies(variant)
    assert found[kernels[8]] == (kernels[7],)
    assert found[kernels[9]] == (kernels[7],)


def test_times_that_contradict_a_pairing_leave_the_wait_out(tmp_path: Path, gpu: GpuSpec) -> None:
    events = overlapped_copy()
    events[6]["ts"] = 25.0  # the copy began before the kernel had ended
    workload = imported(tmp_path, events, gpu)
    assert dependencies(workload.variants[0]) == {(0, 5): ((0, 1),)}
    assert "1 waits for events left out" in workload.source


def test_events_of_one_stream_leave_no_trace(tmp_path: Path, gpu: GpuSpec) -> None:
    without = [mark(0.0, 50.0), *launch(3.0, 1, 7.0, 5.0, 7), *launch(10.0, 2, 14.0, 5.0, 7)]
    calls = [call("cudaEventRecord", 6.0, 1.0, 3), call("cudaStreamWaitEvent", 8.0, 1.0, 4)]
    end = [call("cudaStreamSynchronize", 15.0, 9.0, 5)]
    workload = imported(tmp_path, [*without, *calls, *end], gpu)
    assert workload == imported(tmp_path, [*without, *end], gpu)
    assert workload.variants[0].ops[-1] == Op(OpKind.SYNC, 3.0)


def test_an_event_of_an_earlier_iteration_takes_no_time(tmp_path: Path, gpu: GpuSpec) -> None:
    events = [
        *launch(0.0, 1, 4.0, 50.0, 7),
        call("cudaEventRecord", 3.0, 1.0, 2),
        mark(10.0, 100.0),
        call("cudaEventSynchronize", 15.0, 42.0, 3),
        *launch(60.0, 4, 64.0, 5.0, 7),
        call("cudaDeviceSynchronize", 65.0, 10.0, 5),
    ]
    workload = imported(tmp_path, events, gpu)
    # 10 to 15, and from the event's return at 57 to 62.
    assert workload.variants[0].ops == (Op(OpKind.KERNEL, 10.0, 0, 5.0), Op(OpKind.SYNC, 3.0))
    assert "1 waits for events left out" in workload.source


def graph(at: float, correlation: int, stretch: float = 1.0) -> list[Event]:
    """A graph: a node, two branches of two nodes and one, and a node behind both."""
    nodes = [(0.0, 4.0, 7), (4.6, 5.0, 7), (8.0, 10.0, 90), (10.2, 3.0, 7), (18.4, 2.0, 7)]
    return [
        call("cudaGraphLaunch", at, 5.0, correlation),
        *(kernel(at + 8.0 + s * stretch, d * stretch, correlation, stream=st) for s, d, st in reversed(nodes)),
    ]


def test_graphs_have_branches_and_one_row_for_all_launches(tmp_path: Path, gpu: GpuSpec) -> None:
    events = [mark(0.0, 200.0), *graph(10.0, 1), *graph(60.0, 2, 2.0), call("cudaDeviceSynchronize", 70.0, 50.0, 3)]
    workload = imported(tmp_path, events, gpu)
    assert workload.graphs == (
        (
            GraphNode(OpKind.KERNEL, 0, 6.0),
            GraphNode(OpKind.KERNEL, 0, 7.5, after=(0,)),
            GraphNode(OpKind.KERNEL, 0, 15.0, after=(0,)),
            GraphNode(OpKind.KERNEL, 0, 4.5, after=(1,)),
            GraphNode(OpKind.KERNEL, 0, 3.0, after=(2, 3)),
        ),
    )
    assert workload.variants[0].ops[:2] == (Op(OpKind.GRAPH, 15.0, 0), Op(OpKind.GRAPH, 50.0, 0))
    assert workload.stream_priorities == (0,), "branches are no streams of the program"


def test_threads_that_take_turns_are_one_program(tmp_path: Path, gpu: GpuSpec) -> None:
    backward = [*launch(20.0, 2, 24.0, 4.0, 7, tid=2), *launch(30.0, 3, 34.0, 4.0, 7, tid=2)]
    events = [
        mark(0.0, 100.0),
        *launch(10.0, 1, 14.0, 4.0, 7),
        *backward,
        *launch(40.0, 4, 44.0, 4.0, 7),
        call("cudaDeviceSynchronize", 45.0, 8.0, 5),
    ]
    (variant,) = imported(tmp_path, events, gpu).variants
    assert variant.threads == ()
    assert [op.host_us for op in variant.ops] == [12.0, 10.0, 10.0, 10.0, 3.0]
    operator = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 15.0, "dur": 10.0, "tid": 1}
    (apart,) = imported(tmp_path, [*events, operator], gpu).variants
    assert [op.host_us for op in apart.ops] == [12.0, 30.0, 3.0]
    assert [[op.host_us for op in thread] for thread in apart.threads] == [[22.0, 10.0]]
    # A hundredth of the time is too little to tell them apart.
    hardly = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 14.0, "dur": 6.02, "tid": 1}
    (together,) = imported(tmp_path, [*events, hardly], gpu).variants
    assert together == variant


@pytest.mark.parametrize("kind", ["plain", "sync"])
def test_a_recorded_program_of_three_streams(kind: str) -> None:
    """PyTorch 2.11 on an H200: a copy stream, a backward pass, a captured graph with a branch, and a worker thread."""
    workload = import_trace(TRACES / f"streams_h200_{kind}.kineto.json.gz")
    gpu = load_gpu("h200-sxm")
    assert workload.stream_priorities == (0, 0, 0)
    assert [node.after for node in workload.graphs[0]] == [(), (0,), (0,), (1,), (2,), (3, 4)]
    for variant, recorded_us in zip(workload.variants, workload.iteration_us, strict=True):
        waits = dependencies(variant)
        # As the program says: the copy waits for the activation, the sum for what was made of the copy.
        assert {place[1]: refs for place, refs in waits.items() if place[0] == 0} == {
            4: ((0, 1),),
            9: ((0, 5),),
            21: ((0, 13),),
        }
        assert next(op.stream for op in variant.ops if op.kind is OpKind.SYNC_STREAM) == 1
        played = IdleGpu(gpu).play(recorded_threads(variant, workload.graphs, gpu.timing))
        assert played.host_us == pytest.approx(recorded_us, rel=0.01)
    figures = summarise(workload, gpu)
    assert (figures.streams, figures.event_waits, figures.graphs) == (3, 2.0, 1.0)
    assert 0.05 < figures.overlap < 0.9
    assert decode_workload(encode_workload(workload), kind) == workload


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (detail("Stream Sync", 9, 7) | {"args": None}, r"traceEvents\[14\]\.args is None, expected an object"),
        (detail("Stream Sync", 9, "x"), r"traceEvents\[14\]\.args: field 'stream' is 'x'"),  # type: ignore[arg-type]
        (
            detail("Event Sync", 9, -1, wait_on_cuda_event_id=1, wait_on_cuda_event_record_corr_id="x"),
            r"traceEvents\[14\]\.args: field 'wait_on_cuda_event_record_corr_id' is 'x'",
        ),
    ],
)
def test_malformed_details_are_named(tmp_path: Path, gpu: GpuSpec, extra: Event, message: str) -> None:
    with pytest.raises(InputError, match=r"net\.pt\.trace\.json: " + message):
        imported(tmp_path, [*overlapped_copy(), extra], gpu)


def by_hand(**changes: Any) -> Workload:
    kernel_row = {"name": "k", "grid": [8, 1, 1], "block": [64, 1, 1], "registers": 32, "duration_us": 5.0}
    fields = {
        "name": "by hand",
        "gpu": "h100-sxm",
        "source": "test",
        "kernels": [kernel_row | {"kind": "latency"}],
        "stream_priorities": [0, -2],
        "graphs": [[[0, 0, 5.0], [2, -1, 1.0, 64, [0]]]],
        "variants": [
            {
                "ops": [[0, 1.0, 0, 5.0], [8, 0.0, 3], [9, 0.5, 3, 0.0, 0, 1], [10, 2.0, 0, 0.0, 0, 1], [5]],
                "threads": [[[0, 4.0, 0, 6.0, 0, 1], [7, 1.0, 3], [6, 0.0, -1, 0.0, 0, 1], [11, 2.0]]],
            }
        ],
        "iteration_us": [50.0],
    } | changes
    return decode_workload(json.dumps(fields).encode(), "hand.json")


def test_files_with_streams_events_graphs_and_threads_round_trip() -> None:
    workload = by_hand()
    assert decode_workload(encode_workload(workload), "memory") == workload
    (variant,) = workload.variants
    assert dependencies(variant) == {(0, 3): ((0, 0),), (1, 1): ((0, 0),)}
    assert variant.threads[0][3] == Op(OpKind.HOST, 2.0)
    assert workload.graphs[0][1] == GraphNode(OpKind.COPY_TO_HOST, -1, 1.0, 64, (0,))


def test_files_without_streams_still_read() -> None:
    workload = by_hand(graphs=[], stream_priorities=[0], variants=[{"ops": [[0, 1.0, 0, 5.0, 0], [5, 2.0]]}])
    assert workload.variants[0] == Variant(ops=(Op(OpKind.KERNEL, 1.0, 0, 5.0), Op(OpKind.SYNC, 2.0)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stream_priorities": [0]}, r"variants\[0\]\.ops\[2\]\.stream is 1, stream_priorities names 1"),
        ({"graphs": []}, r"variants\[0\]\.ops\[3\] names graph 0, the table has 0"),
        ({"graphs": [[[0, 0, 5.0, 0, [1]]]]}, r"graphs\[0\]\[0\]\.after is \[1\], must name earlier nodes"),
        ({"graphs": [[[5]]]}, r"graphs\[0\] has no kernel"),
        (
            {"variants": [{"ops": [[0, 1.0, 0, 5.0]], "threads": [[[9, 0.0]]]}]},
            r"variants\[0\]\.threads\[0\]\[0\]\.index is -1, must be the number of an event",
        ),
        ({"variants": [{"ops": [[0, 1.0, 0, 5.0]], "threads": [[[99]]]}]}, r"hand\.json: .*99"),
    ],
)
def test_broken_files_name_the_field(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        by_hand(**changes)
