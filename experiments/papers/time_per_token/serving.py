"""A serving engine, step by step: iteration-level scheduling (Yu et al., Orca, OSDI 2022).

* *Mixed* engines (vLLM and TensorRT-LLM, by their documentation) process a token of each request that runs and chunks
  of prompts in one step, up to a budget of tokens.
* *Separate* ones (SGLang, by its documentation) process prompts first, up to the budget, and then tokens.

Requests are admitted in their order, when the cache has room for the prompt. An engine that *reserves* (TensorRT-LLM)
wants room for the whole answer, too. In others the newest request gives its places back where the cache is full: it
waits in front of all others, and what it had is processed anew, as in :mod:`gpusched_env.workload.host.batching`.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from gpusched_env.experiments.papers.time_per_token.steps import Chunk, EngineStep

WAVES: Final = 5
"""How many requests each client sends, on average; the first wave, which all begin together, does not count."""


class EngineRequest(NamedTuple):
    """A request; lengths in tokens."""

    arrival_us: float
    prompt: int
    answer: int


class Answered(NamedTuple):
    """A request that has all its tokens."""

    request: EngineRequest
    first_us: float
    last_us: float

    @property
    def token_us(self) -> float:
        """Time from the first token to the last, over the tokens between; 0 of a single token."""
        return (self.last_us - self.first_us) / max(1, self.request.answer - 1)


@dataclass(frozen=True, slots=True)
class EngineModel:
    """How an engine makes steps."""

    mixed: bool
    reserves: bool
    step_tokens: int
    """Tokens that a step processes at most."""
    cache_tokens: int
    """Capacity of the cache of keys and values."""
    most: int
    """Requests that run at a time, at most."""


@dataclass(slots=True)
class _Served:
    """A request that waits or runs."""

    request: EngineRequest
    cached: int = 0
    """Tokens in the cache."""
    made: int = 0
    """Tokens of its answer."""
    first_us: float = math.nan

    @property
    def to_read(self) -> int:
        """Tokens that are to be processed before its next one is made."""
        return self.request.prompt + self.made


def served(
    requests: Iterable[EngineRequest],
    engine: EngineModel,
    step_us: Callable[[EngineStep], float],
    following: Callable[[float], EngineRequest | None] = lambda now_us: None,
) -> Iterator[Answered]:
    """Requests as they are answered.

    Args:
        requests: in order of their arrival, each of which the cache holds alone.
        engine: serves them.
        step_us: duration of a step.
        following: the request that comes when one is answered, by the time.
    """
    coming, waiting, running = deque(requests), deque[_Served](), list[_Served]()
    now_us = 0.0
    while coming or waiting or running:
        if not waiting and not running:
            now_us = max(now_us, coming[0].arrival_us)
        while coming and coming[0].arrival_us <= now_us:
            waiting.append(_Served(coming.popleft()))
        chunks, read = _chunks(waiting, running, engine)
        decoding = running if engine.mixed or not chunks else []
        now_us += step_us(
            EngineStep(tuple(chunks), len(read), len(decoding), sum(each.cached for each in decoding) + len(decoding))
        )
        for each in decoding:
            each.cached += 1
        for each in (*decoding, *read):
            each.made += 1
            if each.made == 1:
                each.first_us = now_us
        running = [*running, *read]
        for each in running:
            if each.made == each.request.answer:
                yield Answered(each.request, each.first_us, now_us)
                if (another := following(now_us)) is not None:
                    coming.append(another)
        running = [each for each in running if each.made < each.request.answer]
        _give_back(waiting, running, engine)


def _chunks(waiting: deque[_Served], running: list[_Served], engine: EngineModel) -> tuple[list[Chunk], list[_Served]]:
    """Chunks of prompts for the next step, and the requests that are read to their end with it: they wait no more."""
    chunks, read = list[Chunk](), list[_Served]()
    budget = engine.step_tokens - (len(running) if engine.mixed else 0)
    kept = sum(_kept(each, engine) for each in running)
    while waiting and budget > 0 and len(running) + len(read) < engine.most:
        first = waiting[0]
        kept += _kept(first, engine)
        if kept > engine.cache_tokens:
            break
        tokens = min(budget, first.to_read - first.cached)
        chunks.append(Chunk(tokens, first.cached))
        first.cached += tokens
        budget -= tokens
        if first.cached == first.to_read:
            read.append(waiting.popleft())
    return chunks, read


def _kept(each: _Served, engine: EngineModel) -> int:
    """Places of the cache that a request has or, admitted, would take."""
    whole = each.request.prompt + each.request.answer
    return whole if engine.reserves else max(each.cached, each.to_read) + 1


def _give_back(waiting: deque[_Served], running: list[_Served], engine: EngineModel) -> None:
    """The newest requests give their places back until the others have room for their next tokens."""
    if not running:
        return
    needed = sum(each.cached + 1 for each in running)
    partly = waiting[0] if waiting and waiting[0].cached else None
    if partly is not None and needed + partly.cached > engine.cache_tokens:
        partly.cached = 0
    while needed > engine.cache_tokens:
        newest = running.pop()
        needed -= newest.cached + 1
        newest.cached = 0
        waiting.appendleft(newest)


def time_per_token_us(
    clients: int, prompt: int, answer: int, engine: EngineModel, step_us: Callable[[EngineStep], float]
) -> float:
    """Mean time per token in the steady state, where each client sends its next request when its last is answered.

    Args:
        clients: all of whose requests have equal lengths.
        prompt: tokens.
        answer: tokens, two or more.
        engine: its cache holds a request.
        step_us: duration of a step.
    """
    requests = [EngineRequest(0.0, prompt, answer)] * clients
    all_answered = served(requests, engine, step_us, lambda now_us: EngineRequest(now_us, prompt, answer))
    steady = itertools.islice(all_answered, clients, WAVES * clients)
    return sum(found.token_us for found in steady) / ((WAVES - 1) * clients)
