"""What is known beforehand of kernels, graphs and jobs: profiles that are off, and what a job asks of the GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.program import JobProgram, NodeOp, critical_path_us
from gpusched_env.scenarios.tenant_program import TenantProgram
from gpusched_env.workload.profile import KernelProfile


@dataclass(frozen=True, slots=True)
class GraphProfile:
    """A CUDA graph by its kernels together."""

    name: str
    kernels: int
    """Kernels among its nodes."""
    blocks: int
    """Thread blocks of all kernels among its nodes."""
    threads: int
    """Most threads of a block."""
    blocks_per_sm: int
    """Fewest blocks of one of its kernels that an empty SM holds."""
    sms: int
    """Most SMs that one of its kernels uses on an empty GPU."""
    duration_us: float
    """Profiled duration alone: its longest chain of nodes with the gaps of graphs."""
    issue: float
    dram: float
    """Shares of issue slots and DRAM bandwidth, means over its kernels by their durations."""


def graph_profile(name: str, nodes: Sequence[NodeOp], profiles: Sequence[KernelProfile], gpu: GpuSpec) -> GraphProfile:
    """Profile of a graph of ``nodes`` on ``gpu``; ``profiles`` are those of the problem's kernels."""
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


SHORTEST_BLOCK_US = 1e-3
"""Latency of blocks where no kernel was profiled."""


@dataclass(frozen=True, slots=True)
class JobDemand:
    """What a mean job of a tenant asks for, by profiles. Shares are of the whole GPU, and of the job's time alone."""

    issue: float
    """Issue slots in use, 0 to 1."""
    dram: float
    """DRAM bandwidth in use, 0 to 1."""
    threads: float
    """Thread slots in use, 0 to 1."""
    busy: float
    """Time in which its kernels run, 0 to 1."""
    overfull: float
    """Time in kernels of more blocks than the GPU holds at once, 0 to 1."""
    block_us: float
    """Latency of a block alone, mean over the time of kernels (> 0)."""


def job_demand(
    program: TenantProgram,
    profiles: Sequence[KernelProfile | GraphProfile],
    durations_us: NDArray[np.float64],
    gpu: GpuSpec,
) -> JobDemand:
    """The demand of a mean job.

    Args:
        profiles: kernels by identity, then graphs; a graph counts by the kernels in it.
        durations_us: by identity, as they are told; NaN where never measured, which counts as nothing.
    """
    sums = np.zeros(6)
    for variant, times in zip(program.variants, program.repeats, strict=True):
        for identity in _launched(variant):
            profile = profiles[identity]
            if isinstance(profile, KernelProfile) and not math.isnan(durations_us[identity]):
                sums += times * durations_us[identity] * _while_it_runs(profile, gpu)
    issue, dram, threads, kernels_us, overfull, block_us = sums / program.jobs
    if kernels_us == 0.0:
        return JobDemand(0.0, 0.0, 0.0, 0.0, 0.0, SHORTEST_BLOCK_US)
    # Kernels of several streams overlap: their times add up to more than the job's.
    whole_us = max(program.alone_us, kernels_us)
    return JobDemand(
        issue=float(issue / whole_us),
        dram=float(dram / whole_us),
        threads=float(threads / whole_us),
        busy=float(kernels_us / whole_us),
        overfull=float(overfull / whole_us),
        block_us=float(block_us / kernels_us),
    )


def _launched(variant: JobProgram) -> list[int]:
    """Identities of the kernels of a job, those in graphs and children included."""
    found = [op.identity for op in variant]
    for op in variant:
        found += [node.identity for node in op.nodes]
        found += [child.identity for child in op.children]
    return [identity for identity in found if identity >= 0]


def _while_it_runs(profile: KernelProfile, gpu: GpuSpec) -> NDArray[np.float64]:
    """The fields of :class:`JobDemand` while a kernel runs alone."""
    room = gpu.sms * profile.footprint.blocks_per_sm
    blocks = profile.kernel.blocks
    threads = min(blocks, room) * profile.footprint.threads / (gpu.sms * gpu.limits.threads)
    issue = profile.issue * profile.sms / gpu.sms
    return np.array([issue, profile.dram, threads, 1.0, float(blocks > room), float(profile.block[0]["latency_us"])])
