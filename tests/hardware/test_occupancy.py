"""Occupancy against values worked out by hand with the rules of NVIDIA's occupancy calculator."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.errors import InputError
from gpusched_env.hardware.occupancy import footprint
from gpusched_env.hardware.specs import gpu_names, load_gpu
from tests.refusals import refused

KB = 1024


@pytest.mark.parametrize(
    ("gpu", "threads", "registers", "shared", "blocks"),
    [
        # 8 warps x 32 x 32 = 8192 registers: 65536 / 8192 = 8; threads: 2048 / 256 = 8.
        ("h100-sxm", 256, 32, 0, 8),
        # 32 warps x 64 x 32 = 65536 registers: one block has them all.
        ("h100-sxm", 1024, 64, 0, 1),
        # 100 KB + 1 KB reserve: 228 / 101 = 2.26.
        ("h100-sxm", 256, 32, 100 * KB, 2),
        # 227 KB + 1 KB reserve fill the SM exactly.
        ("h100-sxm", 256, 32, 227 * KB, 1),
        # 113 KB + 1 KB = 114 KB: exactly half of 228 KB; one unit of 128 bytes more and only one fits.
        ("h100-sxm", 256, 32, 113 * KB, 2),
        ("h100-sxm", 256, 32, 113 * KB + 1, 1),
        # 33 x 32 = 1056 registers a warp are rounded up to 1280: 65536 / (8 x 1280) = 6.4.
        ("h100-sxm", 256, 33, 0, 6),
        # 255 x 32 = 8160 -> 8192 a warp, 4 warps: 65536 / 32768 = 2.
        ("h100-sxm", 128, 255, 0, 2),
        # The limit of 32 blocks binds: threads would allow 64.
        ("h100-sxm", 32, 16, 0, 32),
        # 33 threads are 2 warps: 64 / 2 = 32 by warps, 2048 / 33 = 62 by threads.
        ("h100-sxm", 33, 16, 0, 32),
        # 65 threads are 3 warps: 64 / 3 = 21.
        ("h100-sxm", 65, 16, 0, 21),
        # 3 warps x 1280 registers = 3840: 17; threads would allow 21.
        ("h100-sxm", 96, 40, 0, 17),
        ("h200-sxm", 1024, 32, 0, 2),
        # CC 8.0: 163 KB is the largest block; 81 KB + 1 KB twice is 164 KB.
        ("a100-sxm", 128, 32, 163 * KB, 1),
        ("a100-sxm", 128, 32, 81 * KB, 2),
        # CC 7.0 has no reserve: 96 / 48 = 2; 256-byte units: 32769 bytes take 33024, twice fits into 98304.
        ("v100-sxm", 256, 32, 48 * KB, 2),
        ("v100-sxm", 256, 32, 32 * KB, 3),
        ("v100-sxm", 256, 32, 32 * KB + 1, 2),
        # CC 8.6: 1536 threads and 16 blocks an SM.
        ("rtx-3090", 256, 40, 0, 6),
        ("rtx-3090", 1024, 32, 0, 1),
        ("rtx-3090", 768, 32, 0, 2),
        ("rtx-3090", 64, 32, 0, 16),
        ("rtx-3090", 128, 32, 49 * KB, 2),
        # Kepler: 16 blocks an SM keep small blocks from filling it.
        ("k20m", 64, 32, 0, 16),
        ("k20m", 256, 32, 0, 8),
        ("k20m", 128, 32, 12 * KB, 4),
        # GCN: 256 vector registers a lane and SIMD: 24 -> 10 wavefronts, 64 -> 4, on 4 SIMDs.
        ("mi50", 64, 24, 0, 40),
        ("mi50", 64, 64, 0, 16),
        ("mi50", 256, 64, 0, 4),
        ("tx2", 1024, 32, 0, 2),
        ("tx2", 512, 32, 48 * KB, 1),
        ("toy-4sm", 1024, 32, 0, 1),
        ("toy-4sm", 64, 32, 0, 1),
    ],
)
def test_blocks_per_sm(gpu: str, threads: int, registers: int, shared: int, blocks: int) -> None:
    assert footprint(load_gpu(gpu), threads, registers, shared).blocks_per_sm == blocks


@pytest.mark.parametrize(
    ("shared", "carveout_kb"),
    [
        (0, 0),  # blocks without shared memory take no reserve: recorded entering SMs of any carve-out
        (1 * KB, 16),  # 8 x 2 KB
        (3 * KB, 32),  # 8 x 4 KB
        (7 * KB + 1, 100),  # 8 x (7 KB + 128 B + 1 KB) = 65 KB
        (16 * KB, 164),  # 8 x 17 KB = 136 KB
        (72 * KB, 228),  # 3 x 73 KB = 219 KB
        (200 * KB, 228),
    ],
)
def test_carveout_holds_what_the_other_limits_allow(shared: int, carveout_kb: int) -> None:
    """256 threads with 32 registers: the other limits allow eight blocks on an H100."""
    assert footprint(load_gpu("h100-sxm"), 256, 32, shared).carveout_bytes == carveout_kb * KB


def test_allocated_amounts() -> None:
    block = footprint(load_gpu("h100-sxm"), 100, 33, 1000)
    assert (block.threads, block.warps) == (100, 4)
    assert block.registers == 4 * 1280
    assert block.shared_bytes == 1024 + 1024


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "message"),
    [
        (1025, 32, 0, "k cannot fit on h100-sxm: threads per block is 1025, at most 1024 possible"),
        (64, 256, 0, "k cannot fit on h100-sxm: registers per thread is 256, at most 255 possible"),
        (64, 32, 232449, r"shared memory per block \(bytes\) is 232449, at most 232448 possible"),
        (1024, 65, 0, "registers per block is 73728, at most 65536 possible"),
        (0, 32, 0, "k: threads per block is 0, must be at least 1"),
        (64, 0, 0, "k: registers per thread is 0, must be at least 1"),
        (64, 32, -1, "k: shared memory per block is -1 bytes, must not be negative"),
    ],
)
def test_errors_name_the_kernel_and_the_limit(threads: int, registers: int, shared: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        footprint(load_gpu("h100-sxm"), threads, registers, shared, "k")


@given(
    name=st.sampled_from(gpu_names()),
    threads=st.integers(1, 1024),
    registers=st.integers(1, 64),
    shared=st.integers(0, 48 * KB),
)
def test_the_count_fits_and_one_more_does_not(name: str, threads: int, registers: int, shared: int) -> None:
    limits = load_gpu(name).limits
    block = footprint(load_gpu(name), threads, registers, shared)

    def fits(count: int) -> bool:
        return (
            count * block.threads <= limits.threads
            and count * block.warps <= limits.warps
            and count <= limits.blocks
            and count * block.registers <= limits.registers
            and count * block.shared_bytes <= limits.shared_bytes
        )

    assert fits(block.blocks_per_sm)
    assert not fits(block.blocks_per_sm + 1)
    assert block.carveout_bytes >= block.blocks_per_sm * block.shared_bytes


def test_a_block_that_fills_more_than_an_sm_is_refused() -> None:
    """A specification may allow a block all shared memory, of which the system takes its reserve first."""
    h100 = load_gpu("h100-sxm")
    limits = msgspec.structs.replace(h100.limits, shared_bytes_per_block=h100.limits.shared_bytes)
    gpu = msgspec.structs.replace(h100, limits=limits)
    with refused(InputError, "h100-sxm", "233472 bytes"):
        footprint(gpu, 256, 32, 228 * KB, "k")
