"""Workloads on a GPU that they were not recorded on: literal shapes and times."""

from __future__ import annotations

import msgspec

from gpusched_env.hardware.occupancy import footprint
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import load_workload
from gpusched_env.workload.carry_over import CarriedOver, carry_over
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Child, GraphNode, Op, OpKind, Variant, Workload

H100, V100, RTX = load_gpu("h100-sxm"), load_gpu("v100-sxm"), load_gpu("rtx-3090")


def kernel(
    name: str, blocks: int, kind: str = "memory", shared_bytes: int = 0, block: tuple[int, int, int] = (128, 1, 1)
) -> Kernel:
    return Kernel(
        name=name, grid=(blocks, 2, 1), block=block, registers=32, shared_bytes=shared_bytes,
        duration_us=20.0, kind=kind,  # type: ignore[arg-type]
    )  # fmt: skip


def workload(*kernels: Kernel) -> Workload:
    ops = [Op(OpKind.KERNEL, 1.0, i, 22.0) for i in range(len(kernels))]
    parent = Op(OpKind.KERNEL, 1.0, 0, 22.0, children=(Child(0, 11.0),))
    return Workload(
        name="w", gpu="h100-sxm", source="made", kernels=kernels, iteration_us=(100.0,),
        graphs=((GraphNode(OpKind.KERNEL, 0, 24.0), GraphNode(OpKind.COPY_TO_HOST, -1, 2.0, 64, (0,))),),
        variants=(Variant(ops=(*ops, parent, Op(OpKind.GRAPH, 1.0, 0), Op(OpKind.SYNC, 2.0))),),
    )  # fmt: skip


def test_nothing_changes_where_it_was_recorded() -> None:
    recorded = workload(kernel("gemm", 132, "compute", 213_460))
    assert carry_over(recorded, H100) == (recorded, None)


def test_tiles_that_do_not_fit_are_split_and_matrix_kernels_change_by_the_ratio_of_rates() -> None:
    recorded = workload(
        kernel("bf16_gemm", 66, "compute", 213_460),
        kernel("bf16_gemm", 65, "compute", 100_000),
        kernel("sm90_xmma_gemm_tf32f32", 66, "compute"),
        kernel("relu", 250),
    )
    for gpu, half, single in ((RTX, 8.0, 8.0), (V100, 4.0, 16.0)):
        carried, done = carry_over(recorded, gpu)
        assert [k.duration_us for k in carried.kernels] == [20.0 * half, 20.0, 20.0 * single, 20.0]
        assert done == CarriedOver("w", "h100-sxm", gpu.name, kernels=4, split=1 + (gpu is V100), rescaled=2)
        # 213,460 bytes in a block become a quarter, with four times the blocks.
        assert (carried.kernels[0].grid, carried.kernels[0].shared_bytes) == ((264, 2, 1), 53_365)
        *plain, parent, graph, sync = carried.variants[0].ops
        assert [op.duration_us for op in plain] == [22.0 * half, 22.0, 22.0 * single, 22.0]
        assert (parent.duration_us, parent.children[0].duration_us) == (22.0 * half, 11.0 * half)
        assert [node.duration_us for node in carried.graphs[0]] == [24.0 * half, 2.0]
        assert [op.host_us for op in carried.variants[0].ops] == [op.host_us for op in recorded.variants[0].ops]
        assert (graph.duration_us, sync.duration_us) == (0.0, 0.0)


def test_blocks_of_too_many_threads_or_registers_fit_too() -> None:
    limits = msgspec.structs.replace(V100.limits, threads_per_block=256, registers_per_thread=24, registers=4096)
    small = msgspec.structs.replace(V100, name="small", limits=limits)
    recorded = workload(kernel("relu", 10, block=(4, 150, 1)), kernel("copy", 10, block=(1024, 1, 1)))
    carried, done = carry_over(recorded, small)
    assert done is not None
    assert done.split == 2
    for before, after in zip(recorded.kernels, carried.kernels, strict=True):
        assert footprint(small, after.threads, after.registers, after.shared_bytes).blocks_per_sm >= 1
        assert after.blocks * after.threads >= before.blocks * before.threads
    # 24 registers a thread are 768 a warp: five warps share the 4096.
    assert [(k.grid[0], k.block, k.registers) for k in carried.kernels] == [
        (40, (4, 38, 1), 24),
        (80, (128, 1, 1), 24),
    ]


def test_without_matrix_rates_kernels_take_as_many_clocks() -> None:
    unknown = msgspec.structs.replace(V100, name="unknown", matrix_rates=None)
    carried, _ = carry_over(workload(kernel("bf16_gemm", 132, "compute")), unknown)
    assert carried.kernels[0].duration_us == 20.0


def test_it_says_in_a_line_what_was_done() -> None:
    _, done = carry_over(workload(kernel("bf16_gemm", 66, "compute", 213_460)), RTX)
    assert str(done) == (
        "w was recorded on h100-sxm: durations on rtx-3090 are estimates (of 1 kernel, 1 split to fit, "
        "1 rescaled by matrix rates)"
    )
    _, done = carry_over(workload(kernel("relu", 66)), RTX)
    assert str(done) == "w was recorded on h100-sxm: durations on rtx-3090 are estimates", "nothing to count"
    graph = load_workload("irregular(family=wired,seed=1,kernels=8)")
    assert str(carry_over(graph, load_gpu("rtx-3090"))[1]).startswith(f"{graph.name} was generated for h100-sxm: ")
