"""Tenants that are serving engines of a language model, which batch continuously and keep a cache."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from gpusched_env.workload.lengths import Lengths


class Batching(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a serving engine batches, and what it is asked (:mod:`gpusched_env.workload.host.batching`)."""

    max_batch: Annotated[int, Meta(ge=1, le=4096)]
    """Requests that run at a time, at most."""
    cache_tokens: Annotated[int, Meta(ge=1, le=2**40)]
    """Capacity of the KV cache: tokens of all running requests together."""
    prompt: Lengths
    """Tokens of a request's prompt."""
    answer: Lengths
    """Tokens of its answer, which ends by itself: the engine does not know when."""
