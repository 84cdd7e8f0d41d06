"""How many tokens prompts and answers have: distributions as data.

A length is drawn by one uniform number, which picks one of the equally likely :func:`lengths`: the values that a file
gives, or quantiles of a distribution in the middle of as many equal parts of its probability.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gpusched_env.workload.steps import Count

QUANTILES: Final = 256
"""Lengths that stand for a distribution."""


class Values(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="values", tag_field="kind"):
    """One of these, each as likely, clipped to ``most``: lengths of a trace, or a single one."""

    values: Annotated[tuple[Count, ...], Meta(min_length=1, max_length=2**20)]
    most: Count | None = None


class Lognormal(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="lognormal", tag_field="kind"
):
    """A length whose logarithm is normal, ``median`` in the middle, clipped to ``least`` and ``most``."""

    median: Annotated[float, Meta(ge=1, le=2**20)]
    sigma: Annotated[float, Meta(ge=0, le=10)]
    """Standard deviation of the natural logarithm."""
    least: Count = 1
    most: Count

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ValueError(f"least is {self.least}, must be at most {self.most}, as most is")


class Geometric(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="geometric", tag_field="kind"
):
    """After each token the next one is the last with the same chance; ``mean`` before it is clipped to ``most``."""

    mean: Annotated[float, Meta(ge=1, le=2**20)]
    most: Count


class Recorded(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="recorded", tag_field="kind"):
    """The request's own, recorded with its arrival (arrivals of the kind ``trace``), clipped to ``most``."""

    most: Count | None = None


Drawn = Values | Lognormal | Geometric
Lengths = Drawn | Recorded


def lengths(drawn: Drawn) -> tuple[int, ...]:
    """The equally likely lengths that stand for a distribution, tokens."""
    middles = [(part + 0.5) / QUANTILES for part in range(QUANTILES)]
    match drawn:
        case Values():
            return drawn.values if drawn.most is None else tuple(min(each, drawn.most) for each in drawn.values)
        case Lognormal():
            normal = NormalDist()
            found = (drawn.median * math.exp(drawn.sigma * normal.inv_cdf(u)) for u in middles)
            return tuple(round(min(max(length, drawn.least), drawn.most)) for length in found)
        case Geometric():
            if drawn.mean == 1.0:
                return (1,)
            goes_on = math.log1p(-1.0 / drawn.mean)
            return tuple(min(drawn.most, max(1, math.ceil(math.log1p(-u) / goes_on))) for u in middles)
