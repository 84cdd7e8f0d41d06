"""From a recording to a workload: kernel table, operations, and host times without the profiler."""

from __future__ import annotations

import statistics
from collections import defaultdict

from gpusched_env.hardware.occupancy import footprint
from gpusched_env.hardware.specs import GpuSpec, Timing
from gpusched_env.workload.alone import run_alone
from gpusched_env.workload.classify import classify
from gpusched_env.workload.importers.names import short_name, with_digest
from gpusched_env.workload.importers.program import Iteration, iterations
from gpusched_env.workload.importers.recording import DeviceEvent, Recording, Shape
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

DECIMALS = 3
"""Times are kept to 1 ns: what profilers resolve."""
_SHORTEST_US = 10.0**-DECIMALS
LEAST_FACTOR = 0.5
"""A profiler at most doubles host times (recordings of 36 models on an H100: factors 0.5 to 0.77, mostly 0.7)."""

_Identity = tuple[str, Shape]


def build_workload(recording: Recording, gpu: GpuSpec, summary: str = "") -> Workload:
    """The workload of ``recording``, which was made on ``gpu``.

    One variant an iteration, each ended by a synchronisation. If the recording knows wall times without
    the profiler, the host times of each variant are scaled such that it takes their median alone; if not,
    they stay, and ``iteration_us`` holds the recorded lengths of the iterations.

    Raises:
        InputError: no iteration launches a kernel, too many launches are missing, or a kernel does not
            fit on ``gpu``.
    """
    found = iterations(recording, gpu.timing)
    kernels, rows = _kernel_table(recording.origin, found, gpu)
    factors = [1.0] * len(found)
    notes = [f"{recording.recorder} on {recording.device or gpu.name}"]
    if recording.unprofiled_us:
        target = statistics.median(recording.unprofiled_us)
        factors = [host_factor(iteration, target, gpu.timing) for iteration in found]
        notes.append(f"host times x {min(factors):.2f} to {max(factors):.2f} to the wall time without profiler")
    added = sum(not iteration.closed for iteration in found)
    if added:
        notes.append(f"closing synchronisation added to {added} of {len(found)} iterations")
    lost = sum(event.call is None for event in recording.events)
    if lost:
        notes.append(f"{lost} launches without a host call, inferred from their starts")
    return Workload(
        name=recording.name,
        summary=summary,
        gpu=gpu.name,
        source="; ".join(notes),
        kernels=kernels,
        variants=tuple(_variant(iteration, rows, factor) for iteration, factor in zip(found, factors, strict=True)),
        iteration_us=tuple(
            round(us, DECIMALS) for us in recording.unprofiled_us or [iteration.recorded_us for iteration in found]
        ),
    )


def host_factor(iteration: Iteration, target_us: float, timing: Timing) -> float:
    """The factor on host times with which ``iteration`` takes ``target_us`` alone, at least :data:`LEAST_FACTOR`.

    Where the device bounds the iteration its length says little of the host: it then takes a little more
    than ``target_us`` (profilers also slow the device by a percent or so).
    """
    ops = [(op.kind, op.host_us, op.device_us) for op in iteration.ops]

    def alone_us(factor: float) -> float:
        return run_alone(ops, timing, factor)[0]

    low = LEAST_FACTOR
    if alone_us(low) >= target_us:
        return low
    high = 2.0 * low
    while alone_us(high) < target_us:
        low, high = high, 2.0 * high
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if alone_us(middle) < target_us else (low, middle)
    return high


def _kernel_table(origin: str, found: list[Iteration], gpu: GpuSpec) -> tuple[tuple[Kernel, ...], dict[_Identity, int]]:
    """Kernels in order of first launch, and their rows by full name and shape."""
    durations: dict[_Identity, list[float]] = defaultdict(list)
    for iteration in found:
        for op in iteration.ops:
            if op.event is not None and op.event.shape is not None:
                durations[op.event.name, op.event.shape].append(op.event.duration_us)
    full_names: dict[str, set[str]] = defaultdict(set)
    for name, _ in durations:
        full_names[short_name(name)].add(name)
    kernels = []
    for (name, shape), seen in durations.items():
        short = short_name(name)
        mean = max(_SHORTEST_US, round(statistics.fmean(seen), DECIMALS))
        kernel = Kernel(
            name=short if len(full_names[short]) == 1 else with_digest(short, name),
            grid=shape.grid,
            block=shape.block,
            registers=shape.registers,
            shared_bytes=shape.shared_bytes,
            duration_us=mean,
            kind=classify(name, shape.grid[0] * shape.grid[1] * shape.grid[2], mean),
        )
        footprint(gpu, kernel.threads, kernel.registers, kernel.shared_bytes, f"{origin}: kernel {kernel.name}")
        kernels.append(kernel)
    return tuple(kernels), {identity: row for row, identity in enumerate(durations)}


def _variant(iteration: Iteration, rows: dict[_Identity, int], factor: float) -> Variant:
    def row(event: DeviceEvent | None) -> int:
        return -1 if event is None or event.shape is None else rows[event.name, event.shape]

    return Variant(
        ops=tuple(
            Op(
                kind=op.kind,
                host_us=round(op.host_us * factor, DECIMALS),
                index=row(op.event),
                duration_us=max(_SHORTEST_US if op.kind is OpKind.KERNEL else 0.0, round(op.device_us, DECIMALS)),
                bytes=0 if op.event is None else op.event.bytes,
            )
            for op in iteration.ops
        )
    )
