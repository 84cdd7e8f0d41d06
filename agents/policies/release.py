"""The release rule: which launch of a window goes next, and which is held back.

What it reads, and the rule in compiled code.
"""

from __future__ import annotations

import enum

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import called
from gpusched_env.envs.features import PendingFeature


class ReleaseColumn(enum.IntEnum):
    """Where a launch would go: rows of ``value``."""

    FREE = 0
    """The launch waits for nothing, and gets the stream that holds least."""
    BEHIND = enum.auto()
    """The launch goes into the stream of what it waits for."""


class ReleaseTerm(enum.IntEnum):
    """Columns of ``value``."""

    ONE = 0
    DURATION = enum.auto()
    """Profiled duration of the kernel."""
    QUEUED = enum.auto()
    """Profiled time left of what it would be behind."""
    BETWEEN = enum.auto()
    """Profiled time left of what it would be behind, as far as that is behind the last one that it waits for."""
    DEPENDENTS = enum.auto()
    """Pending launches that are known to wait for it: ``n / (n + 4)``, doubled."""
    AGE = enum.auto()
    """Older pending launches of its tenant, over 8."""
    SMS = enum.auto()
    """SMs that it would use on the empty GPU, of all."""


READS: dict[str, tuple[str, ...]] = {
    "pending": ("LAUNCHABLE", "PROFILED", "SMS", "UPSTREAM", "QUEUED", "BETWEEN", "DEPENDENTS"),
}
"""Columns of an observation that the rule reads, by name: others may come and go."""

SHAPES: dict[str, tuple[int, ...]] = {"value": (len(ReleaseColumn), len(ReleaseTerm))}
"""Shapes of the weights, by name."""


Singles = NDArray[np.float32]

VALUE_SHAPE = (len(ReleaseTerm), len(ReleaseColumn))
"""Shape of the weights ``value``, transposed."""
SOME = 8.0
"""Number of launches that counts as 1."""


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
