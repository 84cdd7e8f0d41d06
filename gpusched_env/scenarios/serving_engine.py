"""A serving engine in a problem: the steps that it has, in the order in which it looks for one, and a request alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.workload.batching import Batching
from gpusched_env.workload.lengths import Lengths, Recorded, lengths
from gpusched_env.workload.tenant import Tenant
from gpusched_env.workload.traces.replay import Replay
from gpusched_env.workload.workload import Variant, Workload

NO_ENGINE: Final = dict.fromkeys(
    (
        "max_batch", "cache_tokens", "longest_prefill", "prompts", "answers", "recorded_prompts", "recorded_answers",
    ), 0
)  # fmt: skip
"""What :func:`gpusched_env.workload.host.program` has of a tenant that serves jobs one at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What a serving engine is asked: lengths in tokens."""

    prompts: NDArray[np.int64]
    answers: NDArray[np.int64]
    """Equally likely ones, or those of the requests of a trace, one after another."""
    recorded_prompts: bool
    recorded_answers: bool

    @property
    def belong_together(self) -> bool:
        """Whether a prompt goes with one answer, its own."""
        return self.recorded_prompts and self.recorded_answers

    @property
    def longest(self) -> tuple[int, int]:
        """Prompt and answer of the request that needs most places in the cache."""
        if not self.belong_together:
            return int(self.prompts.max()), int(self.answers.max())
        row = int(np.argmax(self.prompts + self.answers))
        return int(self.prompts[row]), int(self.answers[row])

    @property
    def most_cached(self) -> int:
        """Its places in the cache; the last token of an answer is never fed back, so that it needs none."""
        return sum(self.longest) - 1

    def steps_up_to(self, batch: int, tokens: int) -> float:
        """Prefills (``batch`` 0), or decode steps, of at most so many tokens that a mean request has alone."""
        if batch == 0:
            return float(np.mean(self.prompts <= tokens))
        # A decode step for each token of the answer but the first, which the prefill yields.
        room, further = np.maximum(tokens - self.prompts, 0), self.answers - 1
        if self.belong_together:
            return float(np.mean(np.minimum(room, further)))
        # Of every prompt with every answer: the sum of min(room, further) over all answers, by their order.
        further = np.sort(further)
        below = np.searchsorted(further, room)
        sums = np.concatenate([[0], np.cumsum(further)])
        total = int((sums[below] + room * (len(further) - below)).sum())
        return total / (len(room) * len(further))


@dataclass(frozen=True, slots=True)
class Engine:
    """What the host of a serving engine goes by."""

    max_batch: int
    cache_tokens: int
    asked: Asked
    sizes: tuple[tuple[int, int], ...]
    """By variant of the program: requests of a decode step and tokens of each, of a prefill 0 and its tokens. They
    ascend, so that the first that covers what runs is the smallest."""
    repeats: tuple[float, ...]
    """By variant: how often a mean request repeats it alone on the GPU."""

    @property
    def longest_prefill(self) -> int:
        """Tokens that one prefill can process."""
        return max(tokens for batch, tokens in self.sizes if batch == 0)

    @property
    def numbers(self) -> dict[str, int]:
        """As :data:`NO_ENGINE`."""
        asked = self.asked
        found = self.max_batch, self.cache_tokens, self.longest_prefill, len(asked.prompts), len(asked.answers)
        return dict(zip(NO_ENGINE, (*found, int(asked.recorded_prompts), int(asked.recorded_answers)), strict=True))


def steps_of(workload: Workload) -> tuple[Variant, ...]:
    """The variants of a workload that are steps of an engine, in order of their sizes."""
    steps = [variant for variant in workload.variants if variant.step is not None]
    return tuple(sorted(steps, key=_size))


def _size(variant: Variant) -> tuple[int, int]:
    assert variant.step is not None
    return variant.step.size


def engine_of(tenant: Tenant, workload: Workload, replay: Replay | None) -> Engine | None:
    """The engine that a tenant is, with what its arrivals play; ``None``: it is none.

    Raises:
        InputError: its workload has not recorded the steps that it may need, its cache is too small for a request, its
            arrivals have no lengths that it asks for, or it has an ``iteration_us``, where steps differ in length.
    """
    batching = tenant.batching
    if batching is None:
        return None
    where = f"tenant {tenant.name}"
    if tenant.iteration_us is not None:
        raise InputError(
            f"{where}: iteration_us is {tenant.iteration_us:g}, but steps of a serving engine differ in length; "
            "leave it out, or set host_us"
        )
    asked = Asked(
        _lengths(f"{where}: batching.prompt", batching.prompt, None if replay is None else replay.prompts),
        _lengths(f"{where}: batching.answer", batching.answer, None if replay is None else replay.answers),
        isinstance(batching.prompt, Recorded),
        isinstance(batching.answer, Recorded),
    )
    sizes = tuple(_size(variant) for variant in steps_of(workload))
    if batching.cache_tokens < asked.most_cached:
        prompt, answer = asked.longest
        raise InputError(
            f"{where}: batching.cache_tokens is {batching.cache_tokens}, but a request of {prompt} tokens with "
            f"an answer of {answer} needs {asked.most_cached}; set it to that at least, or shorten the lengths (most)"
        )
    _check_steps(where, tenant, batching, sizes, asked)
    return Engine(
        max_batch=batching.max_batch,
        cache_tokens=batching.cache_tokens,
        asked=asked,
        sizes=sizes,
        repeats=_alone(sizes, asked),
    )


def _lengths(where: str, of: Lengths, recorded: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Those of a distribution, or recorded ones."""
    if not isinstance(of, Recorded):
        return np.array(lengths(of), np.int64)
    if recorded is None:
        raise InputError(
            f"{where} is recorded, but nothing has recorded it; the tenant needs arrivals of the kind trace, whose "
            "file has lengths, or lengths of another kind"
        )
    return recorded if of.most is None else np.minimum(recorded, of.most)


