"""Products of 32-bit factors without tensor cores, on a GPU that has none."""

from __future__ import annotations

import pytest

from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import load_workload
from gpusched_env.workload.carry_over import by_vector_units, carry_over, uses_vector_units


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


def test_they_take_twice_as_long_on_an_mi50_in_place_of_sixteen_times() -> None:
    """64 lanes of an FMA in a unit against 128 of an H100's SM; kernels of tensor cores by their ratio as before."""
    recorded = load_workload("alexnet_fp32_infer_b1")
    gpu = load_gpu("mi50")
    before, after = (carry_over(each, gpu)[0] for each in (recorded, by_vector_units(recorded)))
    ratios = {
        (round(old.duration_us / raw.duration_us, 6), round(new.duration_us / raw.duration_us, 6))
        for raw, old, new in zip(recorded.kernels, before.kernels, after.kernels, strict=True)
        if old.duration_us != raw.duration_us
    }
    assert ratios == {(16.0, 16.0), (16.0, 2.0)}
    launched = {op.index: op.duration_us for op in after.variants[0].ops if op.index >= 0}
    recorded_us = {op.index: op.duration_us for op in recorded.variants[0].ops if op.index >= 0}
    factors = {round(launched[index] / recorded_us[index], 6) for index in launched if recorded_us[index] > 0.0}
    assert factors == {1.0, 2.0, 16.0}
