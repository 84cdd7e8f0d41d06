"""Recordings as other versions of profilers write them: each of these files is the same program, said otherwise."""

import gzip
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.importers import import_trace
from gpusched_env.workload.workload import OpKind, Workload
from tests.refusals import refused
from tests.workload.kineto_traces import Event, call, imported, kernel, mark, memcpy, three_kernels
from tests.workload.nsys_exports import Export
from tests.workload.nsys_exports import three_kernels as nsys_kernels

OLD = {
    "kernel": "Kernel",
    "gpu_memcpy": "Memcpy",
    "cuda_runtime": "Runtime",
    "cuda_driver": "Runtime",
    "user_annotation": "Operator",
}


def before_1_12(event: Event) -> Event:
    """As PyTorch 1.8 to 1.11."""
    changed = event | {"cat": OLD.get(event.get("cat", ""), "?")}
    stream = event.get("args", {}).get("stream")
    return changed | {"tid": f"stream {stream}" if stream is not None else str(event.get("tid", 1))}


def times_as_text(event: Event) -> Event:
    return event | {name: f"{event[name]:.3f}" for name in ("ts", "dur") if name in event}


def stream_in_tid(event: Event) -> Event:
    arguments = dict(event.get("args", {}))
    stream = arguments.pop("stream", None)
    return event if stream is None else event | {"args": arguments, "tid": stream}


def same(one: Workload, other: Workload) -> bool:
    return (one.variants, one.kernels, one.iteration_us) == (other.variants, other.kernels, other.iteration_us)


@pytest.mark.parametrize("change", [before_1_12, times_as_text, stream_in_tid])
def test_older_versions_read_alike(tmp_path: Path, gpu: GpuSpec, change: Any) -> None:
    newer = imported(tmp_path, three_kernels(), gpu)
    assert same(imported(tmp_path, [change(event) for event in three_kernels()], gpu), newer)


def test_an_operator_of_an_old_version_is_no_annotation(tmp_path: Path, gpu: GpuSpec) -> None:
    operator = {"ph": "X", "cat": "Operator", "name": "aten::step", "ts": 1000.0, "dur": 5.0, "tid": "1"}
    events = [before_1_12(event) for event in three_kernels()]
    with pytest.raises(InputError, match=r"no annotation 'x'; the trace has ProfilerStep#3$"):
        imported(tmp_path, [*events, operator], gpu, "x")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"traceEvents"', b'"x": NaN, "y": -Infinity, "traceEvents"'),
        (b"sm90_xmma", b"sm90\xff\xfe"),
        (b"sm90_xmma", b"sm90\x01"),
        (b"sm90_xmma", b"sm90\\ud800"),
        (b'{"deviceP', b'\xef\xbb\xbf{"deviceP'),
    ],
)
def test_what_is_no_strict_json_is_read(tmp_path: Path, gpu: GpuSpec, old: bytes, new: bytes) -> None:
    newer = imported(tmp_path, three_kernels(), gpu)
    data = (tmp_path / "net.pt.trace.json").read_bytes()
    assert old in data
    path = tmp_path / "net.bin"
    path.write_bytes(gzip.compress(data.replace(old, new), mtime=0))
    assert import_trace(path, gpu).variants == newer.variants


def rocm(event: Event) -> Event:
    """As on ROCm, where the launch call has what it launches."""
    arguments = dict(event.get("args", {}))
    names = {"cudaLaunchKernel": "hipLaunchKernel", "cuLaunchKernelEx": "hipExtModuleLaunchKernel"}
    number = arguments.get("correlation")
    if event.get("cat") == "kernel":
        for name in ("grid", "block", "shared memory", "registers per thread"):
            arguments.pop(name)
    elif event.get("cat") == "gpu_memcpy":
        arguments.pop("bytes")
    elif number in (1, 5):
        arguments |= {"grid": [264, 1, 1], "block": [128, 1, 1], "shared memory": 0}
    elif number == 2:
        # 16 and 8 blocks of 384 threads and of 1, the last of them not full
        arguments |= {"grid": [16 * 384 - 3, 8, 1], "block": [384, 1, 1], "shared memory": 65536}
    elif number == 3:
        arguments |= {"size": "64"}
    return event | {"args": arguments, "name": names.get(event["name"], event["name"].replace("cuda", "hip"))}


