"""Blocks of a long kernel that do not all take the same time: which kernels, by how much, and what stays as it was."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import measurements, situation, tenant
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import LEAST_UNEVEN_US, UNEVEN, longest_work, profile_kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

GPU = load_gpu("h200-sxm")
PRODUCT = Kernel(
    name="gemm", grid=(132, 1, 1), block=(384, 1, 1), registers=168, shared_bytes=200_000, duration_us=100.0,
    kind="compute", waves="even",
)  # fmt: skip
"""A block an SM."""


def spread(**changes: Any) -> float:
    return float(profile_kernel(replace(PRODUCT, **changes), GPU, GPU).block[0]["spread"])


def test_long_kernels_that_compute_in_one_wave() -> None:
    assert spread() == UNEVEN
    assert spread(grid=(2, 1, 1)) == UNEVEN
    for changes in (
        {"grid": (133, 1, 1)},  # Some SMs have a second block.
        {"grid": (1, 1, 1)},
        {"kind": "memory"},
        {"duration_us": 0.99 * LEAST_UNEVEN_US},
        {"waves": "full"},
        {"waves": "together"},
    ):
        assert spread(**changes) == 0.0, changes


def test_a_kernel_has_its_uneven_ends_on_another_gpu_if_it_fits_there_at_once() -> None:
    larger = other_gpu(sms=264)
    profile = profile_kernel(replace(PRODUCT, grid=(264, 1, 1)), GPU, larger)
    assert profile.block[0]["spread"] == UNEVEN
    assert profile_kernel(PRODUCT, GPU, other_gpu(sms=66)).block[0]["spread"] == 0.0


def other_gpu(sms: int) -> Any:
    return replace(GPU, name=f"with {sms}", sms=sms, sm_order="linear")


@pytest.mark.parametrize("device", ["compiled", "reference"])
def test_alone_it_takes_as_long_as_recorded_and_frees_sms_before(device: str) -> None:
    variant = Variant(ops=(Op(OpKind.KERNEL, 1.0, 0, PRODUCT.duration_us), Op(OpKind.SYNC, 1.0)))
    program = Workload(
        name="one", gpu=GPU.name, source="test", kernels=(PRODUCT,), iteration_us=(110.0,), variants=(variant,)
    )
    problem = situation([tenant("one")], GPU.name, 3_000.0, {"one": program})
    kernels = play("pass-through", problem, seed=0, device=device, record="blocks").timeline
    took = kernels.kernels.column("ended_us") - kernels.kernels.column("started_us")
    assert np.median(took) == pytest.approx(PRODUCT.duration_us, rel=0.01)
    assert len(set(np.round(took, 3))) > 1, "draws differ from launch to launch"
    blocks = kernels.blocks
    first = blocks.column("kernel") == blocks.column("kernel")[0]
    ends = (blocks.column("ended_us") - blocks.column("started_us"))[first]
    assert ends.min() / ends.max() == pytest.approx((1 - math.sqrt(3) * UNEVEN) / (1 + math.sqrt(3) * UNEVEN), abs=0.02)


def test_the_deviation_is_what_was_recorded() -> None:
    """The first SM that a kernel leaves, over the last, in the mean over long kernels of libraries."""
    shares = []
    for row in measurements("ends.jsonl", "h200"):
        if row["alone_us"] >= LEAST_UNEVEN_US:
            own = row["free_us"][GPU.sms - row["blocks"] :]
            shares.append(own[0] / own[-1])
    assert len(shares) == 24
    mean = float(np.mean(shares))
    fitted = (1.0 - mean) / (1.0 + mean) / math.sqrt(3.0)
    assert fitted == pytest.approx(UNEVEN, abs=0.005)


def test_shorter_kernels_were_seen_to_leave_at_once() -> None:
    rows = [row for row in measurements("ends.jsonl", "h200") if row["alone_us"] < LEAST_UNEVEN_US]
    assert len(rows) == 2
    assert min(row["free_us"][0] / row["free_us"][-1] for row in rows) > 0.95


def test_the_longest_of_many_blocks() -> None:
    draws = 1.0 + 0.07 * math.sqrt(3.0) * np.random.default_rng(0).uniform(-1.0, 1.0, (20_000, 132))
    assert longest_work(0.07, 132) == pytest.approx(draws.max(axis=1).mean(), rel=1e-4)
    assert longest_work(0.07, 1) == longest_work(0.0, 132) == 1.0
