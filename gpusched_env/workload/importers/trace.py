"""From a profiler's file to a workload, whichever profiler it was."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from gpusched_env.errors import InputError
from gpusched_env.hardware.products import match_gpu, taken_for
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.reading import LONGEST_US
from gpusched_env.workload.importers.build import build_workload
from gpusched_env.workload.importers.kineto import read_kineto
from gpusched_env.workload.importers.nsys import is_sqlite, read_nsys
from gpusched_env.workload.importers.selection import ANY, Selection
from gpusched_env.workload.workload import Workload


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
            (:mod:`~gpusched_env.workload.importers.execution_trace`). ``None``: what they touch is not known.
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
