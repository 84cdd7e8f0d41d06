"""CUDA graphs as a scheduler that does not look inside knows them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.program import NodeOp, critical_path_us
from gpusched_env.workload.profile import KernelProfile


@dataclass(frozen=True, slots=True)
class GraphProfile:
    """A CUDA graph by its kernels together."""

    name: str
    kernels: int
    """Kernels among its nodes."""
    blocks: int
    """Thread blocks of all of them."""
    threads: int
    """Most threads of a block."""
    blocks_per_sm: int
    """Fewest blocks of one of its kernels that an empty SM holds."""
    sms: int
    """Most SMs that one of them uses on an empty GPU."""
    duration_us: float
    """Profiled duration alone: its longest chain of nodes with the gaps of graphs."""
    issue: float
    dram: float
    """Shares of issue slots and DRAM bandwidth, means over its kernels by their durations."""


def graph_profile(name: str, nodes: Sequence[NodeOp], profiles: Sequence[KernelProfile], gpu: GpuSpec) -> GraphProfile:
    """That of a graph of ``nodes`` on ``gpu``; ``profiles`` are those of the problem's kernels."""
    kernels = [profiles[node.identity] for node in nodes if node.identity >= 0]
    spent_us = sum(kernel.duration_us for kernel in kernels)
    return GraphProfile(
        name=name,
        kernels=len(kernels),
        blocks=sum(kernel.kernel.blocks for kernel in kernels),
        threads=max(kernel.kernel.threads for kernel in kernels),
        blocks_per_sm=min(kernel.footprint.blocks_per_sm for kernel in kernels),
        sms=max(kernel.sms for kernel in kernels),
        duration_us=graph_duration_us(nodes, [profile.duration_us for profile in profiles], gpu),
        issue=sum(kernel.issue * kernel.duration_us for kernel in kernels) / spent_us,
        dram=sum(kernel.dram * kernel.duration_us for kernel in kernels) / spent_us,
    )


def graph_duration_us(nodes: Sequence[NodeOp], kernel_us: Sequence[float], gpu: GpuSpec) -> float:
    """How long a graph takes alone, by the durations ``kernel_us`` of kernels; NaN if that of one in it is."""
    profiled = [replace(n, device_us=kernel_us[n.identity]) if n.identity >= 0 else n for n in nodes]
    if any(math.isnan(node.device_us) for node in profiled):
        return math.nan
    return critical_path_us(profiled, gpu.timing.graph_gap_us)
