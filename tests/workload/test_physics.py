"""Versions of the laws: what differs from one to the next, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.workload.kernel import Kernel, KernelClass
from gpusched_env.workload.profile import profile_kernel

H100, H200, L4 = load_gpu("h100-sxm"), load_gpu("h200-sxm"), load_gpu("l4")


def ratio(name: str, duration_us: float, kind: KernelClass, gpu: str = "h200-sxm", physics: int = 2) -> float:
    """What a kernel of an H100 takes elsewhere, over what it took."""
    kernel = Kernel(
        name=name, grid=(8192, 1, 1), block=(128, 1, 1), registers=32, duration_us=duration_us, kind=kind, waves="even"
    )
    there = profile_kernel(kernel, H100, load_gpu(gpu), physics=physics)  # type: ignore[arg-type]
    return there.duration_us / duration_us


def test_what_a_kernel_brings_in_says_whether_it_gains_by_a_faster_dram() -> None:
    """By class, 20 us at 30 % of the H100's bandwidth are 20 MB, 80 us are 80 MB; its L2 has 50. Names that stream move
    three times as much, so that 40 us are beyond it. The first version takes all of a class's traffic for the DRAM's.
    """
    assert ratio("batch_norm", 20.0, "memory") == pytest.approx(1.0, abs=0.01)
    assert 0.85 < ratio("batch_norm", 80.0, "memory") < 0.97
    assert ratio("vectorized_elementwise_kernel", 10.0, "memory") == pytest.approx(1.0, abs=0.01)
    assert ratio("vectorized_elementwise_kernel", 40.0, "memory") == pytest.approx(3.35 / 4.8, abs=0.02)
    first = [ratio(name, 40.0, "memory", physics=1) for name in ("batch_norm", "vectorized_elementwise_kernel")]
    assert first[0] == first[1] < 0.97


def test_products_do_not_wait_for_a_slow_dram() -> None:
    """58 SMs at 2,040 MHz for 132 at 1,830 or so; 300 GB/s for 3,350."""
    by_clock = H100.sms * H100.clock_mhz / (L4.sms * L4.clock_mhz)
    assert ratio("gemm", 400.0, "compute", "l4") == pytest.approx(by_clock, rel=0.35)
    assert ratio("gemm", 400.0, "compute", "l4", physics=1) > 1.5 * by_clock


def test_a_counter_is_believed() -> None:
    kernel = Kernel(
        name="softmax", grid=(8192, 1, 1), block=(128, 1, 1), registers=32, duration_us=80.0, kind="memory",
        dram_bytes=1e6, waves="even",
    )  # fmt: skip
    assert profile_kernel(kernel, H100, H200, physics=2).duration_us == pytest.approx(80.0, rel=0.01)


@pytest.mark.parametrize(
    ("name", "version"), [("ServingFleetSlice", 2), ("KernelGraph", 2), ("InferenceBesideTraining", 1)]
)
def test_a_scenario_says_which_version_it_is_played_by(name: str, version: int) -> None:
    first, second = (build_problem(load_scenario(name, physics=each)) for each in (1, 2))
    assert build_problem(load_scenario(name)).scenario.physics == version
    alone = [np.array([kernel.duration_us for kernel in problem.kernels]) for problem in (first, second)]
    assert np.array_equal(*alone) == (not first.carried_over)
