"""Products of 32-bit factors without tensor cores, on a GPU that has none."""

from __future__ import annotations

import pytest

from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.carry_over import carry_over, uses_vector_units
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import profile_kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload


@pytest.mark.parametrize(
    ("name", "vector"),
    [
        ("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize32x32x8", True),
        ("implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false, false, true>", True),
        ("ampere_sgemm_128x64_tn", True),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize64x32x64", False),
        ("sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x64x32", False),
        ("cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_32x6_nn_align4>", False),
        ("nvjet_sm90_hsh_24x64_64x16_4x2_h_bz_bias_TNN", False),
        ("vectorized_layer_norm_kernel<Half, float, false>", False),
    ],
)
def test_names_say_which_products_use_tensor_cores(name: str, vector: bool) -> None:
    assert uses_vector_units(name) == vector


def product(name: str, blocks: int = 1024) -> Workload:
    kernel = Kernel(
        name=name, grid=(blocks, 1, 1), block=(128, 1, 1), registers=128, shared_bytes=0, duration_us=400.0,
        kind="compute", waves="even",
    )  # fmt: skip
    ops = (Op(OpKind.KERNEL, 1.0, 0, 400.0), Op(OpKind.SYNC, 2.0))
    return Workload(
        name="w", gpu="h100-sxm", source="made", kernels=(kernel,), iteration_us=(500.0,), variants=(Variant(ops=ops),)
    )


def on(gpu: str, recorded: Workload) -> float:
    there, _ = carry_over(recorded, load_gpu(gpu))
    return profile_kernel(there.kernels[0], recorded.spec, load_gpu(gpu)).duration_us / 400.0


def test_they_take_twice_the_clocks_on_an_mi50_in_place_of_sixteen_times() -> None:
    """64 lanes of an FMA in a unit against 128 of an H100's SM; kernels of tensor cores by their ratio as before."""
    vector, tensor = product("ampere_sgemm_128x64_tn"), product("sm80_xmma_gemm_tf32f32")
    mi50 = load_gpu("mi50")
    assert [carry_over(vector, mi50, v)[0].kernels[0].duration_us for v in (1, 2)] == [6400.0, 800.0]
    assert [carry_over(tensor, mi50, v)[0].kernels[0].duration_us for v in (1, 2)] == [6400.0, 6400.0]


@pytest.mark.parametrize("blocks", [132, 200, 1024, 5000])
def test_boards_that_were_measured_take_what_they_sustain(blocks: int) -> None:
    """50.6 TFLOP/s of an H100 over 8.82 of an L4 and 3.88 of a T4: by no wave of blocks, and not by clocks."""
    recorded = product("ampere_sgemm_128x64_tn", blocks)
    assert on("l4", recorded) == pytest.approx(50.6 / 8.82, rel=0.02)
    assert on("t4", recorded) == pytest.approx(50.6 / 3.88, rel=0.02)
    assert on("l4", product("sm80_xmma_gemm_tf32f32", blocks)) != pytest.approx(50.6 / 8.82, rel=0.05)


def test_a_grid_that_leaves_sms_idle_is_not_bound_by_arithmetic() -> None:
    assert carry_over(product("ampere_sgemm_128x64_tn", 131), load_gpu("l4"))[0].kernels[0].duration_us == 400.0
