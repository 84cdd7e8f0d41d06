"""The serve rule: who goes first for an interval, beside few others, beside many or alone.

What it reads, and the rule in compiled code.
"""

from __future__ import annotations

import enum
import math

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import cached, called
from gpusched_env.envs.features import TenantFeature
from gpusched_env.envs.slices import OTHERS
from gpusched_env.planning.interval import BY_PLAN


class Way(enum.IntEnum):
    """How a tenant goes first: rows of ``value``."""

    BESIDE = 0
    """The others have as many launches in flight as by the plan."""
    ALONE = enum.auto()
    """The others have no launches in flight."""
    WIDE = enum.auto()
    """The others have as many launches in flight as there may be."""


MARGINS = (0.2, 0.4)
"""What departing from the plan in either of the first two ways has to save without weights, over the mean weight."""


class ServeTerm(enum.IntEnum):
    """Columns of ``value``."""

    ONE = 0
    AHEAD = enum.auto()
    """What would be lost more in sampled futures, in multiples of the mean weight."""
    EARNS = enum.auto()
    """Weight over time alone, ``x`` times the mean: ``2 x / (1 + x) - 1``."""
    LEFT = enum.auto()
    """Profiled time left of its oldest job: ``4 ln(1 + t) / ln(1 + 10^6)`` of ``t`` us, minus 2; 0: a millisecond."""
    LAXITY = enum.auto()
    """What remains until its deadline beside ``LEFT``, as a share of the objective; 1 without one."""
    SPARE = enum.auto()
    """``LAXITY`` less the time of kept jobs with earlier deadlines."""
    KEPT = enum.auto()
    """1 if the plan keeps the tenant's oldest job."""
    KEPT_DEAR = enum.auto()
    """1 if the plan keeps the tenant's oldest job though time is dear."""
    LOST = enum.auto()
    """Weight of the tenant's jobs that are not kept: ``n / (n + 4)``, doubled."""
    GOING = enum.auto()
    """The tenant's launches in flight: ``n / (n + 4)``, doubled."""
    BEST_EFFORT = enum.auto()
    """1 if the tenant has no objective."""
    RIVALS = enum.auto()
    """Other tenants with a job: ``n / (n + 4)``, doubled."""
    RIVALS_SPARE = enum.auto()
    """The least ``SPARE`` of other tenants whose jobs are kept; 1: there are none."""
    TIGHT = enum.auto()
    """``exp(-4 SPARE)``, at most 1: the chance to be late falls steeply at first, and no straight line does."""


READS: dict[str, tuple[str, ...]] = {
    "tenants": (
        "PRESENT", "HAS_SLO", "JOBS", "LAUNCHED", "EARNS", "OLDEST_LEFT", "OLDEST_LAXITY", "OLDEST_SPARE",
        "OLDEST_KEPT", "OLDEST_KEPT_DEAR", "LOST", "AHEAD", "AHEAD_ALONE",
    ),
}  # fmt: skip
"""Columns of an observation that the rule reads, by name: others may come and go."""


def shapes(ways: int = len(Way)) -> dict[str, tuple[int, ...]]:
    """Shapes of the weights, by name, of a rule with so many ways."""
    return {"value": (ways, len(ServeTerm))}


Singles = NDArray[np.float32]

BESIDE = OTHERS.index(BY_PLAN.others)
ALONE = OTHERS.index(0)
WIDE = OTHERS.index(max(OTHERS))
"""Which of a tenant's actions stands for each way."""
TERMS = len(ServeTerm)
NEVER = -1e9
MOST_LOST = 8.0
"""The most that a loss in futures counts, in multiples of the mean weight: more and never in time are the same."""
MARGIN_BESIDE, MARGIN_ALONE = MARGINS
TIGHTENS = 4.0
"""How many times the logarithm of ``TIGHT`` falls over a whole objective of spare time."""


