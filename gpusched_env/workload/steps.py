"""Steps of a serving engine, as recorded: a variant of a workload may say which one it is.

An engine that batches continuously (:mod:`gpusched_env.workload.host.batching`) does nothing else: it processes the
prompt of a request, or makes a token for each request that runs.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=1, le=2**20)]
"""Of tokens, or of requests."""


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
        """As of :class:`Prefill`."""
        return self.batch, self.context


Step = Prefill | Decode
