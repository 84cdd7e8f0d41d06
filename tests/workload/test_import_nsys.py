"""Nsight Systems import: literal programs from hand-made exports, and errors that name file, table, row and field."""

import gzip
import sqlite3
from pathlib import Path

import pytest

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.importers import import_trace, summarise
from gpusched_env.workload.workload import GraphNode, Op, OpKind
from tests.refusals import refused
from tests.workload.nsys_exports import PROCESS, Export, three_kernels

TRACES = Path(__file__).parent / "traces"


def test_three_kernels_give_the_same_program_as_from_pytorch(tmp_path: Path, gpu: GpuSpec) -> None:
    workload = import_trace(three_kernels(tmp_path / "net.sqlite").close(), gpu)
    assert (workload.name, workload.profiled) == ("net", True)
    assert [variant.ops for variant in workload.variants] == [
        (
            Op(OpKind.KERNEL, 15.0, 0, 10.0),
            Op(OpKind.KERNEL, 7.0, 1, 14.0),
            Op(OpKind.COPY_TO_HOST, 5.0, -1, 2.0, 64),
            Op(OpKind.SYNC, 2.0),
            Op(OpKind.KERNEL, 8.0, 0, 4.0),
            Op(OpKind.SYNC, 18.0),
        )
    ]
    assert workload.iteration_us == (74.0,)
    first, second = workload.kernels
    assert (first.name, first.grid, first.block, first.registers) == ("k", (264, 1, 1), (128, 1, 1), 32)
    assert (first.shared_bytes, second.shared_bytes) == (2048, 65_536), "static and dynamic"
    assert workload.source.startswith("Nsight Systems on NVIDIA H100 80GB HBM3")


def test_the_gpu_is_found_by_its_name(tmp_path: Path) -> None:
    assert import_trace(three_kernels(tmp_path / "net.sqlite").close()).gpu == "h100-sxm"
    other = three_kernels(tmp_path / "other.sqlite", device="NVIDIA GeForce RTX 2080").close()
    with refused(InputError, "other.sqlite", "GPU", "'NVIDIA GeForce RTX 2080'"):
        import_trace(other)


def test_ranges_by_name_and_the_whole_report(tmp_path: Path, gpu: GpuSpec) -> None:
    export = three_kernels(tmp_path / "net.sqlite")
    export.range(1000.0, 50.0, "forward")
    path = export.close()
    (variant,) = import_trace(path, gpu, "forward").variants
    assert [op.kind for op in variant.ops].count(OpKind.KERNEL) == 2
    with refused(InputError, "net.sqlite", "'backward'", "iteration 3"):
        import_trace(path, gpu, "backward")


def test_events_join_streams_as_they_were_recorded(tmp_path: Path, gpu: GpuSpec) -> None:
    """Two events are recorded before either is waited for: only their numbers tell which is which."""
    export = Export(tmp_path / "net.sqlite")
    for number, stream in ((1, 7), (2, 13)):
        export.call("cudaLaunchKernel_v7000", 10.0 * number, 4.0, number)
        export.kernel(10.0 * number + 6.0, 40.0, number, stream=stream)
        export.call("cudaEventRecord_v3020", 10.0 * number + 5.0, 1.0, 10 + number)
        export.records(10 + number, stream=stream, event=100 + number)
    export.call("cudaStreamWaitEvent_v3020", 30.0, 1.0, 20)
    export.waits(20, kind=2, stream=17, event=101)
    export.call("cudaLaunchKernel_v7000", 32.0, 4.0, 3)
    export.kernel(62.0, 5.0, 3, stream=17)
    export.call("cudaDeviceSynchronize_v3020", 40.0, 40.0, 30)
    (variant,) = import_trace(export.close(), gpu).variants
    assert variant.ops == (
        Op(OpKind.KERNEL, 4.0, 0, 40.0),
        Op(OpKind.RECORD, 2.0, 0),
        # The second event's record is waited for by nobody.
        Op(OpKind.KERNEL, 8.0, 0, 40.0, stream=1),
        Op(OpKind.WAIT, 7.0, 0, stream=2),
        Op(OpKind.KERNEL, 5.0, 0, 5.0, stream=2),
        Op(OpKind.SYNC, 4.0),
    )


