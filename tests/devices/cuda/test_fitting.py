"""Kernels that stand for recorded ones: shape taken over, duration found by measuring."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.devices.cuda.fitting import NEAR, StandIn, chains_for, fitted, stand_for, with_loads
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import profile_kernel

H100 = load_gpu("h100-sxm")
STAND = StandIn(blocks=264, threads=256, registers=64, shared_bytes=0, chains=2, turns=100, loads=0, extra=0)


def test_shape_and_traffic_are_taken_over() -> None:
    kernel = Kernel(
        name="k", grid=(100, 2, 1), block=(128, 1, 1), registers=40, shared_bytes=8192, duration_us=50.0,
        dram_bytes=200 * 16 * 300.0,
    )  # fmt: skip
    stand = stand_for(profile_kernel(kernel, H100, H100), H100)
    assert (stand.blocks, stand.threads, stand.registers, stand.shared_bytes) == (200, 128, 40, 8192)
    # 300 loads a block of 128 threads: two each, and one more of 44.
    assert (stand.loads, stand.extra) == (2, 44)
    # 50 us at 1.755 GHz, where a turn waits 40 times 4 cycles: in the right order of magnitude.
    assert 200 < stand.turns < 1200


@pytest.mark.parametrize(
    ("issue", "warps", "chains"), [(1.0, 1.0, 4), (0.5, 1.0, 2), (1.0, 8.0, 1), (0.05, 1.0, 1), (1.0, 0.25, 4)]
)
def test_chains_fill_as_many_issue_slots_as_the_kernel_did(issue: float, warps: float, chains: int) -> None:
    assert chains_for(issue, warps) == chains


@given(st.floats(5.0, 5000.0), st.floats(0.0, 4.0), st.floats(0.001, 0.2), st.floats(0.0, 30.0), st.integers(0, 10_000))
def test_the_duration_is_that_of_the_recorded_kernel(
    duration_us: float, fixed_us: float, turn_us: float, load_us: float, loads: int
) -> None:
    """On a GPU where computing and loading overlap, in part."""
    duration_us += fixed_us

    def measure(stand: StandIn) -> float:
        memory_us = load_us * stand.block_loads / 10_000
        return fixed_us + float((stand.turns * turn_us) ** 2 + memory_us**2) ** 0.5

    found, took_us = fitted(with_loads(STAND, loads), duration_us, measure)
    assert took_us == measure(found)
    one_turn = measure(replace(found, turns=found.turns + 1)) - measure(found)
    one_load = measure(with_loads(found, found.block_loads + 1)) - measure(found)
    assert abs(measure(found) - duration_us) <= max(NEAR * duration_us, one_turn, one_load)
    # Traffic is kept where it can be.
    alone_us = measure(replace(with_loads(STAND, loads), turns=1))
    assert found.block_loads == loads or alone_us > duration_us


def test_loads_that_take_too_long_become_fewer() -> None:
    found, _ = fitted(with_loads(STAND, 4000), 10.0, lambda stand: 0.5 + stand.block_loads * 0.01 + stand.turns * 1e-4)
    assert found.turns == 1
    assert found.block_loads * 0.01 == pytest.approx(9.5, rel=0.05)


def test_a_kernel_that_is_too_short_for_any_stand_in_gets_the_shortest() -> None:
    assert fitted(STAND, 1.0, lambda stand: 3.0 + stand.turns * 0.1) == (replace(STAND, turns=1), 3.1)


def test_longer_and_shorter_occurrences_do_more_and_less_of_everything() -> None:
    stand = with_loads(STAND, 1000)
    twice = stand.scaled(2.0)
    assert (twice.turns, twice.block_loads) == (200, 2000)
    assert stand.scaled(1e-6).turns == 1
