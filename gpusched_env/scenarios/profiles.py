"""What is known beforehand of kernels, graphs and jobs: profiles that are off, and what a job asks of the GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.program import JobProgram, NodeOp, critical_path_us
from gpusched_env.scenarios.tenant_program import TenantProgram
from gpusched_env.workload.profile import KernelProfile

if TYPE_CHECKING:
    from gpusched_env.scenarios.program import HostOp, JobProgram
    from gpusched_env.scenarios.tenant_program import TenantProgram


class ProfileError(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the profiles that everybody is told are off; what the device runs is not."""

    durations: Annotated[float, Meta(gt=0)] = 1.0
    """Profiled durations of all kernels are this many times the true ones."""
    gaps: Annotated[float, Meta(ge=0)] = 1.0
    """Profiled gaps are this many times the true ones."""
    scatter: Annotated[float, Meta(ge=1)] = 1.0
    """Besides, each duration and each gap is off by a factor of its own, log-uniform from one over this to this."""
    forget: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Each kernel was never measured with this probability: its duration and gap are unknown (NaN)."""
    seed: Annotated[int, Meta(ge=0)] = 0
    """Seed that decides which factors are drawn and which kernels are forgotten."""


@dataclass(frozen=True, slots=True)
class Profiles:
    """Profiled means by identity (kernels and then graphs), microseconds; NaN for a kernel never measured."""

    duration_us: NDArray[np.float64]
    gap_us: NDArray[np.float64]
    """Time from a kernel's end to the start of its tenant's next kernel, alone on the GPU."""

    def distorted(self, error: ProfileError) -> Profiles:
        """These profiles with ``error`` made in them."""
        rng = np.random.default_rng(error.seed)
        count = len(self.duration_us)
        off = np.exp(rng.uniform(-math.log(error.scatter), math.log(error.scatter), (2, count)))
        known = np.where(rng.random(count) < error.forget, math.nan, 1.0)
        return Profiles(
            self.duration_us * error.durations * off[0] * known,
            self.gap_us * error.gaps * off[1] * known,
        )

    def followed_by(self, duration_us: Sequence[float]) -> Profiles:
        """These profiles and, behind them, some with nothing after them: no gap, or none that is known."""
        gap_us = np.where(np.isnan(duration_us), math.nan, 0.0)
        return Profiles(np.concatenate([self.duration_us, duration_us]), np.concatenate([self.gap_us, gap_us]))


def told_program(program: TenantProgram, true_us: Sequence[float], told_us: NDArray[np.float64]) -> TenantProgram:
    """``program`` with the time left of a job spread over its kernels as ``told_us`` says.

    Otherwise the difference of two kernels' ``left_us`` would be a true duration. The whole job's stays. A kernel that
    was never measured counts as the mean of the others of its iteration.

    Args:
        program: of a tenant.
        true_us: true profiled durations by kernel identity.
        told_us: those that are told.
    """
    return replace(program, variants=tuple(_told_job(job, true_us, told_us) for job in program.variants))


def _told_job(job: JobProgram, true_us: Sequence[float], told_us: NDArray[np.float64]) -> JobProgram:
    threads = [_told_ops(ops, true_us, told_us) for ops in job.by_thread()]
    return replace(job, ops=tuple(op for ops in threads for op in ops))


def _told_ops(ops: tuple[HostOp, ...], true_us: Sequence[float], told_us: NDArray[np.float64]) -> list[HostOp]:
    kernels = [op.identity for op in ops if op.identity >= 0]
    if not kernels:
        return list(ops)
    told = told_us[kernels]
    unknown = np.isnan(told)
    told[unknown] = 1.0 if unknown.all() else told[~unknown].mean()
    told *= sum(true_us[identity] for identity in kernels) / told.sum()
    # From each kernel on, and nothing behind the last.
    left_us = [*np.cumsum(told[::-1])[::-1].tolist(), 0.0]
    found = []
    kernel = 0
    for op in ops:
        found.append(replace(op, left_us=left_us[kernel]))
        kernel += op.identity >= 0
    return found


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
