"""Schedules and placements published for real GPUs, as literal expectations.

Amert et al. (RTSS 2017): TX2, 2 SMs of 2048 threads, spinning blocks. Gilman et al. (2020): placements.
"""

from __future__ import annotations

import msgspec
import pytest

from gpusched_env.hardware.specs import GpuSpec
from tests.devices.grids import Grid, run, without_contention

S = 1e6


def tx2() -> GpuSpec:
    return without_contention("tx2")


def starts(grid: Grid) -> list[tuple[float, int]]:
    """(start in s, blocks) of a grid's blocks, in order."""
    by_start: dict[float, int] = {}
    for _, blocks, start, _ in grid.spans:
        by_start[round(start / S, 6)] = by_start.get(round(start / S, 6), 0) + blocks
    return sorted(by_start.items())


def test_a_kernel_waits_until_the_one_before_is_fully_dispatched_even_if_it_would_fit() -> None:
    k1 = Grid(0.0, 6, 768, 1.0 * S)
    k4 = Grid(0.2 * S, 4, 256, 1.0 * S, shared_bytes=32 * 1024)
    k5 = Grid(0.4 * S, 2, 256, 1.0 * S, shared_bytes=32 * 1024)
    run(tx2(), [k1, k4, k5])
    assert starts(k1) == [(0.0, 4), (1.0, 2)]
    assert starts(k4) == [(1.0, 4)]
    assert starts(k5) == [(2.0, 2)], "shared memory: 2 x 32 KB of K4 fill both SMs"


def test_starvation_of_low_priority() -> None:
    k1 = Grid(0.0, 8, 1024, 0.5 * S, priority=0)
    k2 = Grid(0.2 * S, 16, 1024, 0.5 * S, priority=-1)
    k3 = Grid(0.5 * S, 16, 1024, 0.5 * S, priority=-1)
    run(tx2(), [k1, k2, k3])
    assert starts(k1) == [(0.0, 4), (4.5, 4)]
    assert starts(k2) == [(0.5, 4), (1.0, 4), (1.5, 4), (2.0, 4)]
    assert starts(k3) == [(2.5, 4), (3.0, 4), (3.5, 4), (4.0, 4)]


def test_only_two_levels_first_come_first_served_within_one() -> None:
    k1 = Grid(0.0, 8, 1024, 0.5 * S)
    k2 = Grid(0.2 * S, 8, 1024, 0.5 * S)
    k3 = Grid(0.3 * S, 8, 1024, 0.5 * S, priority=-1)
    k4 = Grid(1.2 * S, 8, 1024, 0.5 * S)
    run(tx2(), [k1, k2, k3, k4])
    spans = {name: (starts(k)[0][0], round(k.ended_us / S, 9)) for name, k in (("K2", k2), ("K3", k3), ("K4", k4))}
    assert starts(k1) == [(0.0, 4), (1.5, 4)]
    assert spans == {"K3": (0.5, 1.5), "K2": (2.0, 3.0), "K4": (3.0, 4.0)}


def test_a_high_priority_block_that_does_not_fit_holds_up_low_priority_ones_that_would() -> None:
    low = [Grid(0.1 * i * S, 1, 512, 1.0 * S) for i in range(7)]
    k8 = Grid(0.65 * S, 1, 1024, 0.5 * S, priority=-1)
    k9 = Grid(0.7 * S, 1, 512, 1.0 * S)
    run(tx2(), [*low, k8, k9])
    assert k8.started_us == pytest.approx(1.1 * S)
    assert k9.started_us == pytest.approx(1.1 * S)


def device(sms: int, threads: int, warps: int, blocks: int, order: str) -> GpuSpec:
    base = tx2()
    limits = msgspec.structs.replace(base.limits, threads=threads, warps=warps, blocks=blocks)
    return msgspec.structs.replace(base, sms=sms, limits=limits, sm_order=order, resident_grids=128)


PASCAL = device(5, 2048, 64, 32, "linear")
TURING = device(68, 1024, 32, 16, "even-odd")


@pytest.mark.parametrize(
    ("gpu", "resident_threads", "empty_sm", "blocks", "threads", "expected"),
    [
        pytest.param(PASCAL, 256, 0, 3, 160, [0, 0, 1], id="1-threads"),
        pytest.param(PASCAL, 1024, 0, 3, 32, [0, 0, 1], id="2-block-limit"),
        pytest.param(PASCAL, 1024, 0, 3, 33, [0, 0, 0], id="3-warp-limit"),
        pytest.param(TURING, 512, 67, 8, 33, [67] * 8, id="4-isolated"),
        pytest.param(TURING, 512, 67, 8, 32, [67, 0, 2, 4, 6, 8, 10, 12], id="5-colocated"),
        pytest.param(TURING, 512, 67, 9, 33, [67] * 8 + [0], id="6-ninth-elsewhere"),
    ],
)
def test_the_six_published_placements(
    gpu: GpuSpec, resident_threads: int, empty_sm: int, blocks: int, threads: int, expected: list[int]
) -> None:
    order = [sm for sm in range(gpu.sms) if sm != empty_sm]
    ranks = (
        list(range(0, gpu.sms, 2)) + list(range(1, gpu.sms, 2)) if gpu.sm_order == "even-odd" else list(range(gpu.sms))
    )
    resident = [Grid(0.0, 1, resident_threads, 10.0 * S, partition=(ranks.index(sm), 1)) for sm in order]
    new = [Grid(1.0 + i, 1, threads, 1.0 * S) for i in range(blocks)]
    run(gpu, [*resident, *new])
    assert sorted(g.spans[0][0] for g in resident) == order
    assert [g.spans[0][0] for g in new] == expected
