"""The summary of a workload, by hand."""

from pathlib import Path

import msgspec
import pytest

from gpusched_env.experiments.importing import Imported
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.importers import summarise
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import GraphNode, Op, OpKind, Variant, Workload

SPEC = load_gpu("h100-sxm")
GPU = msgspec.structs.replace(
    SPEC,
    timing=msgspec.structs.replace(SPEC.timing, launch_latency_us=2.0, stream_gap_us=1.0, sync_latency_us=3.0),
)


def kernel(name: str, blocks: int, duration_us: float, kind: str) -> Kernel:
    # 256 threads of 32 registers: 8 blocks an SM, 1056 on the GPU.
    return Kernel(name=name, grid=(blocks, 1, 1), block=(256, 1, 1), registers=32, duration_us=duration_us, kind=kind)  # type: ignore[arg-type]


def workload(*variants: tuple[Op, ...]) -> Workload:
    return Workload(
        name="by hand",
        gpu="h100-sxm",
        source="test",
        kernels=(kernel("big", 2112, 30.0, "memory"), kernel("small", 66, 10.0, "latency")),
        variants=tuple(Variant(ops=ops) for ops in variants),
        iteration_us=(60.0, 62.0, 70.0),
    )


def test_figures_by_hand() -> None:
    ops = (
        Op(OpKind.KERNEL, 5.0, 0, 30.0),  # 7 to 37
        Op(OpKind.KERNEL, 5.0, 1, 10.0),  # queued behind it: 38 to 48
        Op(OpKind.SYNC, 1.0),  # 51
        Op(OpKind.COPY_TO_HOST, 3.0, -1, 2.0, 100),  # 56 to 58, idle for 8
        Op(OpKind.MEMSET, 0.0, -1, 1.0, 400),  # 59 to 60
        Op(OpKind.SYNC, 0.0),  # 63
    )
    figures = summarise(workload(ops), GPU)
    assert figures.alone_us == 63.0
    assert figures.wall_us == 62.0
    assert figures.pace == pytest.approx(1.0 / 62.0)
    assert (figures.kernels, figures.identities, figures.iterations) == (2, 2, 1)
    assert (figures.copies, figures.copy_bytes, figures.memsets, figures.syncs) == (1, 100, 1, 2)
    assert figures.busy_us == 43.0
    assert figures.idle_share == pytest.approx(20.0 / 63.0)
    assert (figures.gaps, figures.gap_median_us, figures.gap_p95_us) == (1, 8.0, 8.0)
    assert figures.queued_gap_us == 1.0, "the gap of 1 between the queued kernels is not counted"
    assert figures.occupancy == pytest.approx((30.0 * 1.0 + 10.0 * 66 / 1056) / 40.0)
    assert figures.sm_share == pytest.approx((30.0 * 1.0 + 10.0 * 0.5) / 40.0)
    assert figures.class_shares == {"compute": 0.0, "memory": 0.75, "mixed": 0.0, "latency": 0.25}


def test_means_over_iterations() -> None:
    one = (Op(OpKind.KERNEL, 5.0, 0, 30.0), Op(OpKind.SYNC, 0.0))
    two = (*one, Op(OpKind.KERNEL, 5.0, 0, 20.0), Op(OpKind.SYNC, 0.0))
    figures = summarise(workload(one, two), GPU)
    assert (figures.kernels, figures.syncs, figures.busy_us) == (1.5, 1.5, 40.0)
    # The gap of the second: from the kernel's end to the synchronisation's return, the host, the launch.
    assert (figures.gaps, figures.gap_median_us) == (0.5, 10.0)


def test_the_pace_compares_a_median_with_a_median() -> None:
    """Iterations that take alone what was recorded keep their pace, whatever their mean is."""
    short, long = ((Op(OpKind.KERNEL, us, 0, 30.0), Op(OpKind.SYNC, 0.0)) for us in (5.0, 65.0))
    recorded = msgspec.structs.replace(workload(short, short, long), iteration_us=(40.0, 40.0, 100.0), profiled=True)
    figures = summarise(recorded, GPU)
    assert (figures.wall_us, figures.alone_us, figures.pace) == (40.0, 40.0, 0.0)
    assert figures.paces == (0.0, 0.0)
    assert figures.idle_share == pytest.approx(1.0 - 30.0 / 60.0)


def test_iterations_that_have_not_kept_their_pace_are_shown(tmp_path: Path) -> None:
    short, long = ((Op(OpKind.KERNEL, us, 0, 30.0), Op(OpKind.SYNC, 0.0)) for us in (5.0, 65.0))
    recorded = msgspec.structs.replace(workload(short, short, long), iteration_us=(40.0, 50.0, 80.0), profiled=True)
    figures = summarise(recorded, GPU)
    assert figures.paces == pytest.approx((-0.2, 0.25))
    assert "(iterations: -20.0% to +25.0%)" in str(Imported(tmp_path / "w.json", figures))
    # Without the profiler the times are those of other iterations.
    other = summarise(msgspec.structs.replace(recorded, profiled=False), GPU)
    assert other.paces == pytest.approx((-0.2, 1.0))
    kept = summarise(msgspec.structs.replace(recorded, iteration_us=(40.0, 41.0, 100.0)), GPU)
    assert "iterations:" not in str(Imported(tmp_path / "w.json", kept))


def test_streams_graphs_and_threads_by_hand() -> None:
    ops = (
        Op(OpKind.KERNEL, 5.0, 0, 30.0),  # 7 to 37
        Op(OpKind.RECORD, 1.0, 0),
        Op(OpKind.KERNEL, 11.0, 1, 10.0, stream=1),  # 19 to 29, beside it
        Op(OpKind.WAIT, 0.0, 0, stream=1),
        Op(OpKind.GRAPH, 1.0, 0, stream=1),  # behind the first: 37 and 3 to 60, a gap of 2 in it
        Op(OpKind.SYNC, 0.0),
    )
    nodes = (
        GraphNode(OpKind.KERNEL, 1, 10.0),
        GraphNode(OpKind.MEMSET, -1, 5.0, 8, after=(0,)),
        GraphNode(OpKind.COPY_TO_HOST, -1, 8.0, 100, after=(0,)),
    )
    other = (Op(OpKind.HOST, 70.0),)
    timing = msgspec.structs.replace(GPU.timing, event_latency_us=3.0, graph_gap_us=2.0)
    streams = msgspec.structs.replace(
        workload(ops[:1]),
        graphs=(nodes,),
        stream_priorities=(0, 0),
        variants=(Variant(ops=ops, threads=(other,)),),
    )
    figures = summarise(streams, msgspec.structs.replace(GPU, timing=timing))
    assert figures.alone_us == 70.0
    assert (figures.streams, figures.threads, figures.event_waits, figures.graphs) == (2, 2, 1.0, 1.0)
    assert (figures.kernels, figures.copies, figures.copy_bytes, figures.memsets, figures.syncs) == (3, 1, 100, 1, 1)
    assert figures.busy_us == 30.0 + 10.0 + 10.0 + 5.0 + 8.0
    # 7 to 37, 40 to 50, 52 to 60; two at a time from 19 to 29 and from 52 to 57.
    assert figures.idle_share == pytest.approx(1.0 - 48.0 / 70.0)
    assert figures.overlap == pytest.approx(15.0 / 48.0)
    assert (figures.gaps, figures.gap_median_us) == (2, 2.5)
