"""What a workload looks like at a glance: for the command line and for judging whether an import went well."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gpusched_env.hardware.occupancy import footprint
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.workload.alone import run_alone
from gpusched_env.workload.kernel import KernelClass
from gpusched_env.workload.workload import Op, OpKind, Workload

_CLASSES: tuple[KernelClass, ...] = ("compute", "memory", "mixed", "latency")


@dataclass(frozen=True, slots=True)
class WorkloadSummary:
    """Figures of one iteration alone on the GPU of the recording, means over the recorded iterations."""

    name: str
    gpu: str
    source: str
    """How it was recorded, and what the importer had to assume."""
    iterations: int
    """Recorded iterations (variants)."""
    wall_us: float
    """Median of the measured wall times."""
    alone_us: float
    """Length of an iteration as the program replays it alone; about ``wall_us``."""
    kernels: float
    """Kernels launched."""
    identities: int
    """Distinct kernels (name, grid, block, registers, shared memory) in the whole workload."""
    busy_us: float
    """Device time of kernels, copies and memsets."""
    idle_share: float
    """Share of ``alone_us`` in which the device does nothing, 0 to 1."""
    gaps: float
    """Idle gaps between device operations, longer than between queued ones (the device waits for the host)."""
    gap_median_us: float
    """Median length of those gaps; 0 without any."""
    gap_p95_us: float
    """Their 95th percentile; 0 without any."""
    occupancy: float
    """Resident over possible blocks of the whole GPU, weighted by duration, 0 to 1."""
    sm_share: float
    """Share of SMs that get a block, weighted by duration, 0 to 1."""
    copies: float
    """Copies between host and device and on the device."""
    copy_bytes: float
    """Bytes that they move."""
    memsets: float
    syncs: float
    """Host synchronisations."""
    class_shares: dict[KernelClass, float]
    """Share of the kernels' device time by class; sums to 1."""


def summarise(workload: Workload, gpu: GpuSpec | None = None) -> WorkloadSummary:
    """Figures of ``workload``.

    Args:
        workload: any workload.
        gpu: the GPU of its recording; ``None``: the shipped specification that it names.

    Raises:
        InputError: no such specification, or a kernel does not fit on ``gpu``.
    """
    spec = gpu if gpu is not None else load_gpu(workload.gpu)
    variants = [variant.ops for variant in workload.variants]
    runs = [run_alone([(op.kind, op.host_us, op.duration_us) for op in ops], spec.timing) for ops in variants]
    # Starts and ends are sums of times in microseconds: a nanosecond above the queued gap is no wait.
    longest_queued = spec.timing.stream_gap_us + 1e-3
    idle = [np.subtract(starts[1:], ends[:-1]) for _, starts, ends in runs]
    gaps = np.concatenate([gap[gap > longest_queued] for gap in idle])
    alone_us = statistics.fmean(end for end, _, _ in runs)
    busy_us = _mean(variants, lambda op: op.duration_us)
    occupancy, sm_share, class_shares = _residency(workload, spec)
    return WorkloadSummary(
        name=workload.name,
        gpu=workload.gpu,
        source=workload.source,
        iterations=len(variants),
        wall_us=statistics.median(workload.iteration_us),
        alone_us=alone_us,
        kernels=_mean(variants, lambda op: op.kind is OpKind.KERNEL),
        identities=len(workload.kernels),
        busy_us=busy_us,
        idle_share=max(0.0, 1.0 - busy_us / alone_us),
        gaps=len(gaps) / len(variants),
        gap_median_us=float(np.median(gaps)) if len(gaps) else 0.0,
        gap_p95_us=float(np.percentile(gaps, 95)) if len(gaps) else 0.0,
        occupancy=occupancy,
        sm_share=sm_share,
        copies=_mean(variants, _is_copy),
        copy_bytes=_mean(variants, lambda op: op.bytes if _is_copy(op) else 0),
        memsets=_mean(variants, lambda op: op.kind is OpKind.MEMSET),
        syncs=_mean(variants, lambda op: op.kind is OpKind.SYNC),
        class_shares=class_shares,
    )


def _mean(variants: Sequence[Sequence[Op]], amount: Callable[[Op], float]) -> float:
    return sum(float(amount(op)) for ops in variants for op in ops) / len(variants)


def _is_copy(op: Op) -> bool:
    return op.kind in (OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST, OpKind.COPY_ON_DEVICE)


def _residency(workload: Workload, spec: GpuSpec) -> tuple[float, float, dict[KernelClass, float]]:
    """Occupancy, share of SMs in use, and shares of classes, weighted by recorded kernel durations."""
    time_us = np.zeros(len(workload.kernels))
    for variant in workload.variants:
        for op in variant.ops:
            if op.kind is OpKind.KERNEL:
                time_us[op.index] += op.duration_us
    weights = time_us / time_us.sum()
    resident = np.empty(len(weights))
    sms = np.empty(len(weights))
    shares = dict.fromkeys(_CLASSES, 0.0)
    for row, (kernel, weight) in enumerate(zip(workload.kernels, weights, strict=True)):
        possible = (
            spec.sms * footprint(spec, kernel.threads, kernel.registers, kernel.shared_bytes, kernel.name).blocks_per_sm
        )
        resident[row] = min(1.0, kernel.blocks / possible)
        sms[row] = min(1.0, kernel.blocks / spec.sms)
        shares[kernel.kind] += float(weight)
    return float(weights @ resident), float(weights @ sms), shares
