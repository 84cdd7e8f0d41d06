"""A trace of arrivals as it is played: cut, at its speed, in the device's times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.hardware.clock import PS_PER_US
from gpusched_env.reading import LONGEST_US
from gpusched_env.workload.requests import RecordedRequests, read_requests
from gpusched_env.workload.tenant import Trace


@dataclass(frozen=True, slots=True, eq=False)
class TraceReplay:
    """What a tenant with arrivals of the kind ``trace`` goes by."""

    times_ps: NDArray[np.int64]
    """Times of the requests, shape ``(requests,)``, ascending, from the beginning of what was cut out."""
    span_ps: int
    """How long the trace is: where it repeats, until it begins again."""
    prompts: NDArray[np.int64] | None
    answers: NDArray[np.int64] | None
    """Tokens of prompts and of answers, shape ``(requests,)``; ``None``: not recorded."""

    @property
    def jobs_a_us(self) -> float:
        """Mean number of jobs a microsecond; 0 of a trace without length."""
        return len(self.times_ps) / (self.span_ps / PS_PER_US) if self.span_ps else 0.0


def replay_of(trace: Trace) -> TraceReplay:
    """A trace, read and cut.

    Raises:
        InputError: its file cannot be read, nothing is left of it, or it has no length where that matters.
    """
    cut, span_us = _cut(trace, _requests(trace))
    where = trace.file or "times_us"
    if span_us == 0.0 and (trace.mean_rate_per_s is not None or trace.at_end == "repeats"):
        raise InputError(f"{where}: all requests come at one time, so that the trace has no rate; give to_us")
    speed = trace.speed
    if trace.mean_rate_per_s is not None:
        speed *= trace.mean_rate_per_s * span_us / 1e6 / len(cut.times_us)
    if not span_us / speed <= LONGEST_US:
        raise InputError(
            f"{where}: the trace is {span_us / speed:g} us long as it is played, must be at most {LONGEST_US:g} us; "
            "cut it by from_us and to_us, or play it at a higher speed"
        )
    span_ps = _ps(span_us / speed)
    if not span_ps and trace.at_end == "repeats":
        raise InputError(f"{where}: at a speed of {speed:g} the whole trace comes at one time; lower speed")
    return TraceReplay(_ps(cut.times_us / speed).astype(np.int64), int(span_ps), cut.prompts, cut.answers)


def _ps(us: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Times in picoseconds, rounded as :func:`~gpusched_env.hardware.clock.to_ps` does."""
    return np.floor(np.asarray(us) * PS_PER_US + 0.5)


def _requests(trace: Trace) -> RecordedRequests:
    if trace.file is not None:
        return read_requests(Path(trace.file), trace.task)
    prompts, answers = (np.array(each, np.int64) if each else None for each in (trace.prompts, trace.answers))
    return RecordedRequests(np.array(trace.times_us), prompts, answers)


def _cut(trace: Trace, found: RecordedRequests) -> tuple[RecordedRequests, float]:
    """The requests from ``from_us`` to ``to_us``, from time 0 on, and how long that is."""
    ends_us = np.inf if trace.to_us is None else trace.to_us
    first, end = np.searchsorted(found.times_us, (trace.from_us, ends_us)).tolist()
    if first == end:
        raise InputError(
            f"{trace.file or 'times_us'}: no request from {trace.from_us:g} to {ends_us:g} us; the trace goes from "
            f"{found.times_us[0]:g} to {found.times_us[-1]:g} us"
        )
    prompts, answers = (None if each is None else each[first:end] for each in (found.prompts, found.answers))
    cut = replace(found, times_us=found.times_us[first:end] - trace.from_us, prompts=prompts, answers=answers)
    if trace.to_us is not None:
        return cut, trace.to_us - trace.from_us
    last_us, gaps = float(cut.times_us[-1]), end - first - 1
    return cut, last_us + (last_us - float(cut.times_us[0])) / max(1, gaps)
