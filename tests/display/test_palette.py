"""Looks: tenants have one colour everywhere, and series can be told apart."""

from __future__ import annotations

import itertools

from gpusched_env.display import palette
from gpusched_env.display.palette import BASELINE, look, rgb, tenant
from gpusched_env.scenarios.scenario import load_scenario, scenario_names


def test_a_dozen_series_are_told_apart_by_colour_and_dash() -> None:
    looks = [BASELINE, *(look(number) for number in range(11))]
    assert len({(own.colour, own.dash) for own in looks}) == 12
    assert len({(own.colour, own.symbol) for own in looks}) == 12
    # Nobody else is black, and neighbours never share a colour.
    assert all(own.colour != BASELINE.colour for own in looks[1:])
    assert all(one.colour != other.colour for one, other in itertools.pairwise(looks))


def test_many_more_still_differ() -> None:
    assert len({look(number) for number in range(50)}) == 50


def test_the_tenants_of_every_scenario_differ() -> None:
    most = max(len(load_scenario(name).tenants) for name in scenario_names())
    assert len({tenant(row).colour for row in range(most)}) == most


def test_tenants_differ_and_begin_again_after_the_last() -> None:
    assert len(set(palette.TENANTS)) == len(palette.TENANTS)
    assert tenant(len(palette.TENANTS)) == tenant(0)
    assert rgb("#0a10ff") == (10, 16, 255)