@called
def may_serve(tenants: Singles, tenant: int) -> bool:
    """Whether a tenant has a job."""
    return bool(tenants[tenant, TenantFeature.PRESENT] > 0.5 and tenants[tenant, TenantFeature.JOBS] > 0.0)


@cached()
def serve_terms(tenants: Singles, tenant: int, way: int, terms: Singles) -> None:
    """Write the terms of letting a tenant go first.

    Args:
        tenants: of the observation.
        tenant: its row; it has a job.
        way: a :class:`~gpusched_env.agents.policies.serve.Way`.
        terms: written, shape ``(len(ServeTerm),)``.
    """
    row = tenants[tenant]
    rivals = 0.0
    spare = 1.0
    for other in range(tenants.shape[0]):
        if other != tenant and may_serve(tenants, other):
            rivals += 1.0
            if tenants[other, TenantFeature.OLDEST_KEPT] > 0.5:
                spare = min(spare, tenants[other, TenantFeature.OLDEST_SPARE])
    terms[ServeTerm.ONE] = 1.0
    ahead = row[TenantFeature.AHEAD_ALONE if way == Way.ALONE.value else TenantFeature.AHEAD]
    terms[ServeTerm.AHEAD] = ahead / max(1.0 - abs(ahead), 1.0 / (1.0 + MOST_LOST))
    terms[ServeTerm.EARNS] = 2.0 * row[TenantFeature.EARNS] - 1.0
    terms[ServeTerm.LEFT] = 4.0 * row[TenantFeature.OLDEST_LEFT] - 2.0
    terms[ServeTerm.LAXITY] = row[TenantFeature.OLDEST_LAXITY]
    terms[ServeTerm.SPARE] = row[TenantFeature.OLDEST_SPARE]
    terms[ServeTerm.KEPT] = row[TenantFeature.OLDEST_KEPT]
    terms[ServeTerm.KEPT_DEAR] = row[TenantFeature.OLDEST_KEPT_DEAR]
    terms[ServeTerm.LOST] = 2.0 * row[TenantFeature.LOST]
    terms[ServeTerm.GOING] = 2.0 * row[TenantFeature.LAUNCHED]
    terms[ServeTerm.BEST_EFFORT] = 1.0 - row[TenantFeature.HAS_SLO]
    terms[ServeTerm.RIVALS] = 2.0 * rivals / (rivals + 4.0)
    terms[ServeTerm.RIVALS_SPARE] = spare
    terms[ServeTerm.TIGHT] = math.exp(-TIGHTENS * max(0.0, row[TenantFeature.OLDEST_SPARE]))


@called
def serve_numbers(serves: int, weights: Singles, tenants: Singles, terms: Singles, out: Singles) -> None:
    """Write one number an action.

    Args:
        serves: actions of a tenant; without them nothing is chosen.
        weights: ``value``, transposed.
        tenants: of the observation.
        terms: written.
        out: written.
    """
    ways = weights.size // TERMS
    value = weights.reshape((TERMS, ways))
    out[:] = NEVER
    out[0] = 0.0
    if serves <= max(BESIDE, ALONE, WIDE):
        return
    for tenant in range(tenants.shape[0]):
        if not may_serve(tenants, tenant):
            continue
        of = 1 + tenant * serves
        serve_terms(tenants, tenant, Way.ALONE.value, terms)
        out[of + ALONE] = with_weights(-terms[ServeTerm.AHEAD] - MARGIN_ALONE, value, Way.ALONE.value, terms)
        serve_terms(tenants, tenant, Way.BESIDE.value, terms)
        beside = with_weights(-terms[ServeTerm.AHEAD] - MARGIN_BESIDE, value, Way.BESIDE.value, terms)
        out[of + BESIDE] = beside
        if ways > Way.WIDE.value:
            out[of + WIDE] = with_weights(beside, value, Way.WIDE.value, terms)


@called
def with_weights(worth: float, value: Singles, way: int, terms: Singles) -> float:
    """A value, and what the weights of a way add to it."""
    for term in range(TERMS):
        worth += value[term, way] * terms[term]
    return worth
