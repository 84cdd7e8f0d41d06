"""Warps, the machine that they run on, and what launches cost: literal figures and refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpusched_env.errors import InputError
from gpusched_env.games.child_launches.hardware.warp_machine import (
    DEMAND_UNIT,
    FREE,
    KEPLER,
    MOST_DEMAND,
    SPAWN_KEPLER,
    LaunchCosts,
    LoopBody,
    clock_now,
    cycles_to_ps,
    demand,
    stretch,
    time_of,
)
from tests.refusals import refused

UNIT = round(1 / DEMAND_UNIT)
BODY = LoopBody(chain=2, dependent=8, instructions=20, parent_lines=2, child_lines=0.5, miss=0.25)


def test_times_of_cycles() -> None:
    assert [cycles_to_ps(cycles, 714.0) for cycles in (0, 1, 2.5, 1024)] == [0, 714, 1785, 731_136]
    assert cycles_to_ps(0.5, 1.0) == 1


def test_demands_are_whole_and_have_a_bound() -> None:
    assert demand(50, 100) == UNIT // 2
    assert demand(0, 100) == 0
    assert demand(1e12, 1) == MOST_DEMAND * UNIT
    # Of all warps of the largest shipped GPUs together they fit 64 bits.
    assert 8192 * demand(1e12, 1) < 2**63


def test_stretch_adds_squares() -> None:
    assert stretch(0, 1.5, 0, 0.25, 0) == 1.0
    assert stretch(UNIT, 1.0, 0, 1.0, 0) == 2**0.5
    assert stretch(3 * UNIT, 2.0, UNIT, 0.5, 3 * UNIT // 2) == (1 + 2.25 + 4 + 2.25) ** 0.5


def test_clocks() -> None:
    assert clock_now(10.0, 1000, 0.5, 1100) == 60.0
    assert time_of(60.0, 10.0, 1000, 0.5, 1000) == 1100
    assert time_of(60.1, 10.0, 1000, 0.5, 1000) == 1101
    # An end that rounding puts into the past is the next picosecond.
    assert time_of(10.0, 10.0, 1000, 0.5, 1000) == 1001


def test_costs_of_a_loop() -> None:
    costs = SPAWN_KEPLER.costs(BODY)
    # Two loads of 100 cycles, a quarter of them 120 more; 8 steps of 11; two instructions a cycle.
    assert costs.iteration_cycles == 2 * (100 + 0.25 * 120) + 8 * 11
    assert costs.iteration_issue_cycles == 10
    # A quarter of the lines misses L2, which is less than twice as fast as DRAM.
    assert (costs.parent_lines, costs.child_lines) == (2, 0.5)
    assert SPAWN_KEPLER.costs(replace(BODY, miss=1.0)).parent_lines == pytest.approx(2 * 1.5 / 0.8)
    assert SPAWN_KEPLER.ps(1400) == 1_000_000
    assert SPAWN_KEPLER.prologue_issue_cycles == SPAWN_KEPLER.prologue_cycles / 22


def test_published_costs() -> None:
    assert KEPLER.per_child_cycles * 32 + KEPLER.per_call_cycles == 75_282
    assert KEPLER.hardware_queues == 32
    assert (FREE.per_child_cycles, FREE.per_call_cycles, FREE.dispatch_cycles, FREE.pool) == (0, 0, 0, None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"per_call_cycles": -1.0}, "per_call_cycles is -1.0, must be at least 0"),
        ({"interval_cycles": float("nan")}, "interval_cycles is nan"),
        ({"dispatch_cycles": float("inf")}, "dispatch_cycles is inf"),
        ({"hardware_queues": 1}, "1 hardware queues; a parent and a child need 2"),
        ({"pool": 0}, "a pool of 0; must be at least 1"),
        ({"overflow": "burst"}, "overflow is 'burst', must be 'spill' or 'fail'"),
    ],
)
def test_costs_that_cannot_be(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LaunchCosts(**{"per_child_cycles": 1, "per_call_cycles": 1, "dispatch_cycles": 1} | fields)


@pytest.mark.parametrize("name", ["clock_mhz", "gpu_lines", "sm_lines", "l2_cycles", "issue_width", "prologue_cycles"])
def test_machines_that_take_no_time(name: str) -> None:
    with refused(InputError, name, "is 0", "than 0"):
        replace(SPAWN_KEPLER, **{name: 0})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"chain": 0, "dependent": 0}, "a turn takes no time"),
        ({"miss": 1.5}, "miss is 1.5, must be between 0 and 1"),
        ({"child_lines": -1}, "child_lines is -1, must be at least 0"),
    ],
)
def test_loops_that_cannot_be(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(BODY, **fields)
