"""The knob rule: linear functions that say how long a training sleeps and how many SMs it has beside services.

For decisions that stand for an interval and are about knobs. Each tenant without an objective gets

1. a pause: the one on offer whose number, from 0 for none to 7 for the longest, is next to ``pause . terms``
   (:data:`~gpusched_env.envs.action_fields.PAUSES`, each about twice the one before);
2. a share: ``share . terms`` quarters of the SMs more than it has, rounded, up to the last SM. A new share takes a
   restart, so that it changes when there is reason for at least half a quarter.

The service that the terms are about is the one whose turnarounds are longest beside its objective. With all weights 0
nothing is held back: that is where a search begins. :mod:`gpusched_env.agents.knobs` computes the terms from an
observation.
"""

from __future__ import annotations

import enum


class PauseTerm(enum.IntEnum):
    """Columns of ``pause``, near -2 to 2."""

    ONE = 0
    LATENCY = enum.auto()
    """Exponential mean of the service's turnarounds ``x``, in times of its objective: ``4 x / (1 + x) - 2``."""
    LAST = enum.auto()
    """Its last turnaround likewise."""
    QUEUE = enum.auto()
    """Its jobs in the system times the time of one alone, likewise; from 0 on: ``4 x / (1 + x)``."""
    PRICE = enum.auto()
    """``1 + ln x`` of the weight over the time alone, ``x`` times that of services: what a pause costs beside what it
    can save."""
    LENGTH = enum.auto()
    """``ln x - 1`` of its own time alone, in times of the objective."""


class ShareTerm(enum.IntEnum):
    """Columns of ``share``, likewise."""

    ONE = 0
    LATENCY = enum.auto()
    PRICE = enum.auto()


READS: dict[str, tuple[str, ...]] = {
    "tenants": (
        "PRESENT", "HAS_SLO", "SLO", "ALONE", "JOBS", "LAST_SLOWDOWN", "MEAN_SLOWDOWN", "PARTITION_SMS", "EARNS",
    ),
}  # fmt: skip
"""Columns of an observation that the rule reads, by name: others may come and go."""

SHAPES: dict[str, tuple[int, ...]] = {"pause": (len(PauseTerm),), "share": (len(ShareTerm),)}
"""Weights by name."""
