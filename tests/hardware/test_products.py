"""Which specification a GPU has: by its driver's name to the word, its SMs and its memory."""

import pytest

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuProduct, load_gpu, match_gpu, taken_for
from tests.refusals import refused


@pytest.mark.parametrize(
    ("device", "spec"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm"),
        ("A100-SXM4-80GB", "a100-sxm"),
        ("Tesla V100-SXM2-32GB", "v100-sxm"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("GeForce RTX 3070", "rtx-3070"),
        ("NVIDIA H200", "h200-sxm"),
        ("Tesla K20m", "k20m"),
        ("NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("Tesla V100-PCIE-32GB", "v100-pcie"),
        ("Tesla T4", "t4"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA GeForce RTX 2080 Ti", "rtx-2080-ti"),
        ("AMD Instinct MI250X / MI250", "mi250"),
        ("AMD Instinct MI300X OAM", "mi300x"),
    ],
)
def test_the_specification_follows_from_the_name(device: str, spec: str) -> None:
    assert match_gpu(device, "f").name == spec


@pytest.mark.parametrize(
    "device",
    [
        "NVIDIA GeForce RTX 3070 Ti",
        "NVIDIA GeForce RTX 3070 Laptop GPU",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "NVIDIA A100-SXM4-40GB",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 2080",
        "NVIDIA L40",
        "AMD Instinct MI250X",
        "NVIDIA H100 NVL",
        "Tesla V100-SXM3-32GB",
        "AMD Radeon Pro VII / AMD Radeon Instinct MI50 32GB",
        "NVIDIA",
        "toy-4sm",
    ],
)
def test_another_product_of_a_like_name_has_no_specification(device: str) -> None:
    with pytest.raises(InputError, match=r"^f: its GPU is .*; say which specification fits \(gpu=, --gpu\): a100-"):
        match_gpu(device, "f")


def test_a_slice_under_the_whole_ones_name_is_told_by_its_size() -> None:
    name = "NVIDIA H100 80GB HBM3"
    assert match_gpu(GpuProduct(name, 132, 85_045_878_784), "f").name == "h100-sxm"
    with refused(InputError, "16 SMs", "10.5 GB", "h100-sxm"):
        match_gpu(GpuProduct(name, 16, 10_500_000_000), "f")
    with refused(InputError, "132 SMs", "96 GB"):
        match_gpu(GpuProduct(name, 132, 96_000_000_000), "f")


def test_a_gpu_that_is_taken_for_another_is_noted() -> None:
    a100 = load_gpu("a100-sxm")
    assert taken_for(GpuProduct("NVIDIA A100-PG509-200", 108, 84_990_623_744), a100) == ""
    assert (
        taken_for(GpuProduct("NVIDIA A100-PG509-200", 108, 42_505_273_344), a100)
        == "recorded on 'NVIDIA A100-PG509-200' with 108 SMs and 42.5 GB; a100-sxm has 108 SMs and 80 GB"
    )


def test_what_a_file_says_of_a_gpu_is_checked() -> None:
    assert GpuProduct.of("x\x1b[31m" + "y" * 100, 1.5, "80 GB") == GpuProduct("x?[31m" + "y" * 74)
    assert GpuProduct.of(None, -1, 2**60) == GpuProduct()
