"""Importing a profiler's file as a workload, and what that looks like at a glance."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.hardware.occupancy import footprint
from gpusched_env.hardware.specs import GpuSpec, match_gpu, taken_for
from gpusched_env.reading import LONGEST_US
from gpusched_env.workload.alone import recorded_threads
from gpusched_env.workload.idle_gpu import IdleGpu
from gpusched_env.workload.importers.build import LEAST_FACTOR, USUAL_FACTOR, build_workload
from gpusched_env.workload.importers.kineto import read_kineto
from gpusched_env.workload.importers.nsys import is_sqlite, read_nsys
from gpusched_env.workload.importers.recording import ANY, UNPROFILED, Selection
from gpusched_env.workload.kernel import KernelClass
from gpusched_env.workload.workload import DEVICE_OPS, Op, OpKind, Variant, Workload


def import_trace(
    path: Path | str,
    gpu: GpuSpec | None = None,
    iteration: str | None = None,
    iteration_us: float | None = None,
    execution_trace: Path | str | None = None,
    selection: Selection = ANY,
) -> Workload:
    """The workload in a profiler's export: PyTorch's (Kineto JSON, plain or gzipped) or Nsight Systems' (SQLite).

    Streams, events, CUDA graphs and host threads are kept
    (:func:`~gpusched_env.workload.importers.build.build_workload`).

    Args:
        path: the exported file.
        gpu: the GPU of the recording; ``None``: the shipped specification that fits the trace's device.
        iteration: name of the annotation (``record_function``, NVTX range) that encloses one iteration; ``None``:
            ``ProfilerStep#n``, else annotations called ``iteration...`` or ``step...``, else the whole
            trace is one iteration.
        iteration_us: wall time of an iteration without the profiler, to which host times are scaled; ``None``: what
            the file holds of it (:data:`~gpusched_env.workload.importers.recording.UNPROFILED`). Without either, host
            times stay those of the profiled run, and the workload says so (``profiled``).
        execution_trace: PyTorch's execution trace of the same run (JSON, plain or gzipped): kernels, copies and memsets
            get the memory that their operator reads and writes
            (:mod:`~gpusched_env.workload.importers.pytorch`). ``None``: what they touch is not known.
        selection: GPU and process, of a recording with several.

    Raises:
        InputError: names file, event and field at fault, the GPU that has no specification, or the GPUs and processes
            that there are.
    """
    file = Path(path)
    if iteration_us is not None and not 0.0 < iteration_us < float("inf"):
        raise InputError(f"iteration_us is {iteration_us}, must be a positive time in microseconds")
    traced = None if execution_trace is None else Path(execution_trace)
    if not is_sqlite(file):
        recording = read_kineto(file, iteration, traced, selection)
    elif traced is None:
        recording = read_nsys(file, iteration, selection)
    else:
        raise InputError(
            f"{file}: of Nsight Systems, which knows no operators; {traced} needs a PyTorch profiler's trace"
        )
    if iteration_us is not None:
        recording = dataclasses.replace(recording, unprofiled_us=(iteration_us,))
    spec = gpu if gpu is not None else match_gpu(recording.gpu, recording.origin)
    if other := taken_for(recording.gpu, spec):
        recording = dataclasses.replace(recording, notes=(*recording.notes, other))
    workload = build_workload(recording, spec)
    _check_times(workload, recording.origin)
    return workload


def _check_times(workload: Workload, origin: str) -> None:
    """Whether its times are such as a workload's file may have.

    Raises:
        InputError: one is too long.
    """
    ops = [op for variant in workload.variants for op in variant.all_ops]
    nodes = [node for graph in workload.graphs for node in graph]
    longest = max(
        *(kernel.duration_us for kernel in workload.kernels),
        *(node.duration_us for node in nodes),
        *(time_us for op in ops for time_us in (op.duration_us, op.host_us)),
        *workload.iteration_us,
    )
    if longest > LONGEST_US:
        raise InputError(
            f"{origin}: a kernel, a copy, the host or an iteration takes {longest:g} us, must be at most {LONGEST_US:g}"
        )


LENGTHENED = 1.1
"""An iteration that is longer than this times what it was told to take is worth a word."""
_CLASSES: tuple[KernelClass, ...] = ("compute", "memory", "mixed", "latency")


@dataclass(frozen=True, slots=True)
class WorkloadSummary:
    """Figures of one iteration alone on the GPU of the recording, means over the recorded iterations if not said."""

    name: str
    gpu: str
    source: str
    """How it was recorded, and what the importer had to assume."""
    iterations: int
    """Recorded iterations (variants)."""
    wall_us: float
    """Median of the measured wall times."""
    alone_us: float
    """Median length of the iterations as the program replays them alone; about ``wall_us``."""
    paces: tuple[float, float]
    """Least and greatest share by which the replay of an iteration is longer than what was measured of it."""
    kernels: float
    """Kernels launched."""
    identities: int
    """Distinct kernels (name, grid, block, registers, shared memory) in the whole workload."""
    busy_us: float
    """Device time of kernels, copies and memsets, those in graphs included."""
    idle_share: float
    """Share of the time alone in which the device does nothing, 0 to 1."""
    overlap: float
    """Share of the device's busy time in which it does more than one thing, 0 to 1."""
    gaps: float
    """Idle gaps of the whole device, longer than ``queued_gap_us`` (the device waits for the host)."""
    queued_gap_us: float
    """What a stream leaves between queued kernels: the GPU's ``timing.stream_gap_us``. Shorter gaps are not counted."""
    gap_median_us: float
    """Median length of those gaps; 0 without any."""
    gap_p95_us: float
    """95th percentile of the lengths of those gaps; 0 without any."""
    occupancy: float
    """Resident over possible blocks of the whole GPU, weighted by duration, 0 to 1."""
    sm_share: float
    """Share of SMs that get a block, weighted by duration, 0 to 1."""
    copies: float
    """Copies between host and device and on the device."""
    copy_bytes: float
    """Bytes that copies move."""
    memsets: float
    syncs: float
    """Host synchronisations."""
    streams: int
    """Streams that the program uses."""
    threads: int
    """Host threads that run side by side, at most."""
    event_waits: float
    """Waits of streams for events."""
    graphs: float
    """CUDA graphs launched."""
    class_shares: dict[KernelClass, float]
    """Share of the kernels' device time by class; sums to 1."""
    caution: str
    """What is wrong with its host times, and what to do about it; empty if nothing is."""

    @property
    def pace(self) -> float:
        """Share by which the replay is longer than what was measured (negative: shorter)."""
        return self.alone_us / self.wall_us - 1.0


