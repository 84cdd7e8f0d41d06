"""Invariants of the block-level simulation, on random grids and GPUs."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.hardware.occupancy import footprint, gpu_record
from gpusched_env.hardware.solo import solo_duration_us
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from tests.devices.grids import Grid, block_of, few_sms, run, without_contention

H100 = load_gpu("h100-sxm")
SMALL = msgspec.structs.replace(few_sms(H100, 6), dram_bytes_per_us=H100.dram_bytes_per_us / 22)


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    latency = draw(st.floats(1.0, 300.0))
    first = draw(st.integers(0, 5))
    return Grid(
        at_us=(draw(st.sampled_from([0, 0, 5_000, 50_000])) + draw(st.integers(0, 200_000))) / 1000,
        blocks=draw(st.integers(1, 400)),
        threads=draw(st.sampled_from([32, 64, 96, 128, 256, 512, 1024])),
        latency_us=latency,
        priority=draw(st.sampled_from([0, 0, -1, -5])),
        shared_bytes=draw(st.sampled_from([0, 0, 1000, 30_000, 72_000, 200_000])),
        registers=draw(st.sampled_from([16, 32, 64])),
        rho=draw(st.sampled_from([0.0, 0.02, 0.1, 0.3])),
        wait=draw(st.sampled_from([0.0, 0.2])),
        dram_bytes=latency * draw(st.sampled_from([0.0, 100.0, 3_000.0, 20_000.0])),
        partition=draw(st.sampled_from([None, None, None, (first, draw(st.integers(1, 6)))])),
    )


@given(st.lists(grids(), min_size=1, max_size=8))
@settings(max_examples=30, deadline=None)
def test_every_block_runs_once_within_limits_and_partitions(given_grids: list[Grid]) -> None:
    run(SMALL, given_grids, check=True)
    ranks = [0, 2, 4, 1, 3, 5]
    for grid in given_grids:
        assert sum(blocks for _, blocks, _, _ in grid.spans) == grid.blocks
        assert grid.at_us <= grid.started_us < grid.ended_us
        first, count = grid.partition or (0, 6)
        allowed = {ranks[(first + i) % 6] for i in range(count)}
        assert {sm for sm, *_ in grid.spans} <= allowed
        for _, _, start, end in grid.spans:
            assert end - start >= grid.latency_us - 1e-6, "no block is faster than alone"


@pytest.mark.parametrize("blocks", [1, 7, 131, 132, 133, 264, 1056, 1057, 1500])
@pytest.mark.parametrize(("rho", "traffic"), [(0.02, 0.0), (0.3, 3_000.0), (0.05, 60_000.0)])
def test_a_kernel_alone_takes_its_closed_form(blocks: int, rho: float, traffic: float) -> None:
    grid = Grid(0.0, blocks, 256, 20.0, rho=rho, dram_bytes=20.0 * traffic, registers=32)
    run(H100, [grid])
    fitting = footprint(H100, 256, 32, 0).blocks_per_sm
    expected = solo_duration_us(gpu_record(H100)[0], block_of(H100, grid)[0], blocks, fitting)
    assert grid.ended_us == pytest.approx(expected, rel=2e-3)


def test_waiting_blocks_pack_into_the_sms_that_free_first() -> None:
    """Blocks of 256 threads behind full SMs go eight to an SM, although they would spread on idle SMs."""
    first = Grid(0.0, 4 * 2, 1024, 100.0)
    second = Grid(10.0, 9, 256, 10.0)
    run(few_sms(without_contention("h100-sxm"), 4), [first, second])
    assert sorted(blocks for _, blocks, _, _ in second.spans) == [1, 8]
    alone = Grid(0.0, 9, 256, 10.0)
    run(few_sms(without_contention("h100-sxm"), 4), [alone])
    assert sorted(blocks for _, blocks, _, _ in alone.spans) == [2, 2, 2, 3]


def test_a_carve_out_changes_only_on_an_idle_sm() -> None:
    """72 KB blocks wait for every block of a kernel without shared memory to leave, although bytes are free."""
    gpu = few_sms(without_contention("h100-sxm"), 1)
    resident = Grid(0.0, 2, 256, 100.0)
    later = Grid(50.0, 1, 256, 100.0)
    hungry = Grid(60.0, 1, 256, 10.0, shared_bytes=72 * 1024)
    run(gpu, [resident, later, hungry])
    assert hungry.started_us == 150.0


def spec_without_carveouts(gpu: GpuSpec) -> GpuSpec:
    return msgspec.structs.replace(gpu, limits=msgspec.structs.replace(gpu.limits, carveouts=()))


def test_without_configurable_carve_out_free_bytes_are_enough() -> None:
    gpu = spec_without_carveouts(few_sms(without_contention("h100-sxm"), 1))
    resident = Grid(0.0, 2, 256, 100.0)
    hungry = Grid(60.0, 1, 256, 10.0, shared_bytes=72 * 1024)
    run(gpu, [resident, hungry])
    assert hungry.started_us == 60.0
