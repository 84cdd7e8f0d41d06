"""What a microsecond of the GPU is worth: instances where it can be said by hand, and shipped scenarios."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpusched_env.planning.fluid_tables import MOST, Floats
from gpusched_env.planning.interference import UNKNOWN
from gpusched_env.planning.outlook import outlook, worth_a_us
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario

ALONE_US, SLO_US = 100.0, 150.0


def tenants(rich_load: float, poor_load: float) -> Floats:
    """Both have jobs of 100 us by 150 us; in time those of the first are worth 10, those of the second 1."""
    both = ((10.0, rich_load), (1.0, poor_load))
    return np.array([[ALONE_US, SLO_US, weight, load / ALONE_US, 0.0] for weight, load in both])


def excludes_the_poor(price_a_us: float) -> bool:
    return 0.01 < price_a_us < 0.1


def test_where_the_rich_keep_the_gpu_busy_time_is_worth_more_than_the_poor_earn() -> None:
    """Side by side both jobs would be late: one of the poor that goes on costs one of the rich its deadline."""
    both_late = np.full((2, 2, 2), 0.5)
    assert excludes_the_poor(worth_a_us(tenants(0.9, 0.9), both_late, 1.0))


def test_where_nobody_else_comes_time_is_worth_less_than_anybody_earns() -> None:
    assert worth_a_us(tenants(1e-4, 0.3), UNKNOWN, 1.0) < 0.01


def test_side_by_side_without_a_loss_time_is_worth_nothing() -> None:
    assert worth_a_us(tenants(0.2, 0.2), np.ones((2, 2, 2)), 1.0) < 0.01


def test_without_rates_or_objectives_or_with_too_many_tenants_it_is_zero() -> None:
    closed, best_effort = tenants(0.0, 0.0), tenants(0.5, 0.5)
    best_effort[:, 1] = math.inf
    assert worth_a_us(closed, UNKNOWN, 1.0) == worth_a_us(best_effort, UNKNOWN, 1.0) == 0.0
    assert worth_a_us(np.repeat(tenants(0.5, 0.5), MOST, axis=0), UNKNOWN, 1.0) == 0.0


@pytest.mark.parametrize("name", ["ServingPoisson", "ServingBestEffort"])
def test_it_is_the_same_whatever_the_units_of_weights_are(name: str) -> None:
    known = build_problem(load_scenario(name)).knowledge
    price_a_us, pairs, exponent, graphs, rejects = outlook(known)
    assert rejects
    assert not graphs.any()
    table = np.array([[each.alone_us, each.slo_us, each.weight, each.jobs_a_us, 0.0] for each in known.tenants])
    assert price_a_us >= 0.0
    assert worth_a_us(table * [1.0, 1.0, 3.0, 1.0, 1.0], pairs, exponent) == pytest.approx(3.0 * price_a_us)


def test_short_jobs_that_never_end_beside_rare_requests_take_no_time() -> None:
    """A hundred million best-effort jobs fit between two requests."""
    rare = np.array([[ALONE_US, SLO_US, 10.0, 1e-10, 0.0], [1.0, math.inf, 1.0, 0.0, 0.0]])
    assert worth_a_us(rare, UNKNOWN, 1.0) == 0.0