def summarise(workload: Workload, gpu: GpuSpec | None = None) -> WorkloadSummary:
    """Figures of ``workload``.

    Args:
        workload: any workload.
        gpu: the GPU of its recording; ``None``: the specification that it has or names.

    Raises:
        InputError: no such specification, or a kernel does not fit on ``gpu``.
    """
    spec = gpu if gpu is not None else workload.spec
    runs = [_run(workload, variant, spec) for variant in workload.variants]
    # Starts and ends are sums of times in microseconds: a nanosecond above the queued gap is no wait.
    longest_queued = spec.timing.stream_gap_us + 1e-3
    gaps = np.concatenate([run.gaps_us[run.gaps_us > longest_queued] for run in runs])
    lengths_us = [run.length_us for run in runs]
    # Beside a median of what was measured: where iterations differ, a mean is another number.
    alone_us = statistics.median(lengths_us)
    covered_us = statistics.fmean(run.covered_us for run in runs)
    variants = [_flat(workload, variant) for variant in workload.variants]
    occupancy, sm_share, class_shares = _residency(workload, spec)
    return WorkloadSummary(
        name=workload.name,
        gpu=workload.gpu,
        source=workload.source,
        iterations=len(variants),
        wall_us=statistics.median(workload.iteration_us),
        alone_us=alone_us,
        paces=_paces(workload, lengths_us),
        kernels=_mean(variants, lambda op: op.kind is OpKind.KERNEL),
        identities=len(workload.kernels),
        busy_us=_mean(variants, lambda op: op.duration_us),
        idle_share=max(0.0, 1.0 - covered_us / statistics.fmean(lengths_us)),
        overlap=statistics.fmean(run.shared_us for run in runs) / covered_us,
        gaps=len(gaps) / len(variants),
        queued_gap_us=spec.timing.stream_gap_us,
        gap_median_us=float(np.median(gaps)) if len(gaps) else 0.0,
        gap_p95_us=float(np.percentile(gaps, 95)) if len(gaps) else 0.0,
        occupancy=occupancy,
        sm_share=sm_share,
        copies=_mean(variants, _is_copy),
        copy_bytes=_mean(variants, lambda op: op.bytes if _is_copy(op) else 0),
        memsets=_mean(variants, lambda op: op.kind is OpKind.MEMSET),
        syncs=_mean(variants, lambda op: op.kind in (OpKind.SYNC, OpKind.SYNC_STREAM, OpKind.SYNC_EVENT)),
        streams=len({op.stream for ops in variants for op in ops if op.kind in DEVICE_OPS}),
        threads=max(len(variant.all_threads) for variant in workload.variants),
        event_waits=_mean(variants, lambda op: op.kind is OpKind.WAIT),
        graphs=_mean(variants, lambda op: op.kind is OpKind.GRAPH),
        class_shares=class_shares,
        caution=_caution(workload, spec, alone_us),
    )


