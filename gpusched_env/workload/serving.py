"""Serving engines of language models, as data: recorded steps, lengths of prompts and answers, batching."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Annotated, Final

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=1, le=2**20)]
"""A number of tokens, or of requests."""


class Prefill(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="prefill", tag_field="kind"):
    """The prompt of one request, ``tokens`` long, is processed; it yields the request's next token."""

    tokens: Count

    @property
    def size(self) -> tuple[int, int]:
        """Requests of a batch, 0 of a prefill, and tokens: those of the prompt, or of a context."""
        return 0, self.tokens


class Decode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="decode", tag_field="kind"):
    """A token for each of ``batch`` requests, whose caches hold ``context`` tokens each, the new one included."""

    batch: Count
    context: Count

    @property
    def size(self) -> tuple[int, int]:
        """Requests of the batch, and tokens that the cache of each holds, as :attr:`Prefill.size` says."""
        return self.batch, self.context


Step = Prefill | Decode


QUANTILES: Final = 256
"""Number of lengths that stand for a distribution."""


class ListedLengths(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="values", tag_field="kind"
):
    """One of ``values``, each as likely, clipped to ``most``: lengths of a trace, or a single one."""

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
    """A length that ends after each token with the same chance; ``mean`` before it is clipped to ``most``."""

    mean: Annotated[float, Meta(ge=1, le=2**20)]
    most: Count


class RecordedLengths(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="recorded", tag_field="kind"
):
    """The request's own length, recorded with its arrival (arrivals of the kind ``trace``), clipped to ``most``."""

    most: Count | None = None


Drawn = ListedLengths | Lognormal | Geometric
Lengths = Drawn | RecordedLengths


def lengths(drawn: Drawn) -> tuple[int, ...]:
    """The equally likely lengths that stand for a distribution, tokens."""
    middles = [(part + 0.5) / QUANTILES for part in range(QUANTILES)]
    match drawn:
        case ListedLengths():
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


class Batching(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a serving engine batches, and what it is asked (:mod:`gpusched_env.workload.host.batching`)."""

    max_batch: Annotated[int, Meta(ge=1, le=4096)]
    """Requests that run at a time, at most."""
    cache_tokens: Annotated[int, Meta(ge=1, le=2**40)]
    """Capacity of the KV cache: tokens of all running requests together."""
    prompt: Lengths
    """Tokens of a request's prompt."""
    answer: Lengths
    """Tokens of a request's answer, which ends by itself: the engine does not know when."""
