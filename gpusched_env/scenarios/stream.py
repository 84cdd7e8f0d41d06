"""Streams of a problem."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream: what is launched into it starts in order."""

    tenant: int
    """Row of the tenant whose program uses it; -1: the scheduler's own."""
    priority: int
    """Stream priority that the program asks for, CUDA's convention; as there, within what the GPU has."""
    windowed: bool = False
    """Whether what is issued into it passes a window: it is launched in any order, into idle streams of the
    scheduler's, once all that it waits for is known to have ended (:mod:`gpusched_env.scenarios.window`)."""
