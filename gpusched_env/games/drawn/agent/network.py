"""The agent's network: each tenant by the same layers, their mean and maximum, then the scenario, then a number a rule.

Any number of tenants in any order gives the same. NumPy alone, so that a decision needs no framework.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.envs.features import TenantFeature
from gpusched_env.games.drawn.agent.seeing import OTHERS, REPERTOIRE, TENANTS, Row

Weights = dict[str, NDArray[np.float32]]
TENANT_WIDTH: Final = 32
HIDDEN: Final = 64
SHAPES: Final[dict[str, tuple[int, ...]]] = {
    "tenant.0.weight": (TENANT_WIDTH, len(TenantFeature)),
    "tenant.0.bias": (TENANT_WIDTH,),
    "tenant.2.weight": (TENANT_WIDTH, TENANT_WIDTH),
    "tenant.2.bias": (TENANT_WIDTH,),
    "all.0.weight": (HIDDEN, 2 * TENANT_WIDTH + OTHERS),
    "all.0.bias": (HIDDEN,),
    "all.2.weight": (len(REPERTOIRE), HIDDEN),
    "all.2.bias": (len(REPERTOIRE),),
}
"""Arrays of weights by name; a layer's are ``(outputs, inputs)``."""


def numbers_of(weights: Weights, row: Row) -> NDArray[np.float32]:
    """A number for each rule of the repertoire, the largest of which is the policy's choice, shape ``(choices,)``.

    Args:
        weights: as of :data:`SHAPES`.
        row: what is seen, shape ``(WIDTH,)``.
    """
    tenants = row[:TENANTS].reshape(-1, len(TenantFeature))
    there = tenants[tenants[:, TenantFeature.PRESENT] > 0.0]
    each = _layer(weights, "tenant.2", _layer(weights, "tenant.0", there))
    seen = np.concatenate((each.mean(0), each.max(0), row[TENANTS:]))
    hidden = _layer(weights, "all.0", seen)
    return np.asarray(hidden @ weights["all.2.weight"].T + weights["all.2.bias"])


def _layer(weights: Weights, name: str, given: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(np.maximum(given @ weights[f"{name}.weight"].T + weights[f"{name}.bias"], 0.0))
