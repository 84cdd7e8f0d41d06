"""A serving engine in a problem: the steps that it has, in the order in which it looks for one, and a request alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.workload.batching import Batching
from gpusched_env.workload.lengths import lengths
from gpusched_env.workload.tenant import Tenant
from gpusched_env.workload.workload import Variant, Workload


@dataclass(frozen=True, slots=True)
class Engine:
    """What the host of a serving engine goes by."""

    max_batch: int
    cache_tokens: int
    prompts: tuple[int, ...]
    answers: tuple[int, ...]
    """Equally likely lengths, tokens."""
    sizes: tuple[tuple[int, int], ...]
    """By variant of the program: requests of a decode step and tokens of each, of a prefill 0 and its tokens. They
    ascend, so that the first that covers what runs is the smallest."""
    repeats: tuple[float, ...]
    """By variant: how often a mean request repeats it alone on the GPU."""

    @property
    def longest_prefill(self) -> int:
        """Tokens that one prefill can process."""
        return max(tokens for batch, tokens in self.sizes if batch == 0)


def steps_of(workload: Workload) -> tuple[Variant, ...]:
    """The variants of a workload that are steps of an engine, in order of their sizes."""
    steps = [variant for variant in workload.variants if variant.step is not None]
    return tuple(sorted(steps, key=_size))


def _size(variant: Variant) -> tuple[int, int]:
    assert variant.step is not None
    return variant.step.size


def engine_of(tenant: Tenant, workload: Workload) -> Engine | None:
    """The engine that a tenant is; ``None``: it is none.

    Raises:
        InputError: its workload has not recorded the steps that it may need, its cache is too small for a request, or
            it has an ``iteration_us``, where steps differ in length.
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
    prompts, answers = lengths(batching.prompt), lengths(batching.answer)
    sizes = tuple(_size(variant) for variant in steps_of(workload))
    _check_cache(where, batching, prompts, answers)
    _check_steps(where, tenant, batching, sizes, prompts, answers)
    return Engine(
        max_batch=batching.max_batch,
        cache_tokens=batching.cache_tokens,
        prompts=prompts,
        answers=answers,
        sizes=sizes,
        repeats=_alone(sizes, prompts, answers),
    )


def _check_cache(where: str, batching: Batching, prompts: Sequence[int], answers: Sequence[int]) -> None:
    # The last token of an answer is never fed back, so that it needs no place.
    most = max(prompts) + max(answers) - 1
    if batching.cache_tokens < most:
        raise InputError(
            f"{where}: batching.cache_tokens is {batching.cache_tokens}, but a request of {max(prompts)} tokens with "
            f"an answer of {max(answers)} needs {most}; set it to that at least, or shorten prompt or answer"
        )


def _check_steps(
    where: str,
    tenant: Tenant,
    batching: Batching,
    sizes: Sequence[tuple[int, int]],
    prompts: Sequence[int],
    answers: Sequence[int],
) -> None:
    prefills = [tokens for batch, tokens in sizes if batch == 0]
    decodes = [size for size in sizes if size[0] > 0]
    wants = f"{where} has batching, but workload {tenant.workload}"
    if not prefills or (not decodes and max(answers) > 1):
        missing = "prefill" if not prefills else "decode"
        raise InputError(f"{wants} has no variant whose step is a {missing}; record one, or leave batching out")
    if max(prompts) > max(prefills):
        raise InputError(
            f"{wants} has no prefill of {max(prompts)} tokens, the longest of batching.prompt; the longest recorded "
            f"one has {max(prefills)}: record a longer one, or shorten prompts to that"
        )
    context = max(prompts) + max(answers) - 1
    if max(answers) > 1 and not any(batch >= batching.max_batch and held >= context for batch, held in decodes):
        recorded = ", ".join(f"{batch} x {held}" for batch, held in decodes)
        raise InputError(
            f"{wants} has no decode step of {batching.max_batch} requests (batching.max_batch) with {context} tokens "
            f"each (the longest prompt and answer); recorded are {recorded}: record a larger one, lower max_batch, or "
            "shorten prompt or answer"
        )


def _alone(sizes: Sequence[tuple[int, int]], prompts: Sequence[int], answers: Sequence[int]) -> tuple[float, ...]:
    """How often a mean request repeats each step alone: a prefill, then a decode step for each further token."""
    prompt, further = np.array(prompts), np.array(answers) - 1

    def up_to(batch: int, tokens: int) -> float:
        """Prefills, or decode steps, of at most so many tokens that a mean request has."""
        if batch == 0:
            return float(np.mean(prompt <= tokens))
        return float(np.mean(np.clip(tokens - prompt[:, None], 0, further)))

    covered = {0: 0, 1: 0}
    found = []
    for batch, tokens in sizes:
        before = covered[min(batch, 1)]
        found.append(up_to(batch, tokens) - up_to(batch, before) if tokens > before else 0.0)
        covered[min(batch, 1)] = max(before, tokens)
    return tuple(found)
