"""Recordings of single steps become the workload of a serving engine."""

from __future__ import annotations

from msgspec.structs import replace

from gpusched_env.errors import InputError
from gpusched_env.workload.importers.combining import merge_steps, named_step
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.serving import Decode, Prefill
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload
from tests.refusals import refused


def recording(*iterations: list[tuple[str, float]], gpu: str = "h200-sxm") -> Workload:
    """Iterations of kernels by name and time; a kernel's row has the mean."""
    names = list(dict.fromkeys(name for iteration in iterations for name, _ in iteration))
    kernels = tuple(
        Kernel(name=name, grid=(1, 1, 1), block=(32, 1, 1), registers=16, duration_us=1.0) for name in names
    )
    variants = tuple(
        Variant(ops=(*(Op(OpKind.KERNEL, 1.0, names.index(name), us) for name, us in each), Op(OpKind.SYNC)))
        for each in iterations
    )
    return Workload(name="x", gpu=gpu, source="test", kernels=kernels, variants=variants, iteration_us=(9.0,))


def test_names_say_which_step_it_is() -> None:
    assert named_step("llama_1b_prefill_p512") == Prefill(tokens=512)
    assert named_step("mine_decode_b8_c1024") == Decode(batch=8, context=1024)
    for wrong in ("llama_1b", "prefill_p0", "x_decode_b8", "x_decode_b8_c1024_more"):
        with refused(InputError, "no step"):
            named_step(wrong)


def test_steps_become_variants_in_order_of_batch_and_length_and_share_kernels() -> None:
    merged = merge_steps(
        "engine",
        {
            "e_decode_b2_c8": recording([("matmul", 4.0), ("attention", 6.0)]),
            "e_decode_b1_c8": recording([("attention", 2.0), ("matmul", 2.0)]),
            "e_prefill_p4": recording([("other", 5.0)]),
        },
    )
    steps = [Prefill(tokens=4), Decode(batch=1, context=8), Decode(batch=2, context=8)]
    assert [variant.step for variant in merged.variants] == steps
    assert {kernel.name: kernel.duration_us for kernel in merged.kernels} == {
        "other": 5.0, "attention": 4.0, "matmul": 3.0,
    }  # fmt: skip
    assert merged.name == "engine"
    times = [[(merged.kernels[op.index].name, op.duration_us) for op in v.ops[:-1]] for v in merged.variants]
    assert times[1:] == [[("attention", 2.0), ("matmul", 2.0)], [("matmul", 4.0), ("attention", 6.0)]]


def test_the_shortest_iteration_counts_and_collectives_do_not_wait_for_another_gpu() -> None:
    merged = merge_steps(
        "engine",
        {
            "e_decode_b1_c8": recording(
                [("matmul", 3.0), ("ncclDevKernel_AllReduce", 500.0), ("ncclDevKernel_AllReduce", 600.0)],
                [("matmul", 2.0), ("ncclDevKernel_AllReduce", 9.0), ("ncclDevKernel_AllReduce", 40.0)],
            )
        },
    )
    assert [op.duration_us for op in merged.variants[0].ops[:-1]] == [2.0, 9.0, 9.0]


def test_what_cannot_be_merged_is_refused() -> None:
    one = recording([("k", 1.0)])
    with refused(InputError, "recordings"):
        merge_steps("engine", {})
    with refused(InputError, "h100-sxm, h200-sxm", "GPUs"):
        merge_steps("engine", {"e_prefill_p4": one, "e_decode_b1_c8": recording([("k", 1.0)], gpu="h100-sxm")})
    with refused(InputError, "CUDA", "streams"):
        merge_steps("engine", {"e_prefill_p4": replace(one, stream_priorities=(0, 0))})
