"""The sharing laws against what one H100 did, and what must hold of them anyway."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from gpusched_env.hardware.contention import (
    block_stretch,
    fair_level,
    granted,
    mean_stretch,
    served_traffic,
    tilt,
)
from gpusched_env.hardware.occupancy import block_record, footprint, gpu_record
from gpusched_env.hardware.solo import equal_blocks_us, solo_duration_us
from gpusched_env.hardware.specs import load_gpu

H100 = load_gpu("h100-sxm")
ARITHMETIC_FMA = 25_600
"""Fused multiply-adds a thread of the recorded arithmetic kernel."""


def arithmetic(threads: int) -> np.ndarray:
    costs = H100.instructions
    assert costs is not None
    latency = costs.block_us + ARITHMETIC_FMA * costs.fma_latency_us
    rho = ARITHMETIC_FMA * costs.fma_issue_us / latency
    return block_record(footprint(H100, threads, 26, 0), latency, rho, rho, 0.0)


@pytest.mark.parametrize(("residents", "recorded_us"), [(1, 78.8), (2, 102.0), (3, 133.0)])
def test_arithmetic_blocks_of_256_threads_take_what_was_recorded(residents: int, recorded_us: float) -> None:
    blocks_us = njit(lambda gpu, block, residents: equal_blocks_us(gpu, block, residents))
    assert blocks_us(gpu_record(H100)[0], arithmetic(256)[0], residents) == pytest.approx(recorded_us, rel=0.03)


@pytest.mark.parametrize(("warps", "recorded"), [(2, 0.50), (4, 0.74), (6, 0.88), (8, 0.95), (10, 1.0)])
def test_slots_in_use_are_those_recorded(warps: int, recorded: float) -> None:
    """Of a sub-partition with so many arithmetic warps; there is no constant to fit in this."""
    rho = float(arithmetic(32)[0]["rho"])
    used = warps * rho / mean_stretch(warps * rho, warps * math.log1p(-rho))
    assert used == pytest.approx(recorded, abs=0.035)


def test_a_full_wave_of_arithmetic_is_bound_by_throughput() -> None:
    """Recorded: eight waves of 1,056 blocks of 256 threads take 2,552 us."""
    assert solo_duration_us(gpu_record(H100)[0], arithmetic(256)[0], 8448, 8) == pytest.approx(2552.0, rel=0.01)


def test_a_lone_warp_is_not_stretched_and_neither_is_an_idle_one() -> None:
    assert mean_stretch(0.3, math.log1p(-0.3)) == pytest.approx(1.0)
    assert mean_stretch(0.0, 0.0) == 1.0


def test_age_matters_only_where_slots_are_short() -> None:
    assert tilt(1.0) == 0.0
    assert 0.0 < tilt(2.0) < tilt(3.0) < 1.0
    assert tilt(4.83) == tilt(50.0) == 1.0


def test_a_light_block_behind_arithmetic_waits_and_one_before_it_does_not() -> None:
    """A memory kernel slows several times beside 16 arithmetic warps if it came later, hardly if it came first."""
    demand, log_idle = 16 * 0.3, 16 * math.log1p(-0.3)
    common = (0.016, 0.1, 0.3, mean_stretch(demand, log_idle), 1.0)
    later = block_stretch(*common, 0.99, log_idle, 0.0)
    first = block_stretch(*common, 0.01, 0.0, log_idle)
    assert later > 2.5
    assert first < 0.5 * later


fractions = st.one_of(st.just(0.0), st.floats(1e-3, 0.9))


@given(st.lists(st.tuples(st.floats(0.25, 16.0), fractions, st.floats(0.0, 1.0)), min_size=1, max_size=8))
def test_nobody_is_faster_than_alone(residents: list[tuple[float, float, float]]) -> None:
    demand = sum(warps * rho for warps, rho, _ in residents)
    if demand == 0.0:
        return
    squared = sum(warps * rho * rho for warps, rho, _ in residents)
    log_idle = sum(warps * math.log1p(-rho) for warps, rho, _ in residents)
    mean = mean_stretch(demand, log_idle)
    before = older = 0.0
    for warps, rho, wait in residents:
        own, idle = warps * rho, warps * math.log1p(-rho)
        middle = (before + 0.5 * own) / demand
        younger = log_idle - older - idle
        assert block_stretch(rho, wait, squared / demand, mean, tilt(demand), middle, older, younger) >= 1.0
        before += own
        older += idle


@given(
    st.lists(st.tuples(st.floats(1.0, 1e6), st.floats(0.5, 64.0), st.integers(1, 100)), min_size=1, max_size=6),
    st.floats(0.05, 0.99),
)
def test_shares_of_the_bandwidth_add_up_to_what_is_served(kinds: list[tuple[float, float, int]], part: float) -> None:
    demands, weights, counts = (np.array(column, float) for column in zip(*kinds, strict=True))
    capacity = part * float(demands @ counts)
    level = fair_level(demands, weights, counts, len(kinds), capacity)
    shares = np.array([granted(d, level * w) for d, w in zip(demands, weights, strict=True)])
    assert float(shares @ counts) == pytest.approx(capacity, rel=1e-6)
    assert (shares <= demands).all()


def test_traffic_saturates_softly_below_the_bandwidth() -> None:
    assert served_traffic(1.0, 100.0, 4.0) == pytest.approx(1.0, rel=1e-6)
    assert served_traffic(1e6, 100.0, 4.0) == pytest.approx(100.0, rel=1e-6)
    assert served_traffic(100.0, 100.0, 4.0) == pytest.approx(100.0 / 2**0.25)
