"""Every law gives the same in plain Python and in compiled code, bit by bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import strategies as st

from gpusched_env.hardware import contention, placement, power, queues, shared_memory, tiles, timing
from gpusched_env.hardware import solo as matrix_products
from gpusched_env.hardware.contention import Sharing, Traffic, Warps
from gpusched_env.hardware.solo import Product, ProductCosts
from gpusched_env.hardware.tiles import Pair
from tests.hardware.laws import amount, check_law, few, laws_of, share, some, times_ps

NOT_LAWS = {"sm_order", "board_power_w", "energy_of_load_j", "queue_count"}
"""Functions of a whole specification."""

rho = st.one_of(st.just(0.0), st.floats(1e-4, 0.98))
idle = rho.map(lambda value: math.log1p(-value))
warps = st.integers(1, 256).map(lambda count: count / 4)
switch = st.sampled_from([0.0, 1.0])
sums = st.builds(Warps, st.one_of(st.just(0.0), st.floats(1e-3, 64.0)), st.floats(0.0, 64.0), st.floats(-200.0, -1e-3))
sharing = st.builds(
    Sharing, st.floats(0.0, 64.0), st.floats(-200.0, 0.0), st.floats(1e-3, 1.0), st.floats(1.0, 64.0), share, switch
)
traffic = st.builds(Traffic, st.floats(0.0, 1e6), st.floats(0.0, 64.0))


@st.composite
def kinds(draw: st.DrawFn) -> tuple[list[float], list[float], list[float], int]:
    """What SMs ask for, their weights and numbers; of more kinds than count."""
    rows = draw(st.lists(st.tuples(some, st.floats(0.25, 64.0), st.integers(1, 132).map(float)), min_size=2))
    demands, loadings, sms = (list(column) for column in zip(*rows, strict=True))
    return demands, loadings, sms, draw(st.integers(1, len(rows)))


@st.composite
def capacity(draw: st.DrawFn) -> tuple[Any, ...]:
    demands, loadings, sms, count = draw(kinds())
    total = sum(demand * number for demand, number in zip(demands[:count], sms, strict=False))
    return demands, loadings, sms, count, draw(st.floats(0.05, 0.999)) * total


pairs = st.builds(
    Pair, st.integers(0, 5), st.integers(1, 4), *[st.integers(1, 12)] * 5, st.integers(0, 3), st.integers(1, 4), share
).map(lambda pair: pair._replace(columns=pair.columns * pair.fold))
blocks = st.integers(0, 11)
product_costs = st.builds(ProductCosts, *[st.floats(0.0, 1e-2)] * 6)
divided = st.builds(
    Product, *[st.integers(1, 256)] * 2, *[st.integers(1, 64)] * 3, st.floats(1.0, 1e5), st.integers(1, 4)
)
"""Of a kernel of at least as many steps as slices: those that have none wait for nothing."""
own_steps = pairs.filter(lambda pair: pair.columns // pair.fold >= pair.consumer_slices)


LAWS: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "warps_on": st.tuples(amount, amount, st.sampled_from([1.0, 2.0, 3.0, 4.0])),
    "with_warps": st.tuples(sums, warps, rho, idle),
    "share_slots": st.tuples(sums, switch, share, switch),
    "slot_stretch": st.tuples(sharing, sums, warps, rho, share, idle),
    "mean_stretch": st.tuples(st.floats(0.0, 64.0), st.floats(-200.0, -1e-6)),
    "tilt": st.tuples(st.floats(0.0, 10.0)),
    "block_stretch": st.tuples(
        share, share, st.floats(1e-3, 1.0), st.floats(1.0, 64.0), share, share, st.floats(-9.0, 0.0), st.floats(-9.0, 0)
    ),
    "with_traffic": st.tuples(traffic, few, warps, st.one_of(st.just(0.0), some), some),
    "share_bandwidth": st.tuples(kinds(), some, st.floats(1.0, 16.0)).map(lambda args: (*args[0], *args[1:])),
    "throttle": st.tuples(st.one_of(st.just(0.0), some), some, st.one_of(st.just(0.0), some)),
    "block_rate": st.tuples(some, st.one_of(st.just(0.0), some), share),
    "served_traffic": st.tuples(some, some, st.floats(1.0, 16.0)),
    "left_for_gpu": st.tuples(some, st.one_of(st.just(0.0), some), st.floats(1.0, 8.0), st.floats(1.0, 16.0)),
    "granted": st.tuples(some, some),
    "fair_level": capacity(),
    "fit": st.tuples(few, few, few, few, few, amount, amount, amount, st.one_of(st.just(0), amount)),
    "within": st.tuples(few, few, few, few),
    "block_noise": st.tuples(few, amount, amount),
    "power_w": st.tuples(few, some, some, some, some, some),
    "state_bytes": st.tuples(amount, amount, amount),
    "save_us": st.tuples(st.one_of(amount, some), some),
    "bands": st.tuples(pairs),
    "semaphores_a_band": st.tuples(pairs),
    "semaphores": st.tuples(pairs),
    "semaphore_of": st.tuples(pairs, blocks),
    "semaphore_in_band": st.tuples(pairs, few),
    "own_band": st.tuples(pairs, blocks),
    "other_band": st.tuples(pairs, blocks),
    "waits_a_step": st.tuples(pairs, blocks),
    "first_step": st.tuples(pairs, blocks),
    "steps_of": st.tuples(pairs, blocks),
    "waits_of": st.tuples(pairs, blocks),
    "awaited_semaphore": st.tuples(pairs, blocks, blocks),
    "awaited_value": st.tuples(pairs, blocks),
    "work_before": st.tuples(own_steps, st.just(0), blocks),
    "work_of": st.tuples(some, few, some, few, some),
    "work_left": st.tuples(some, share),
    "tile_at": st.tuples(st.integers(0, 3), st.just(2), few.map(lambda rows: rows + 1), st.just(6), few),
    "likeness": st.tuples(few, amount, amount, st.integers(0, 1)),
    "posts_by_column": st.tuples(st.integers(0, 4)),
    "waits_by_column": st.tuples(st.integers(0, 4), st.integers(0, 2)),
    "held_ps": st.integers(1, 64).flatmap(
        lambda queues: st.tuples(
            st.integers(0, queues - 1), st.just(queues), st.integers(1, 8), st.integers(1, 1 << 40), times_ps
        )
    ),
    "host_copy_us": st.tuples(st.one_of(amount, some), some, some),
    "product_block_us": st.tuples(product_costs, divided, st.integers(1, 4)),
    "product_us": st.tuples(product_costs, divided, st.integers(1, 132)),
}
"""Arguments by law."""


def laws() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, law in laws_of(contention, matrix_products, placement, power, queues, shared_memory, tiles, timing):
        if name not in NOT_LAWS:
            yield name, law


def test_all_laws_have_arguments() -> None:
    assert {name for name, _ in laws()} == set(LAWS)


@pytest.mark.parametrize(("name", "law"), list(laws()))
def test_plain_and_compiled_are_equal(name: str, law: Callable[..., Any]) -> None:
    check_law(law, LAWS[name])


def test_a_cohort_is_a_row_of_the_sum() -> None:
    """Two cohorts of a warp each a sub-partition, worked out by hand: half the slots each, so hardly a wait."""
    log_idle = math.log1p(-0.5)
    running = contention.with_warps(contention.with_warps(contention.NO_WARPS, 1.0, 0.5, log_idle), 1.0, 0.5, log_idle)
    assert running == (1.0, 0.5, 2.0 * log_idle)
    shared = contention.share_slots(running, 1.0, 1.0, 1.0)
    # Of the demand 1, the slot serves 1 - 0.5 * 0.5: instructions stretch by 4/3, of the older and the younger alike.
    assert shared.mean == pytest.approx(4.0 / 3.0)
    older = contention.with_warps(contention.NO_WARPS, 1.0, 0.5, log_idle)
    for before in (contention.NO_WARPS, older):
        assert contention.slot_stretch(shared, before, 1.0, 0.5, 0.1, log_idle) == pytest.approx(4.0 / 3.0)
    off = contention.share_slots(running, 0.0, 1.0, 1.0)
    assert contention.slot_stretch(off, older, 1.0, 0.5, 0.1, log_idle) == 1.0
