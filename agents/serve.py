"""The serve rule (:mod:`gpusched_env.agents.policies.serve`) in compiled code: one number an action.

Going by the plan has 0, letting a tenant go first its value, everything else one below all that is chosen.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.policies.serve import MARGINS, ServeTerm, Way
from gpusched_env.compiling import cached, called
from gpusched_env.envs.features import TenantFeature
from gpusched_env.envs.slices import OTHERS
from gpusched_env.planning.interval import BY_PLAN

Singles = NDArray[np.float32]

BESIDE = OTHERS.index(BY_PLAN.others)
ALONE = OTHERS.index(0)
WIDE = OTHERS.index(max(OTHERS))
"""Of a tenant's actions the one for each way."""
TERMS = len(ServeTerm)
NEVER = -1e9
MOST_LOST = 8.0
"""Of what is lost in futures, in multiples of the mean weight; more than that and never in time are the same."""
MARGIN_BESIDE, MARGIN_ALONE = MARGINS
TIGHTENS = 4.0
"""Of ``TIGHT``: how many times its logarithm falls over a whole objective of spare time."""


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
