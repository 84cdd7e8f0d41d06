"""What a tenant's host does in a problem: its streams, its program, and the steps of a serving engine."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.scenarios.program import JobProgram
from gpusched_env.workload.serving import Batching, Lengths, RecordedLengths, lengths
from gpusched_env.workload.tenant import Tenant
from gpusched_env.workload.trace_replay import TraceReplay
from gpusched_env.workload.workload import Variant, Workload

Mask = tuple[int, int]
"""First SM, rank in placement order, and number of SMs: a contiguous range, wrapping around at the end."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream: what is launched into it starts in order."""

    tenant: int
    """Row of the tenant whose program uses it; -1: the scheduler's own."""
    priority: int
    """Stream priority that the program asks for, CUDA's convention; as there, within what the GPU has."""
    windowed: bool = False
    """Whether what is issued into it passes a window: it is launched into streams of the scheduler's, in any order that
    the memory which it touches allows (:mod:`gpusched_env.scenarios.launching`)."""
    mask: Mask | None = None
    """SMs that may hold the blocks of what is launched into it, unless the launch names others; ``None``: those of the
    launch's tenant. The GPU knows them beforehand, so a launch costs nothing for them (a stream with a mask of compute
    units on AMD GPUs, of a green context on NVIDIA's)."""


NO_ENGINE: Final = dict.fromkeys(
    (
        "max_batch", "cache_tokens", "longest_prefill", "longest_request", "prompts", "answers", "recorded_prompts",
        "recorded_answers",
    ), 0
)  # fmt: skip
"""What :func:`gpusched_env.workload.host.program` has of a tenant that serves jobs one at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class RequestLengths:
    """What a serving engine is asked: lengths in tokens."""

    prompts: NDArray[np.int64]
    answers: NDArray[np.int64]
    """Lengths of answers, equally likely, or those of the requests of a trace, one after another."""
    recorded_prompts: bool
    recorded_answers: bool

    @property
    def belong_together(self) -> bool:
        """Whether a prompt goes with one answer, its own."""
        return self.recorded_prompts and self.recorded_answers

    @property
    def shortest(self) -> tuple[int, int]:
        """Prompt and answer of the request that needs fewest places in the cache."""
        if not self.belong_together:
            return int(self.prompts.min()), int(self.answers.min())
        row = int(np.argmin(self.prompts + self.answers))
        return int(self.prompts[row]), int(self.answers[row])

    def up_to(self, most: int) -> BatchLimits:
        """Requests that need at most so many places; the last token of an answer is never fed back, and needs none."""
        if self.belong_together:
            fit = self.prompts + self.answers - 1 <= most
            further = (self.answers[fit] - 1)[:, np.newaxis]
            return BatchLimits(self.prompts[fit], further, np.ones(len(further), np.int64), len(fit))
        further = np.sort(self.answers - 1)[np.newaxis]
        counts = np.searchsorted(further[0], most - self.prompts, side="right")
        return BatchLimits(self.prompts, further, counts, len(self.prompts) * len(self.answers))


@dataclass(frozen=True, slots=True, eq=False)
class BatchLimits:
    """The requests that an engine can hold."""

    prompts: NDArray[np.int64]
    further: NDArray[np.int64]
    """Tokens of answers but the first, which the prefill yields: a row a prompt, or one for all; rows ascend."""
    counts: NDArray[np.int64]
    """How many of its answers, the shortest, each prompt fits with."""
    asked: int
    """Requests, each as likely, that there are with those that do not fit."""

    @property
    def count(self) -> int:
        """Number of requests that the engine can hold."""
        return int(self.counts.sum())

    def prefills(self, tokens: int, longest: int) -> float:
        """Prefills of at most so many tokens that a mean request has alone; ``longest``: tokens of one, at most."""
        before, last = np.divmod(self.prompts - 1, longest)
        each = (last < tokens) + (before if tokens >= longest else 0)
        return int((each * self.counts).sum()) / self.count

    def decodes(self, tokens: int) -> float:
        """Decode steps with a context of at most so many tokens that a mean request has alone."""
        room = np.maximum(tokens - self.prompts, 0)
        if len(self.further) > 1:
            return int(np.minimum(room, self.further[:, 0]).sum()) / self.count
        # The sum of min(room, further) over the answers that fit, by their order.
        below = np.minimum(np.searchsorted(self.further[0], room), self.counts)
        sums = np.concatenate([[0], np.cumsum(self.further[0])])
        return int((sums[below] + room * (self.counts - below)).sum()) / self.count


@dataclass(frozen=True, slots=True)
class Engine:
    """What the host of a serving engine goes by."""

    max_batch: int
    cache_tokens: int
    longest_request: int
    """Tokens of a request that it can ever hold: what needs more is rejected when it arrives."""
    asked: RequestLengths
    fitting: BatchLimits
    """Requests of ``asked`` that the engine can hold."""
    sizes: tuple[tuple[int, int], ...]
    """Requests of a decode step and tokens of each, of a prefill 0 and its tokens, by variant of the program. They
    ascend, so that the first that covers what runs is the smallest."""
    repeats: tuple[float, ...]
    """How often a mean request repeats each variant alone on the GPU."""

    @property
    def longest_prefill(self) -> int:
        """Tokens that one prefill can process."""
        return _longest_prefill(self.sizes)

    @property
    def numbers(self) -> dict[str, int]:
        """The engine in numbers, named as :data:`NO_ENGINE` names them."""
        asked = self.asked
        found = self.max_batch, self.cache_tokens, self.longest_prefill, self.longest_request
        counts = len(asked.prompts), len(asked.answers), int(asked.recorded_prompts), int(asked.recorded_answers)
        return dict(zip(NO_ENGINE, (*found, *counts), strict=True))


def steps_of(workload: Workload) -> tuple[Variant, ...]:
    """The variants of a workload that are steps of an engine, in order of their sizes."""
    steps = [variant for variant in workload.variants if variant.step is not None]
    return tuple(sorted(steps, key=_size))


def _size(variant: Variant) -> tuple[int, int]:
    assert variant.step is not None
    return variant.step.size


def engine_of(tenant: Tenant, workload: Workload, replay: TraceReplay | None) -> Engine | None:
    """The engine that a tenant is, with what its arrivals play; ``None``: it is none.

    Raises:
        InputError: its workload has not recorded the steps that it may need, it can hold no request at all, its
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
    asked = RequestLengths(
        _lengths(f"{where}: batching.prompt", batching.prompt, None if replay is None else replay.prompts),
        _lengths(f"{where}: batching.answer", batching.answer, None if replay is None else replay.answers),
        isinstance(batching.prompt, RecordedLengths),
        isinstance(batching.answer, RecordedLengths),
    )
    sizes = tuple(_size(variant) for variant in steps_of(workload))
    longest = _longest_request(where, tenant, batching, sizes, int(asked.answers.max()))
    fitting = asked.up_to(longest)
    if fitting.count == 0:
        prompt, answer = asked.shortest
        raise InputError(
            f"{where} can hold no request: batching.cache_tokens is {batching.cache_tokens}, workload "
            f"{tenant.workload} has steps of {longest} tokens a request, but the shortest, of {prompt} tokens with an "
            f"answer of {answer}, needs {prompt + answer - 1}; have a larger cache, record longer steps, or shorten "
            "the lengths (most)"
        )
    return Engine(
        max_batch=batching.max_batch,
        cache_tokens=batching.cache_tokens,
        longest_request=longest,
        asked=asked,
        fitting=fitting,
        sizes=sizes,
        repeats=_alone(sizes, fitting),
    )