def test_rocm_has_shapes_and_sizes_at_the_launch(tmp_path: Path, gpu: GpuSpec) -> None:
    newer = imported(tmp_path, three_kernels(), gpu)
    workload = imported(tmp_path, [rocm(event) for event in three_kernels()], gpu)
    assert same(workload, newer)
    assert "3 kernels without registers, taken as others' or 32 a thread" in workload.source
    bare = [rocm(event) for event in three_kernels()]
    del bare[2]["args"]["grid"]
    with refused(InputError, "traceEvents[3].args", "'grid'"):
        imported(tmp_path, bare, gpu)


def test_registers_that_are_not_filled_in_are_those_of_the_same_kernel(tmp_path: Path, gpu: GpuSpec) -> None:
    known: Event = {"registers per thread": 40}
    unknown: Event = {"registers per thread": 0}
    events = [mark(0.0, 100.0), call("cudaLaunchKernel", 1.0, 1.0, 1), call("cudaLaunchKernel", 3.0, 1.0, 2)]
    events += [kernel(5.0, 9.0, 1, **known), kernel(15.0, 9.0, 2, grid=[8, 1, 1], **unknown)]
    events += [call("cudaLaunchKernel", 5.0, 1.0, 3), kernel(30.0, 9.0, 3, "another", **unknown)]
    workload = imported(tmp_path, events, gpu)
    assert [row.registers for row in workload.kernels] == [40, 40, 32]
    assert "2 kernels without registers" in workload.source


def test_work_without_times_is_as_long_as_its_like(tmp_path: Path, gpu: GpuSpec) -> None:
    """CUPTI writes 0 where it has no times: such kernels are not the first, and do not take no time."""
    events = [mark(1000.0, 100.0)]
    for number, duration in enumerate((4.0, 0.0, 6.0)):
        events.append(call("cudaLaunchKernel", 1001.0 + 3.0 * number, 1.0, number))
        events.append(kernel(1010.0 + 10.0 * number if duration else 0.0, duration, number))
    events += [call("cudaLaunchKernel", 1012.0, 1.0, 7), kernel(0.0, 0.0, 7, "like no other")]
    workload = imported(tmp_path, events, gpu)
    assert [op.duration_us for op in workload.variants[0].ops] == [4.0, 5.0, 6.0, 0.0]
    assert workload.kernels[0].duration_us == 5.0
    assert "2 kernels, copies and memsets without times, as long as others of their kind" in workload.source
    assert "1 of these left out, like no other" in workload.source


def test_synchronisations_without_the_record_that_they_wait_for(tmp_path: Path, gpu: GpuSpec) -> None:
    """Before 2024 Kineto did not write the record: it is inferred, as where it is -1."""
    found = []
    for record in ({}, {"wait_on_cuda_event_record_corr_id": -1}, {"wait_on_cuda_event_record_corr_id": 2**32 - 1}):
        events = [mark(0.0, 100.0), call("cudaLaunchKernel", 1.0, 1.0, 1), kernel(5.0, 10.0, 1)]
        events += [call("cudaEventRecord", 3.0, 1.0, 2), call("cudaStreamWaitEvent", 5.0, 1.0, 3)]
        arguments = {"correlation": 3, "stream": 13, "wait_on_cuda_event_id": 4} | record
        events.append({"ph": "X", "cat": "cuda_sync", "name": "Stream Wait", "ts": 5.0, "dur": 0.0, "args": arguments})
        events += [call("cudaLaunchKernel", 7.0, 1.0, 4), kernel(18.0, 10.0, 4, stream=13)]
        found.append(imported(tmp_path, events, gpu))
    assert all(same(workload, found[0]) for workload in found)
    kinds = [op.kind for op in found[0].variants[0].ops]
    assert kinds == [OpKind.KERNEL, OpKind.RECORD, OpKind.WAIT, OpKind.KERNEL, OpKind.SYNC]


def test_of_annotations_within_each_other_the_outermost_counts(tmp_path: Path, gpu: GpuSpec) -> None:
    inner = [mark(1000.0, 100.0, "ProfilerStep#3"), mark(1005.0, 30.0, "ProfilerStep#4")]
    assert same(imported(tmp_path, [*inner, *three_kernels()], gpu), imported(tmp_path, three_kernels(), gpu))
    late = [*three_kernels(), mark(1050.0, 200.0, "ProfilerStep#4")]
    counts = [sum(op.kind is OpKind.KERNEL for op in v.ops) for v in imported(tmp_path, late, gpu).variants]
    assert counts == [2, 1], "none is in both"


def test_many_marks_take_time_in_proportion(tmp_path: Path, gpu: GpuSpec) -> None:
    """Thousands of marks at one time are one iteration."""
    marks = [mark(1000.0, 100.0, f"ProfilerStep#{number}") for number in range(3000)]
    assert len(imported(tmp_path, [*marks, *three_kernels()], gpu).variants) == 1


