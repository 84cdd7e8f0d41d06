"""The law by which memory hogs on the cores slow a kernel on the GPU, and what sets its two numbers.

*Kappa*, what a byte of the cores costs, is set by histo beside two hogs. The *exponent* of the saturation of that cost
says how much a third one adds. No run with one hog is published. So it is set by what is published of three, in two
ways, and each figure of three hogs is judged with the way that does not use it: by histo, which they slow "up to 3x"
(:data:`BY_HISTO`), and by the axis that spmv and lbm stay within (:data:`BY_AXIS`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, Literal

from gpusched_env.data.parboil import HISTO, OTHERS, histo_us, published, shares_of_histo
from gpusched_env.hardware.contention import served_traffic
from gpusched_env.hardware.occupancy import gpu_record
from gpusched_env.hardware.shared_memory import left_for_gpu
from gpusched_env.hardware.specs import load_gpu

OF_GPU: Final = 4.0
"""Exponent of the saturation of the GPU's own traffic."""
BY_HISTO: Final = 1.0
"""What :func:`exponent_by_histo` comes to: the least that the law knows, with which memory serves both sides in
proportion to what they ask for, and each hog adds as much as the one before."""
BY_AXIS: Final = 1.04
"""What :func:`exponent_by_axis` comes to."""
AXIS: Final = 2.5
"""End of the axis of Figure 9, which only histo and sad exceed."""
HOG_MISSES_PER_US: Final = 62.5
"""Misses of IsolBench's ``bandwidth -a write`` on a Cortex core: 4 GB/s of refills (assumed; not stored)."""
WRITTEN_BACK: Final = 128.0
"""Bytes a miss: the line is read, and written back later."""
Cores = Literal["cortex", "denver"]


def reachable() -> float:
    """Bandwidth of a TX2 that kernels reach, bytes/us."""
    return float(gpu_record(load_gpu("tx2"))[0]["dram_bytes_per_us"])


def slowdown_of(share: float, left: float) -> float:
    """Slowdown of a kernel that takes a ``share`` of the bandwidth alone, where a share of ``left`` is left for it."""
    asked = share / (1.0 - share**OF_GPU) ** (1.0 / OF_GPU)
    return share / float(served_traffic(asked, left, OF_GPU))


def slowdown_of_histo(left: float) -> float:
    """Slowdown of all its kernels together, where this share of the bandwidth is left: what the laws say."""
    times, shares = histo_us(), shares_of_histo()
    return sum(times[name] * slowdown_of(shares[name], left) for name in HISTO) / sum(times.values())


def root_of_falling(function: Callable[[float], float], target: float, low: float, high: float) -> float:
    """The argument at which a falling function reaches a target."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if function(middle) > target else (low, middle)
    return 0.5 * (low + high)


def cost_of_two(cores: Cores, saturation: float) -> float:
    """What two hogs cost of the memory, as a share of the reachable bandwidth, by histo's slowdown in the logs."""
    return root_of_falling(lambda cost: left_for_gpu(1.0, cost, 1.0, saturation), _left_beside_two(cores), 0.0, 100.0)


@functools.cache
def _left_beside_two(cores: Cores) -> float:
    """The share of the bandwidth that two hogs leave, by histo's slowdown in the logs."""
    rows = published()["histo_s"]
    ratio = sum(rows[f"{cores}_unlocked"]) / sum(rows["cortex_locked"])
    return root_of_falling(slowdown_of_histo, ratio, 1e-3, 1.0)


@functools.cache
def kappa(saturation: float = BY_HISTO) -> float:
    """Bytes of bandwidth that a byte of the cores costs: from one number, histo beside two hogs on Cortex cores."""
    return cost_of_two("cortex", saturation) * reachable() / (2 * HOG_MISSES_PER_US * WRITTEN_BACK)


@functools.cache
def denver_misses_per_us(saturation: float = BY_HISTO) -> float:
    """Misses of a hog on a Denver core: the one demand that histo beside two of them sets."""
    return cost_of_two("denver", saturation) * reachable() / (2 * kappa(saturation) * WRITTEN_BACK)


def left_beside_three(saturation: float) -> float:
    """The share of the bandwidth that three hogs on Cortex cores leave, each of which costs what each of two does."""
    return float(left_for_gpu(1.0, 1.5 * cost_of_two("cortex", saturation), 1.0, saturation))


def exponent_by_histo() -> float:
    """The exponent, at least 1, with which three hogs slow histo as much as published."""
    return _exponent(lambda left: slowdown_of_histo(left), published()["slowdown_up_to"])


def exponent_by_axis() -> float:
    """The largest exponent, at least 1, with which all that asks for less than histo stays within the axis."""
    most = max(share for *_, share in OTHERS.values() if share is not None)
    return _exponent(lambda left: slowdown_of(most, left), AXIS)


def _exponent(slowdown: Callable[[float], float], target: float) -> float:
    """The exponent from 1 to that of the GPU with which a slowdown beside three hogs comes to a target, which rises."""
    return root_of_falling(lambda exponent: -slowdown(left_beside_three(exponent)), -target, 1.0, OF_GPU)
