"""What the kernels of an iteration look like as a graph, by the memory that they touch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusched_env.workload.segments import dependencies
from gpusched_env.workload.workload import OpKind, Workload

SMALL_BLOCKS = 40
"""Kernels of at most so many blocks are small: they leave most of a large GPU's SMs to others."""


@dataclass(frozen=True, slots=True)
class GraphFigures:
    """Figures of one iteration; copies and what the host waits for are left out."""

    kernels: int
    levels: int
    """Kernels of the longest chain."""
    parallelism: float
    """Sum of durations over that of the critical path: the most that running side by side can gain."""
    small: float
    """Share of kernels of at most :data:`SMALL_BLOCKS` blocks, 0 to 1."""
    blocks: float
    """Median of blocks."""
    duration_us: float
    """Median duration."""
    long_us: float
    """95th percentile of durations."""
    segments: float
    """Mean segments that a kernel reads and writes."""

    @property
    def depth(self) -> float:
        """Share of kernels in the longest chain, 0 to 1."""
        return self.levels / self.kernels


def graph_figures(workload: Workload, variant: int = 0) -> GraphFigures:
    """Figures of a variant of ``workload``. A kernel of unknown memory waits for all before it, and has no segments."""
    kernels = [op for op in workload.variants[variant].all_ops if op.kind is OpKind.KERNEL]
    levels: list[int] = []
    ends_us: list[float] = []
    for op, before in zip(kernels, dependencies(kernels), strict=True):
        levels.append(1 + max((levels[place] for place in before), default=0))
        ends_us.append(op.duration_us + max((ends_us[place] for place in before), default=0.0))
    durations_us = np.array([op.duration_us for op in kernels])
    blocks = np.array([workload.kernels[op.index].blocks for op in kernels])
    return GraphFigures(
        kernels=len(kernels),
        levels=max(levels),
        parallelism=float(durations_us.sum()) / max(ends_us),
        small=float(np.mean(blocks <= SMALL_BLOCKS)),
        blocks=float(np.median(blocks)),
        duration_us=float(np.median(durations_us)),
        long_us=float(np.percentile(durations_us, 95)),
        segments=float(np.mean([len(op.reads or ()) + len(op.writes or ()) for op in kernels])),
    )