def test_nodes_of_a_graph_share_its_launch(tmp_path: Path, gpu: GpuSpec) -> None:
    export = Export(tmp_path / "net.sqlite")
    export.range(0.0, 50.0, "step")
    export.call("cudaGraphLaunch_v10000", 10.0, 8.0, 1)
    export.kernel(20.0, 4.0, 1, graphNodeId=1)
    export.memset(24.5, 2.0, 1, size=16)
    export.call("cudaDeviceSynchronize_v3020", 20.0, 15.0, 2)
    workload = import_trace(export.close(), gpu)
    assert workload.variants[0].ops == (Op(OpKind.GRAPH, 18.0, 0), Op(OpKind.SYNC, 2.0))
    assert workload.graphs == ((GraphNode(OpKind.KERNEL, 0, 4.0), GraphNode(OpKind.MEMSET, -1, 2.0, 16, after=(0,))),)


def test_overhead_driver_calls_within_and_page_migrations_do_not_count(tmp_path: Path, gpu: GpuSpec) -> None:
    export = three_kernels(tmp_path / "net.sqlite")
    export.overhead(1002.0, 6.0)
    export.call("cuLaunchKernel", 1011.0, 3.0, 1)
    export.copy(1019.0, 1.0, 77, kind=11)
    workload = import_trace(export.close(), gpu)
    assert workload.variants[0].ops[0].host_us == 9.0
    assert workload.iteration_us == (68.0,)
    assert len(workload.variants[0].ops) == 6


def test_a_mark_says_how_long_iterations_take_without_the_profiler(tmp_path: Path, gpu: GpuSpec) -> None:
    export = three_kernels(tmp_path / "net.sqlite")
    export.mark(1.0, "gpusched_iteration_us=[61.0, 60.0, 62.0]")
    workload = import_trace(export.close(), gpu)
    assert (workload.iteration_us, workload.profiled) == ((61.0, 60.0, 62.0), False)
    assert workload.variants[0].ops[0].host_us < 15.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL", "no table CUPTI_ACTIVITY_KIND_KERNEL; profile with nsys profile"),
        ("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL", "no GPU kernel in the export"),
        ("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = 0", r"KERNEL row 1: field 'gridX' is 0, expected an integer"),
        ("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'soon'", r"KERNEL row 1: field 'start' is 'soon'"),
        (
            "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 5",
            r"KERNEL row 1: field 'end' is 5, expected a time not before",
        ),
        ("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = 99", "'demangledName' is 99, expected the id of a row"),
        ("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN blockX", "row 1 has no field 'blockX'"),
        ("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET bytes = -1", r"MEMCPY row 1: field 'bytes' is -1"),
        ("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET nameId = NULL", "nameId"),
        ("UPDATE NVTX_EVENTS SET textId = 77", r"NVTX_EVENTS row 1: field 'textId' is 77, expected the id"),
        ("UPDATE NVTX_EVENTS SET text = 'gpusched_iteration_us=fast', eventType = 34", r"iteration_us has 'fast'"),
        ("DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME", "4 of 4 kernels, copies and memsets have no launch call"),
        (f"UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET globalPid = {PROCESS | 5 << 24}", "one process on one GPU; say which"),
        ("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET deviceId = 1", "one process on one GPU; say which"),
        (
            "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL",
            "traced as a whole; profile with --cuda-graph-trace=node",
        ),
    ],
)
def test_errors_name_file_table_row_and_field(tmp_path: Path, gpu: GpuSpec, change: str, message: str) -> None:
    path = three_kernels(tmp_path / "net.sqlite").close()
    database = sqlite3.connect(path)
    if "NULL" in change:
        database.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME DROP COLUMN nameId")
    else:
        database.execute(change)
    database.commit()
    database.close()
    with pytest.raises(InputError, match=r"net\.sqlite: .*" + message):
        import_trace(path, gpu)


