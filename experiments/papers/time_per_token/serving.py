"""A serving engine whose clients each send a request when their last is answered: iteration-level scheduling (Yu et
al., Orca, OSDI 2022).

* *Mixed* engines (vLLM and TensorRT-LLM, by their documentation) process a token of each request that runs and chunks
  of prompts in one step, up to a budget of tokens.
* *Separate* ones (SGLang, by its documentation) process prompts first, up to the budget, and then tokens.

A request is admitted when the cache has room for its prompt and its whole answer, so that none is preempted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gpusched_env.experiments.papers.time_per_token.steps import Chunk, Step

WAVES: Final = 5
"""How many requests each client sends, on average; the first wave, which all begin together, does not count."""


@dataclass(frozen=True, slots=True)
class Requests:
    """Equal requests of a number of clients; lengths in tokens."""

    clients: int
    prompt: int
    answer: int


@dataclass(frozen=True, slots=True)
class Engine:
    """How an engine makes steps."""

    mixed: bool
    step_tokens: int
    """Tokens that a step processes at most."""
    cache_tokens: int
    """Capacity of the cache of keys and values."""


@dataclass(slots=True)
class _Group:
    """Requests whose prompts ended with the same step: they get all their tokens together."""

    requests: int
    began_us: float
    """When their first tokens were there."""
    left: int
    """Tokens that are still to come."""


def time_per_token_us(requests: Requests, engine: Engine, step_us: Callable[[Step], float]) -> float:
    """Mean time from a request's first token to its last, over the tokens between, in the steady state.

    Args:
        requests: answers have two tokens or more.
        engine: its cache holds one request at least.
        step_us: duration of a step.
    """
    whole = requests.prompt + requests.answer
    at_most = min(requests.clients, engine.cache_tokens // whole)
    groups: deque[_Group] = deque()
    now_us, running, cached, partly, ended = 0.0, 0, 0, 0, 0
    waves: list[float] = []
    while ended < WAVES * requests.clients:
        # Whoever may be admitted is: clients that wait are as many as those that do not run.
        chunks, budget, finish = [], engine.step_tokens - (running if engine.mixed else 0), 0
        room = at_most - running
        while budget > 0 and room > 0:
            tokens = min(budget, requests.prompt - partly)
            chunks.append(Chunk(tokens, partly))
            budget -= tokens
            partly += tokens
            if partly == requests.prompt:
                partly, finish, room = 0, finish + 1, room - 1
        decoding = running if engine.mixed or not chunks else 0
        now_us += step_us(Step(tuple(chunks), finish, decoding, cached + decoding if decoding else 0))
        if decoding:
            cached += decoding
            for group in groups:
                group.left -= 1
            while groups and not groups[0].left:
                gone = groups.popleft()
                took_us = (now_us - gone.began_us) / (requests.answer - 1)
                if ended >= requests.clients:
                    waves += [took_us] * gone.requests
                ended += gone.requests
                running -= gone.requests
                cached -= gone.requests * (whole - 1)
        if finish:
            groups.append(_Group(finish, now_us, requests.answer - 1))
            running += finish
            cached += finish * requests.prompt
    return sum(waves) / len(waves)
