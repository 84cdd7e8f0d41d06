"""Even waves: how many blocks of a kernel an SM holds at a time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.hardware.occupancy import ANY_RESIDENTS, footprint
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.kernel import Kernel, Physics, Waves
from gpusched_env.workload.profile import UNUSED, most_residents

H200 = load_gpu("h200-sxm")


def most(
    blocks: int,
    threads: int,
    registers: int,
    shared_bytes: int = 0,
    waves: Waves = "even",
    physics: Physics = 1,
) -> int:
    kernel = Kernel(
        name="kernel", grid=(blocks, 1, 1), block=(threads, 1, 1), registers=registers, shared_bytes=shared_bytes,
        duration_us=20.0, waves=waves,
    )  # fmt: skip
    return most_residents(kernel, footprint(H200, threads, registers, shared_bytes, "kernel"), H200, physics)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        # Of 16 that fit, 35.6 an SM: two waves and a fifth become nearly three.
        ((4704, 128, 32), 13),
        # Of 12 that fit, 47.5 an SM: nearly four full waves.
        ((6272, 128, 33), 12),
        # Of 2 that fit, 2.9 an SM: one after the other.
        ((384, 128, 240, 98304), 1),
        # An SM for each, or less.
        ((132, 384, 168, 200_000), ANY_RESIDENTS),
    ],
)
def test_recorded_operators_on_an_h200(shape: tuple[int, ...], expected: int) -> None:
    assert most(*shape) == expected
    assert most(*shape, waves="full") == ANY_RESIDENTS


@given(blocks=st.integers(133, 10**6), threads=st.sampled_from((32, 128, 512, 1024)), registers=st.integers(16, 64))
def test_it_is_the_largest_number_that_leaves_few_slots_empty(blocks: int, threads: int, registers: int) -> None:
    fitting = footprint(H200, threads, registers, 0, "kernel").blocks_per_sm
    found = most(blocks, threads, registers)

    def empty(residents: int) -> float:
        waves = -(-blocks // (H200.sms * residents))
        return waves * residents * H200.sms / blocks - 1.0

    assert 1 <= found <= fitting
    assert found == 1 or empty(found) <= UNUSED + 1e-9
    assert all(empty(more) > UNUSED - 1e-9 for more in range(found + 1, fitting + 1))


@pytest.mark.parametrize(
    ("blocks", "first", "second"),
    [
        # Three for each SM, of four that fit: no partial wave.
        (396, 3, ANY_RESIDENTS),
        (528, 4, ANY_RESIDENTS),
        # One more, or more than fit.
        (397, 1, 1),
        (660, 1, 1),
    ],
)
def test_a_grid_that_fits_at_once_in_equal_parts_has_no_limit_in_the_second_version(
    blocks: int, first: int, second: int
) -> None:
    assert most(blocks, 512, 32) == first
    assert most(blocks, 512, 32, physics=2) == second
