"""Kernel classes from names and shapes."""

import pytest

from gpusched_env.workload.kernel import classify


@pytest.mark.parametrize(
    ("name", "blocks", "duration_us", "expected"),
    [
        # Nsight Compute on an H100 saw for these, in this order, as % of peak SM / DRAM throughput:
        ("sm90_xmma_fprop_implicit_gemm_f16f16_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1", 132, 33.0, "compute"),
        ("void implicit_convolve_sgemm<__half, __half, 1024, 5, 5, 3, 3, 3, 1, false>", 25088, 106.5, "compute"),
        ("nvjet_sm90_hsh_192x128_64x5_1x2_h_bz_coopB_bias_TNT", 128, 10.6, "compute"),
        ("nvjet_sm90_hsh_96x64_64x10_1x2_h_bz_bias_TNN", 128, 7.1, "mixed"),  # 21 / 14
        ("nvjet_sm90_hsh_128x8_64x12_2x1_v_bz_splitK_bias_TNT", 128, 78.7, "memory"),  # 5 / 82
        ("nvjet_sm90_hsh_64x8_64x16_4x1_v_bz_bias_TNT", 64, 14.3, "memory"),  # 6 / 65
        ("void at::native::vectorized_elementwise_kernel<8, launch_clamp_scalar>", 25088, 34.9, "memory"),  # 31 / 75
        ("void cudnn::engines_precompiled::nchwToNhwcKernel<__half, __half, float>", 25088, 53.8, "memory"),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float, __half>", 512, 6.0, "memory"),
        ("void gemv2T_kernel_val<int, int, float, float>", 1000, 30.6, "memory"),
        ("void at::native::vectorized_elementwise_kernel<8, launch_clamp_scalar>", 190, 1.4, "latency"),  # 3 / 4
        ("nvjet_sm90_hsh_64x32_64x16_4x2_h_bz_NNT", 104, 2.9, "latency"),  # 7 / 8
        ("vision::ops::gather_keep_from_mask(bool*, unsigned long long const*, int)", 1, 90.1, "latency"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16", 96, 12.0, "compute"),
        ("my_own_kernel", 500, 40.0, "mixed"),
    ],
)
def test_known_kernels(name: str, blocks: int, duration_us: float, expected: str) -> None:
    assert classify(name, blocks, duration_us) == expected