def test_threads_without_number(tmp_path: Path, gpu: GpuSpec) -> None:
    events = three_kernels()
    for number in range(70):
        events += [call("cudaLaunchKernel", 1010.0, 5.0, 100 + number, tid=number), kernel(1080.0, 1.0, 100 + number)]
    with refused(InputError, "64 host", "overlap"):
        imported(tmp_path, events, gpu)


def test_copies_to_and_from_arrays(tmp_path: Path, gpu: GpuSpec) -> None:
    events = three_kernels()
    for number, name in enumerate(("Memcpy HtoA (Pinned -> Array)", "Memcpy AtoH (Array -> Pinned)", "Memcpy PtoP")):
        events += [call("cudaMemcpyAsync", 1075.0 + number, 0.5, 50 + number)]
        events += [memcpy(name, 1080.0 + 2.0 * number, 1.0, 50 + number)]
    copies = [op.kind for op in imported(tmp_path, events, gpu).variants[0].ops if 1 <= op.kind <= 3]
    assert copies == [OpKind.COPY_TO_HOST, OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST, OpKind.COPY_ON_DEVICE]


def renamed(path: Path, names: dict[str, str]) -> Path:
    with sqlite3.connect(path) as database:
        for old, new in names.items():
            database.execute(f"ALTER TABLE {old} RENAME TO {new}")
    return path


@pytest.mark.parametrize("other", ["NVTX_EVENTS_V2", "NVTX_EVENTS_3", "V2_NVTX_EVENTS", "nvtx_events_v2"])
def test_tables_with_a_version_in_their_names(tmp_path: Path, gpu: GpuSpec, other: str) -> None:
    newer = import_trace(nsys_kernels(tmp_path / "net.sqlite").close(), gpu)
    path = renamed(nsys_kernels(tmp_path / "other.sqlite").close(), {"NVTX_EVENTS": other})
    assert same(import_trace(path, gpu, "iteration 3"), newer)


def test_of_several_versions_the_newest_with_rows_is_read(tmp_path: Path, gpu: GpuSpec) -> None:
    path = renamed(nsys_kernels(tmp_path / "net.sqlite").close(), {"NVTX_EVENTS": "NVTX_EVENTS_V2"})
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE NVTX_EVENTS AS SELECT * FROM NVTX_EVENTS_V2 LIMIT 0")
        database.execute("CREATE TABLE NVTX_EVENTS_V10 AS SELECT * FROM NVTX_EVENTS_V2 LIMIT 0")
        database.execute("CREATE TABLE NVTX_EVENTS_V9 AS SELECT * FROM NVTX_EVENTS_V2")
        database.execute("UPDATE NVTX_EVENTS_V9 SET text = 'forward', textId = NULL")
    assert len(import_trace(path, gpu, "forward").variants) == 1
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE NVTX_EVENTS_V9 DROP COLUMN eventType")
    with refused(InputError, "NVTX_EVENTS_V9 row 1", "'eventType'"):
        import_trace(path, gpu, "forward")


def test_the_gpus_of_early_2021(tmp_path: Path) -> None:
    path = nsys_kernels(tmp_path / "net.sqlite").close()
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE TARGET_INFO_GPU")
        database.execute("CREATE TABLE TARGET_INFO_CUDA_GPU (deviceId INT, name TEXT, numMultiprocessors INT)")
        database.executemany(
            "INSERT INTO TARGET_INFO_CUDA_GPU VALUES (?, ?, ?)",
            [(1, "NVIDIA H200", 132), (0, "NVIDIA H100 80GB HBM3", 132)],
        )
    assert import_trace(path).gpu == "h100-sxm"


def test_a_column_that_makes_itself_huge_is_refused(tmp_path: Path, gpu: GpuSpec) -> None:
    path = nsys_kernels(tmp_path / "net.sqlite").close()
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE StringIds RENAME TO Texts")
        database.execute(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT GENERATED ALWAYS AS (zeroblob(900000000)))"
        )
        database.execute("INSERT INTO StringIds (id) SELECT id FROM Texts")
    with refused(InputError, "net.sqlite", "big"):
        import_trace(path, gpu)


def test_long_names_are_read_as_far_as_they_tell_kernels_apart(tmp_path: Path, gpu: GpuSpec) -> None:
    export = Export(tmp_path / "net.sqlite")
    export.call("cudaLaunchKernel", 1.0, 1.0, 1)
    export.kernel(5.0, 1.0, 1, "k<" + "int," * 30_000 + "int>()")
    assert len(import_trace(export.close(), gpu).kernels[0].name) == 160
