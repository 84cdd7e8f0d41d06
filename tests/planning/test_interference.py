"""Who disturbs whom: the model's form, and what the shipped one says."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numba import njit

from gpusched_env.errors import InputError
from gpusched_env.planning.fluid import begin_tenants, serve
from gpusched_env.planning.fluid_tables import NOBODY, WORK, Floats, FluidTenant, Model, Work
from gpusched_env.planning.interference import (
    GRID,
    SLOWEST,
    PairModel,
    disturbance,
    pair_speeds,
    shipped_model,
    speed_table,
    speeds_in_order,
)
from gpusched_env.reading import decoded
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.profiles import JobDemand
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused

SHARE = st.floats(0.0, 1.0)
DEMANDS = st.builds(JobDemand, SHARE, SHARE, SHARE, SHARE, SHARE, st.floats(1e-3, 1e4))
IDLE = JobDemand(0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


def by_dram(slope: float) -> PairModel:
    """Each job is slowed by ``exp(-slope * DRAM of both, multiplied)``."""
    weights = np.zeros((2, 91))
    # After 1 and the six features of each: the products, that of the two second ones.
    weights[:, 13 + 6 * 1 + 1] = -slope
    return PairModel(fitted_to="nothing", mean=[0.0] * 6, scale=[1.0] * 6, weights=weights.tolist(), exponent=1.0)


def test_the_terms_are_products_of_both() -> None:
    model, greedy = by_dram(2.0), JobDemand(0.1, 0.5, 0.2, 0.9, 0.0, 10.0)
    assert model.speeds(greedy, greedy) == pytest.approx((math.exp(-0.5), math.exp(-0.5)))
    assert model.speeds(greedy, IDLE) == (1.0, 1.0)


@given(DEMANDS, DEMANDS)
def test_speeds_are_speeds(one: JobDemand, other: JobDemand) -> None:
    speeds = shipped_model().speeds(one, other)
    assert all(SLOWEST <= speed <= 1.0 for speed in speeds)


@given(DEMANDS, DEMANDS, st.floats(0.05, 1.0), st.floats(0.0, 4.0))
def test_the_last_digits_of_speeds_are_not_those_of_a_processor(
    one: JobDemand, other: JobDemand, kept: float, exponent: float
) -> None:
    before, behind = shipped_model().speeds(one, other)
    slowed = disturbance(before, behind, kept * behind, exponent)
    assert all(speed in (SLOWEST, round(speed * GRID) / GRID) for speed in (before, behind, slowed))
    assert slowed == pytest.approx(before ** (kept**exponent), abs=1 / GRID)


def test_among_three_the_last_disturbs_by_how_far_it_gets_on() -> None:
    table = speed_table([IDLE, IDLE, IDLE], by_dram(1.0))
    np.testing.assert_array_equal(table, 1.0)
    table[0, 1], table[1, 0] = (0.9, 0.3), (0.8, 0.5)
    table[0, 2], table[2, 0] = (0.7, 0.6), (0.4, 0.2)
    table[1, 2], table[2, 1] = (0.5, 0.1), (0.25, 0.75)
    # 2 is behind 1 and 0, at 0.75 * 0.2: a fifth of its speed behind 1 alone, three quarters of that behind 0 alone.
    assert speeds_in_order([1, 0, 2], table, 1.0) == pytest.approx([0.8 * 0.5**0.2, 0.3 * 0.7**0.75, 0.15])
    assert speeds_in_order([1, 0, 2], table, 2.0) == pytest.approx([0.8 * 0.5**0.04, 0.3 * 0.7**0.5625, 0.15])
    assert speeds_in_order([1, 0, 2], table, 0.0) == pytest.approx([0.8 * 0.5, 0.3 * 0.7, 0.15]), "each pair by itself"


def test_services_disturb_each_other_unequally() -> None:
    problem = build_problem(load_scenario("ServingPoisson"))
    names = [tenant.name for tenant in problem.knowledge.tenants]
    table = pair_speeds(problem.knowledge)
    first = {(a, b): table[i, j, 0] for i, a in enumerate(names) for j, b in enumerate(names) if i != j}
    assert max(first.values()) > 1.3 * min(first.values())
    assert first["moderation", "search"] > first["search", "moderation"], "large kernels against small ones"
    np.testing.assert_array_equal(table[np.arange(6), np.arange(6)], 1.0)


def test_a_damaged_model_is_refused() -> None:
    with refused(InputError, "mean"):
        decoded(b'{"fitted_to": "x", "mean": [1], "scale": [1,1,1,1,1,1], "weights": [[], []]}', PairModel, "m.json")


@njit
def fluid_speeds(work: Floats, count: int, tenants: Floats, model: Model, speeds: Floats) -> None:
    """Of ``count`` jobs, none of them forced to go first."""
    begin_tenants(tenants, 1.0, work)
    speeds[:] = 0.0
    for place in range(serve(work, count, NOBODY, False, tenants, model)):
        speeds[int(work[Work.SERVED, place])] = work[Work.SPEED, place]


def test_in_the_fluid_model_one_goes_behind_the_first_and_graphs_leave_room_for_others() -> None:
    """Tenants 2, 0, 3 and 1 have a job each, of which the first is not kept: it is last."""
    table = np.random.default_rng(5).uniform(0.3, 1.0, (4, 4, 2))
    model = Model(horizon_us=1.0, price=0.0, scale=1.0, first=0.6, others=0.8, pairs=table, exponent=1.0)
    work, tenants = np.zeros(WORK), np.zeros((4, len(FluidTenant)))
    work[Work.TENANT, :4] = [2, 0, 3, 1]
    work[Work.KEPT, 1:4] = 1.0

    def speeds(count: int = 4) -> list[float]:
        found = np.empty(4)
        fluid_speeds(work, count, tenants, model, found)
        return found.tolist()

    assert speeds() == [0.0, table[0, 3, 0], table[3, 0, 1], 0.0]
    # One launch of four is tenant 3's graph; tenant 1 takes all others.
    tenants[3, FluidTenant.GRAPHS] = 1.0
    assert speeds() == pytest.approx([0.0, *speeds_in_order([0, 3, 1], table, 1.0)])
    tenants[1, FluidTenant.GRAPHS] = 1.0
    zero, three, one, two = speeds_in_order([0, 3, 1, 2], table, 1.0)
    assert speeds() == pytest.approx([two, zero, three, one])
    assert speeds(1)[0] == 1.0