def test_files_that_are_no_exports(tmp_path: Path, gpu: GpuSpec) -> None:
    report = tmp_path / "net.nsys-rep"
    report.write_bytes(b"QDSTRM")
    with refused(InputError, "net.nsys-rep", "--type"):
        import_trace(report, gpu)
    path = three_kernels(tmp_path / "net.sqlite").close()
    path.write_bytes(path.read_bytes()[:5000])
    with refused(InputError, "net.sqlite", "export"):
        import_trace(path, gpu)


def test_a_recorded_report(tmp_path: Path) -> None:
    """Two streams of an H200 that wait for each other, by Nsight Systems 2025.3 (tables that are not read are left
    out)."""
    path = tmp_path / "streams.sqlite"
    path.write_bytes(gzip.decompress((TRACES / "streams_h200.nsys.sqlite.gz").read_bytes()))
    workload = import_trace(path)
    assert workload.gpu == "h200-sxm"
    assert workload.iteration_us == (366.6, 501.4, 370.4, 330.8, 300.8)
    assert summarise(workload).alone_us == pytest.approx(366.6, abs=0.5)
    assert len(workload.stream_priorities) == 2
    for variant in workload.variants:
        kinds = [(op.kind, op.stream) for op in variant.ops]
        # Four layers of two kernels on either stream, the side stream's behind the first event.
        assert kinds.count((OpKind.KERNEL, 0)) == 9
        assert kinds.count((OpKind.KERNEL, 1)) == 8
        first_wait, second_wait = [i for i, op in enumerate(variant.ops) if op.kind is OpKind.WAIT]
        assert kinds[first_wait] == (OpKind.WAIT, 1)
        assert kinds[second_wait] == (OpKind.WAIT, 0)
        assert kinds.index((OpKind.KERNEL, 1)) > first_wait
        assert kinds[-4:-1] == [(OpKind.COPY_TO_HOST, 0), (OpKind.SYNC_STREAM, 0), (OpKind.SYNC_STREAM, 0)]


def test_what_began_before_the_session_has_a_time_before_0(tmp_path: Path, gpu: GpuSpec) -> None:
    path = three_kernels(tmp_path / "net.sqlite").close()
    expected = import_trace(path, gpu)
    database = sqlite3.connect(path)
    for table in ("KERNEL", "MEMCPY", "RUNTIME"):
        database.execute(f"UPDATE CUPTI_ACTIVITY_KIND_{table} SET start = start - 1030000, end = end - 1030000")
    database.execute("UPDATE NVTX_EVENTS SET start = start - 1030000, end = end - 1030000")
    database.commit()
    database.close()
    assert import_trace(path, gpu) == expected


def test_kernels_of_unknown_shared_memory_use_none(tmp_path: Path, gpu: GpuSpec) -> None:
    path = three_kernels(tmp_path / "net.sqlite").close()
    database = sqlite3.connect(path)
    for column in ("staticSharedMemory", "dynamicSharedMemory"):
        database.execute(f"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN {column}")
    database.commit()
    database.close()
    workload = import_trace(path, gpu)
    assert {kernel.shared_bytes for kernel in workload.kernels} == {0}
    assert "3 kernels without shared memory, taken to use none" in workload.source


@pytest.mark.parametrize("pageable", [True, False])
def test_the_memory_of_a_copy_says_whether_its_call_moves_it(tmp_path: Path, gpu: GpuSpec, pageable: bool) -> None:
    """From 30 to 1040 on the device; the call lasts from 20 to 1020."""
    export = Export(tmp_path / "net.sqlite")
    export.call("cudaMemcpyAsync_v3020", 20.0, 1000.0, 1)
    export.copy(30.0, 1010.0, 1, kind=1, size=10_000_000, srcKind=0 if pageable else 1, dstKind=2)
    export.call("cudaLaunchKernel_v7000", 1060.0, 4.0, 2)
    export.kernel(1066.0, 10.0, 2)
    (variant,) = import_trace(export.close(), gpu).variants
    synchronises = [op.kind is OpKind.SYNC for op in variant.ops]
    assert synchronises == [False, *[True] * pageable, False, True]
