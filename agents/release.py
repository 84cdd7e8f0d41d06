"""The release rule (:mod:`gpusched_env.agents.policies.release`) in compiled code: one number an action.

Waiting has 0, what the rule wants to launch a number above 0, everything else one of at most 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.policies.release import ReleaseColumn, ReleaseTerm
from gpusched_env.compiling import called
from gpusched_env.envs.features import PendingFeature

Singles = NDArray[np.float32]

VALUE_SHAPE = (len(ReleaseTerm), len(ReleaseColumn))
"""Of the weights ``value``, transposed."""
SOME = 8.0
"""Launches that count as 1."""


@called
def release_numbers(launches: int, weights: Singles, pending: Singles, tenants: int, out: Singles) -> None:
    """Write one number an action.

    Args:
        launches: actions of a pending slot; the first one is what the rule takes.
        weights: ``value``, transposed.
        pending: of the observation.
        tenants: rows of tenants, each of which has as many of ``pending``.
        out: written.
    """
    value = weights.reshape(VALUE_SHAPE)
    out[:] = -1.0
    out[0] = 0.0
    lookahead = pending.shape[0] // tenants
    for place in range(pending.shape[0]):
        row = pending[place]
        if row[PendingFeature.LAUNCHABLE] < 0.5:
            continue
        where = ReleaseColumn.BEHIND.value if row[PendingFeature.UPSTREAM] > 0.0 else ReleaseColumn.FREE.value
        out[1 + place * launches] = (
            1.0
            + value[ReleaseTerm.ONE, where]
            + value[ReleaseTerm.DURATION, where] * 4.0 * row[PendingFeature.PROFILED]
            + value[ReleaseTerm.QUEUED, where] * 4.0 * row[PendingFeature.QUEUED]
            + value[ReleaseTerm.BETWEEN, where] * 4.0 * row[PendingFeature.BETWEEN]
            + value[ReleaseTerm.DEPENDENTS, where] * 2.0 * row[PendingFeature.DEPENDENTS]
            + value[ReleaseTerm.AGE, where] * (place % lookahead) / SOME
            + value[ReleaseTerm.SMS, where] * row[PendingFeature.SMS]
        )
