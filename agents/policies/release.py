"""The release rule: a linear function that says which launch of a window goes next, and which is held back.

For each launchable launch, with the weights of its situation: ``1 + value . terms``. At most 0 means that it is held
back; of the others the one with the greatest value is launched, and of equals the oldest. With all weights 0 that is
release in order: the oldest launch that can go goes, behind what it waits for if it must. What is held back can go
elsewhere once the ends of all that it waits for are known.

As in the rule of co-location (:mod:`gpusched_env.agents.policies.rule`), terms are near -2 to 2, and the weights are
few enough to read and to search without gradients. A duration of ``t`` us counts as ``4 ln(1 + t) / ln(1 + 10^6)``.
There are no terms of how far the program is and how much is ready: searched with them, the rule fitted the graphs of
its training better and others worse. :mod:`gpusched_env.agents.release` computes the terms from an observation.
"""

from __future__ import annotations

import enum


class ReleaseColumn(enum.IntEnum):
    """Where a launch would go: rows of ``value``."""

    FREE = 0
    """It waits for nothing, and gets the stream that holds least."""
    BEHIND = enum.auto()
    """Into the stream of what it waits for."""


class ReleaseTerm(enum.IntEnum):
    """Columns of ``value``."""

    ONE = 0
    DURATION = enum.auto()
    """Profiled duration of the kernel."""
    QUEUED = enum.auto()
    """Profiled time left of what it would be behind."""
    BETWEEN = enum.auto()
    """Of that, what is behind the last one that it waits for."""
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
"""Weights by name."""