def _paces(workload: Workload, lengths_us: Sequence[float]) -> tuple[float, float]:
    """The range over iterations; measured is the median, if the times are not those of these iterations."""
    measured_us: Sequence[float] = workload.iteration_us
    if not workload.profiled or len(measured_us) != len(lengths_us):
        measured_us = [statistics.median(measured_us)] * len(lengths_us)
    found = [alone / measured - 1.0 for alone, measured in zip(lengths_us, measured_us, strict=True)]
    return min(found), max(found)


def _caution(workload: Workload, spec: GpuSpec, alone_us: float) -> str:
    """What to say of host times that cannot be right; empty: nothing."""
    told_us = statistics.median(workload.iteration_us)
    if not workload.profiled:
        if alone_us <= LENGTHENED * told_us:
            return ""
        return (
            f"an iteration should take {told_us / 1e3:.3g} ms without the profiler, but takes {alone_us / 1e3:.3g} ms "
            "alone: its device work and waits are that long. Is that time of one iteration, and of this program?"
        )
    likely = []
    for factor in (LEAST_FACTOR, USUAL_FACTOR):
        found = [recorded_threads(variant, workload.graphs, spec.timing) for variant in workload.variants]
        likely.append(statistics.fmean(IdleGpu(spec).play(threads, factor).host_us for threads in found) / 1e3)
    return (
        "host times are those of a run under the profiler, which slows the host: without it they were "
        f"{LEAST_FACTOR:.0%} to {USUAL_FACTOR:.0%} of it in 36 recorded models, so an iteration alone may take "
        f"{likely[0]:.3g} to {likely[1]:.3g} ms rather than {alone_us / 1e3:.3g} ms, with fewer and shorter gaps. Give "
        f"the time of an iteration without the profiler (--iteration-us, or {UNPROFILED} in the file)."
    )


class _IterationAlone(NamedTuple):
    """An iteration alone."""

    length_us: float
    covered_us: float
    """Time in which the device does something."""
    shared_us: float
    """Time in which the device does more than one thing."""
    gaps_us: NDArray[np.float64]
    """Lengths of the gaps in which the device does nothing; 0 where it goes on."""


def _run(workload: Workload, variant: Variant, spec: GpuSpec) -> _IterationAlone:
    played = IdleGpu(spec).play(recorded_threads(variant, workload.graphs, spec.timing))
    found = sorted(span for thread in played.spans for parts in thread for span in parts)
    starts, ends_us = np.array(found).T
    # The latest end of everything that started before.
    until = np.maximum.accumulate(ends_us)[:-1]
    gaps_us = np.maximum(0.0, starts[1:] - until)
    covered_us = float(np.max(ends_us) - starts[0] - gaps_us.sum())
    return _IterationAlone(played.host_us, covered_us, _shared_us(found), gaps_us)


def _shared_us(spans: Sequence[tuple[float, float]]) -> float:
    """Time that more than one of ``spans`` covers."""
    edges = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    depth, shared_us = 0, 0.0
    for (at, step), (following, _) in itertools.pairwise(edges):
        depth += step
        shared_us += following - at if depth > 1 else 0.0
    return shared_us


def _flat(workload: Workload, variant: Variant) -> list[Op]:
    """Operations of all host threads, with the nodes of graphs after their launches."""
    found = []
    for op in variant.all_ops:
        found.append(op)
        if op.kind is OpKind.GRAPH:
            nodes = workload.graphs[op.index]
            found += [Op(n.kind, 0.0, n.index, n.duration_us, n.bytes, op.stream) for n in nodes]
    return found


def _mean(variants: Sequence[Sequence[Op]], amount: Callable[[Op], float]) -> float:
    return sum(float(amount(op)) for ops in variants for op in ops) / len(variants)


def _is_copy(op: Op) -> bool:
    return op.kind in (OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST, OpKind.COPY_ON_DEVICE)


def _residency(workload: Workload, spec: GpuSpec) -> tuple[float, float, dict[KernelClass, float]]:
    """Occupancy, share of SMs in use, and shares of classes, weighted by recorded kernel durations."""
    time_us = np.zeros(len(workload.kernels))
    for variant in workload.variants:
        for op in _flat(workload, variant):
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
