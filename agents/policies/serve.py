"""The serve rule: a linear function that says who goes first for an interval, beside few others, beside many or alone.

For decisions that stand for an interval. Each tenant with a job has two values, one for letting it go first while the
others fill what it leaves, and one for letting it go alone: what the observation says would be saved by that in
sampled futures (:mod:`gpusched_env.planning.lookahead`), less a margin (:data:`MARGINS`), ``+ value . terms``. With
more launches of the others in flight, of which those futures know nothing, it has the first value ``+ value . terms``
of that way. The greatest value above 0 is chosen; if there is none, the plan says who goes first. So with all weights 0
the rule departs from the plan where that is worth the margin, never beside many, and the weights say how far what is
seen ahead is to be trusted. Policies from before there was that way have weights for the other two alone.

As in the rule of co-location (:mod:`gpusched_env.agents.policies.rule`), terms are near -2 to 2, and the weights are
few enough to read and to search without gradients. :mod:`gpusched_env.agents.serve` computes the terms from an
observation.
"""

from __future__ import annotations

import enum


class Way(enum.IntEnum):
    """How a tenant goes first: rows of ``value``."""

    BESIDE = 0
    """With as many launches in flight of the others as by the plan."""
    ALONE = enum.auto()
    """With none."""
    WIDE = enum.auto()
    """With as many as there may be."""


MARGINS = (0.2, 0.4)
"""Of the first two ways, in multiples of the mean weight: what departing from the plan has to save without weights."""


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
    """What remains until its deadline beside that, of the objective; 1 without one."""
    SPARE = enum.auto()
    """The same, less the time of kept jobs with earlier deadlines."""
    KEPT = enum.auto()
    """1 if the plan keeps it."""
    KEPT_DEAR = enum.auto()
    """1 if it keeps it though time is dear."""
    LOST = enum.auto()
    """Weight of the tenant's jobs that are not kept: ``n / (n + 4)``, doubled."""
    GOING = enum.auto()
    """Its launches in flight: ``n / (n + 4)``, doubled."""
    BEST_EFFORT = enum.auto()
    """1 without an objective."""
    RIVALS = enum.auto()
    """Other tenants with a job: ``n / (n + 4)``, doubled."""
    RIVALS_SPARE = enum.auto()
    """The least ``SPARE`` of those that are kept; 1: there are none."""
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
    """Weights by name, of a rule with so many ways."""
    return {"value": (ways, len(ServeTerm))}
