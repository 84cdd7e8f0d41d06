"""Streams of a problem."""

from __future__ import annotations

from dataclasses import dataclass

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
    the memory which it touches allows (:mod:`gpusched_env.scenarios.window`)."""
    mask: Mask | None = None
    """SMs that may hold the blocks of what is launched into it, unless the launch names others; ``None``: those of the
    launch's tenant. The GPU knows them beforehand, so a launch costs nothing for them (a stream with a mask of compute
    units on AMD GPUs, of a green context on NVIDIA's)."""