def _check_steps(
    where: str,
    tenant: Tenant,
    batching: Batching,
    sizes: Sequence[tuple[int, int]],
    asked: Asked,
) -> None:
    prompt, answer = int(asked.prompts.max()), int(asked.answers.max())
    prefills = [tokens for batch, tokens in sizes if batch == 0]
    decodes = [size for size in sizes if size[0] > 0]
    wants = f"{where} has batching, but workload {tenant.workload}"
    if not prefills or (not decodes and answer > 1):
        missing = "prefill" if not prefills else "decode"
        raise InputError(f"{wants} has no variant whose step is a {missing}; record one, or leave batching out")
    if prompt > max(prefills):
        raise InputError(
            f"{wants} has no prefill of {prompt} tokens, the longest of batching.prompt; the longest recorded "
            f"one has {max(prefills)}: record a longer one, or shorten prompts to that (most)"
        )
    context = asked.most_cached
    if answer > 1 and not any(batch >= batching.max_batch and held >= context for batch, held in decodes):
        recorded = ", ".join(f"{batch} x {held}" for batch, held in decodes)
        raise InputError(
            f"{wants} has no decode step of {batching.max_batch} requests (batching.max_batch) with {context} tokens "
            f"each (the longest prompt and answer); recorded are {recorded}: record a larger one, lower max_batch, or "
            "shorten prompt or answer (most)"
        )


def _alone(sizes: Sequence[tuple[int, int]], asked: Asked) -> tuple[float, ...]:
    """How often a mean request repeats each step alone: a prefill, then a decode step for each further token."""
    up_to = asked.steps_up_to
    covered = {0: 0, 1: 0}
    found = []
    for batch, tokens in sizes:
        before = covered[min(batch, 1)]
        found.append(up_to(batch, tokens) - up_to(batch, before) if tokens > before else 0.0)
        covered[min(batch, 1)] = max(before, tokens)
    return tuple(found)