def _lengths(where: str, of: Lengths, recorded: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The lengths of a distribution, or recorded ones."""
    if not isinstance(of, RecordedLengths):
        return np.array(lengths(of), np.int64)
    if recorded is None:
        raise InputError(
            f"{where} is recorded, but nothing has recorded it; the tenant needs arrivals of the kind trace, whose "
            "file has lengths, or lengths of another kind"
        )
    return recorded if of.most is None else np.minimum(recorded, of.most)


def _longest_request(
    where: str, tenant: Tenant, batching: Batching, sizes: Sequence[tuple[int, int]], answer: int
) -> int:
    """Tokens of a request that fits the cache and the recorded steps; ``answer``: tokens of the longest one.

    Raises:
        InputError: there is no prefill, or no decode step of as many requests as may run.
    """
    decodes = [size for size in sizes if size[0] > 0]
    wants = f"{where} has batching, but workload {tenant.workload}"
    if len(decodes) == len(sizes) or (not decodes and answer > 1):
        missing = "decode" if len(sizes) > len(decodes) else "prefill"
        raise InputError(f"{wants} has no variant whose step is a {missing}; record one, or leave batching out")
    if answer == 1:
        return batching.cache_tokens
    held = max((tokens for batch, tokens in decodes if batch >= batching.max_batch), default=0)
    if held == 0:
        recorded = ", ".join(f"{batch} x {tokens}" for batch, tokens in decodes)
        raise InputError(
            f"{wants} has no decode step of {batching.max_batch} requests (batching.max_batch); recorded are "
            f"{recorded}: record a larger one, or lower max_batch"
        )
    return min(batching.cache_tokens, held)


def _longest_prefill(sizes: Sequence[tuple[int, int]]) -> int:
    return max(tokens for batch, tokens in sizes if batch == 0)


def _alone(sizes: Sequence[tuple[int, int]], fitting: BatchLimits) -> tuple[float, ...]:
    """How often a mean request repeats each step alone: a prefill, then a decode step for each further token."""
    longest = _longest_prefill(sizes)
    covered = {0: 0, 1: 0}
    found = []
    for batch, tokens in sizes:
        before = covered[min(batch, 1)]
        if batch == 0:
            counts = [fitting.prefills(up_to, longest) for up_to in (before, tokens)]
        else:
            counts = [fitting.decodes(up_to) for up_to in (before, tokens)]
        found.append(counts[1] - counts[0] if tokens > before else 0.0)
        covered[min(batch, 1)] = max(before, tokens)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class TenantProgram:
    """What a tenant's host does, with identities of the problem's kernel table."""

    tenant: Tenant
    workload: Workload
    variants: tuple[JobProgram, ...]
    """One a recorded iteration (only the first without variation); of a serving engine, one a step."""
    host_spread: tuple[float, ...]
    """Factors on host times that jobs draw from: recorded iteration times over their median."""
    alone_us: float
    """Profiled turnaround of one job alone on the GPU (mean over variants, of an engine over requests)."""
    answer_us: float
    """``alone_us`` up to what the objective is about: a job's completion, of an engine's request the first token."""
    engine: Engine | None = None
    """The serving engine that it is; ``None``: jobs are served one at a time."""
    replay: TraceReplay | None = None
    """What its arrivals play, if they are a trace."""
    footprint_bytes: int = 0
    """Memory that an iteration touches; 0: not known."""
    brings: float = 1.0
    """What its kernels bring into the L2, as a share of the DRAM traffic of their profiles."""
    keeps: bool = False
    """Whether it finds all of its data in the L2 again when nobody else runs: it brings in what it has lost only."""

    @property
    def jobs_a_us(self) -> float:
        """Mean rate of its arrivals; 0 where it is not the process that says how often."""
        return self.tenant.arrivals.jobs_a_us if self.replay is None else self.replay.jobs_a_us

    @property
    def engine_numbers(self) -> dict[str, int]:
        """The tenant's engine, as :func:`gpusched_env.workload.host.program` has it."""
        return NO_ENGINE if self.engine is None else self.engine.numbers

    @property
    def turnaround_slo_us(self) -> float | None:
        """The objective for turnarounds; ``None``: there is none, or it is for the time to the first token."""
        return self.tenant.slo_us if self.engine is None else None

    @property
    def repeats(self) -> tuple[float, ...]:
        """How often a mean job repeats each variant, times :attr:`jobs`."""
        return (1.0,) * len(self.variants) if self.engine is None else self.engine.repeats

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """:attr:`.serving_engine.Engine.sizes`; zeros where it is none."""
        return ((0, 0),) * len(self.variants) if self.engine is None else self.engine.sizes

    @property
    def jobs(self) -> int:
        """Jobs that repeat the variants as often as :attr:`repeats` says."""
        return len(self.variants) if self.engine is None else 1


def mean_per_job(engine: Engine | None, values: Sequence[float], *, answered: bool = False) -> float:
    """What a mean job comes to, of something that each variant of its program has; ``answered``: up to what its
    objective is about."""
    if engine is None:
        return statistics.fmean(values)
    counted = zip(engine.repeats, values, engine.sizes, strict=True)
    return sum(times * value for times, value, (batch, _) in counted if batch == 0 or not answered)
