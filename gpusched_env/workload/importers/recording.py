"""A profiler's recording of one host process, independent of the file format it came from.

Of a recording of several, a GPU and a process are selected.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpusched_env.display.words import printable
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuProduct
from gpusched_env.workload.importers.fields import shown
from gpusched_env.workload.workload import OpKind, Segment

UNPROFILED = "gpusched_iteration_us"
"""What a file calls the wall times of iterations measured without the profiler, microseconds: a number or a list.

In a PyTorch trace a top-level entry: ``prof.add_metadata_json("gpusched_iteration_us", "[980.5, 1002.1]")`` inside the
profiler's ``with``. In an Nsight Systems report an NVTX mark: ``nvtx.mark("gpusched_iteration_us=[980.5, 1002.1]")``.
"""

_IMPLIED = {
    re.compile(r"(cuda|cu|hip)EventQuery(_\w+)?"): OpKind.SYNC_EVENT,
    re.compile(r"(cuda|cu|hip)StreamQuery(_\w+)?"): OpKind.SYNC_STREAM,
    re.compile(r"((cuda|hip)(Malloc|Free|HostAlloc)|cuMem(Alloc|Free|HostAlloc))(?!.*Async)\w*"): OpKind.SYNC,
}
"""Calls that may wait: queries that are repeated, memory that is had or given back (CUDA C++ Programming Guide,
*Implicit Synchronization*)."""
_ORDERING = _IMPLIED | {
    re.compile(r"(cuda|cu|hip)(Device|Ctx|Thread)Synchronize(_\w+)?"): OpKind.SYNC,
    re.compile(r"(cuda|cu|hip)StreamSynchronize(_\w+)?"): OpKind.SYNC_STREAM,
    re.compile(r"(cuda|cu|hip)EventSynchronize(_\w+)?"): OpKind.SYNC_EVENT,
    re.compile(r"(cuda|cu|hip)EventRecord(WithFlags)?(_\w+)?"): OpKind.RECORD,
    re.compile(r"(cuda|cu|hip)StreamWaitEvent(_\w+)?"): OpKind.WAIT,
}
_STEP = re.compile(r"ProfilerStep#\d+")
_ITERATION = re.compile(r"iteration|step", re.IGNORECASE)
_GRAPH_LAUNCH = re.compile(r"(cuda|cu|hip)GraphLaunch(_\w+)?")


@functools.cache
def ordering(name: str) -> OpKind | None:
    """What a runtime or driver call orders: a synchronisation, an event's record or a wait for one; else ``None``."""
    return next((kind for pattern, kind in _ORDERING.items() if pattern.fullmatch(name)), None)


@functools.cache
def may_wait(name: str) -> bool:
    """Whether a call that :func:`ordering` knows as a synchronisation is one only where the recorded times show it."""
    return any(pattern.fullmatch(name) for pattern in _IMPLIED)


def launches_graph(name: str) -> bool:
    """Whether a runtime or driver call launches a CUDA graph."""
    return _GRAPH_LAUNCH.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class HostCall:
    """A runtime or driver call of the host, or an annotated interval (microseconds)."""

    name: str
    start_us: float
    duration_us: float
    thread: int = 0
    """Host thread, any number."""

    @property
    def end_us(self) -> float:
        """When the call returned."""
        return self.start_us + self.duration_us


@dataclass(frozen=True, slots=True)
class OrderCall:
    """A call of the host that orders device work, and what the recording says of its operands."""

    call: HostCall
    kind: OpKind
    """``SYNC``, ``SYNC_STREAM``, ``SYNC_EVENT``, ``RECORD`` or ``WAIT``."""
    number: int = -1
    """Number by which waits name a record; -1: they do not."""
    stream: int | None = None
    """Stream that records, waits or is waited for; ``None``: unknown."""
    event: int | None = None
    """The CUDA event that is waited for, any number; ``None``: unknown."""
    record: int | None = None
    """``number`` of the record that is waited for; ``None``: unknown."""


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """Launch configuration of a kernel."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    """32-bit registers a thread; 0: unknown."""
    shared_bytes: int
    """Static and dynamic shared memory a block, bytes, without the system's reserve."""


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """A kernel, copy or memset as it ran on the device.

    All device work of one CUDA graph launch has that call."""

    kind: OpKind
    name: str
    start_us: float
    duration_us: float
    stream: int
    call: HostCall | None
    """The launch call; ``None`` if it was not recorded."""
    number: int = -1
    """Number by which it names its launch call: later calls of a process have larger ones; -1: unknown."""
    shape: LaunchShape | None = None
    """Launch configuration of a kernel; ``None`` for other work."""
    bytes: int = 0
    """Bytes moved by a copy or memset."""
    pageable: bool = False
    """Whether the host memory of a copy is pageable: the driver moves it through a buffer of its own."""
    reads: tuple[Segment, ...] | None = None
    writes: tuple[Segment, ...] | None = None
    """Memory that it reads and writes, if that is known."""

    @property
    def end_us(self) -> float:
        """When it finished on the device."""
        return self.start_us + self.duration_us


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that :func:`~gpusched_env.workload.importers.build.build_workload` needs.

    Host and device times share one clock (microseconds, any origin).
    """

    name: str
    origin: str
    """Where it comes from, for error messages: the path of the file."""
    recorder: str
    """Profiler and library versions, as far as the file tells."""
    gpu: GpuProduct
    """What the driver says of its GPU."""
    events: tuple[DeviceEvent, ...]
    """Device work, in any order."""
    orders: tuple[OrderCall, ...]
    """Synchronisations, records of events and waits for them, in any order."""
    iterations: tuple[HostCall, ...]
    """Host intervals, one an iteration; empty: the whole recording is one iteration."""
    overheads: tuple[HostCall, ...] = ()
    """Intervals that the profiler took for itself on the host."""
    unprofiled_us: tuple[float, ...] = ()
    """Wall times of iterations timed without a profiler; empty if unknown."""
    host_work: tuple[HostCall, ...] = ()
    """What else the host threads did (operators of the framework), in any order: it tells threads that run side by
    side from those that take turns."""
    notes: tuple[str, ...] = ()
    """What a reader left out or assumed."""
    advice: str = ""
    """How to record launch calls, if too many are missing."""


def pick_iterations(annotations: Sequence[HostCall], name: str | None, origin: str) -> list[HostCall]:
    """The annotations that are iterations, in order: those called ``name``; without one, profiler steps or the like.

    Of annotations within each other the outermost counts. One ends where the next begins at the latest.

    Raises:
        InputError: none is called ``name``; the message names the file, ``origin``, and those that there are.
    """
    if name is not None:
        marks = [mark for mark in annotations if mark.name == name]
        if not marks:
            known = sorted({printable(mark.name) for mark in annotations})
            raise InputError(f"{origin}: no annotation {name!r}; the trace has {', '.join(known[:12]) or 'none'}")
    else:
        marks = [mark for mark in annotations if _STEP.fullmatch(mark.name)]
        marks = marks or [mark for mark in annotations if _ITERATION.match(mark.name)]
    outermost: list[HostCall] = []
    for mark in sorted(marks, key=lambda mark: (mark.start_us, -mark.end_us)):
        if not outermost or mark.end_us > outermost[-1].end_us:
            outermost.append(mark)
    ends_us = [*(mark.start_us for mark in outermost[1:]), math.inf]
    return [
        mark if mark.end_us <= end_us else dataclasses.replace(mark, duration_us=end_us - mark.start_us)
        for mark, end_us in zip(outermost, ends_us, strict=False)
    ]


def check_unprofiled(given: Sequence[Any], where: str) -> tuple[float, ...]:
    """Wall times of iterations without the profiler.

    Raises:
        InputError: one is no positive time; ``where`` names file and field.
    """
    found = []
    for value in given:
        try:
            us = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            us = math.nan
        if not 0.0 < us < math.inf:
            raise InputError(f"{where} has {shown(value)}, expected positive times in microseconds")
        found.append(us)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a user asks for of a recording; ``None``: whatever there is, if it is one."""

    device: int | None = None
    """Number of the GPU, as in the file."""
    process: int | None = None
    """Number of the process on its system."""


ANY: Final = Selection()


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A GPU and a process that uses it."""

    device: int
    process: int | None = None
    """Number of the process; ``None``: unknown."""


def select(
    work: Iterable[tuple[GpuProcess, OpKind]],
    selection: Selection,
    product: Callable[[GpuProcess], GpuProduct],
    origin: str,
) -> GpuProcess:
    """The part of a recording that is asked for.

    Args:
        work: whose each piece of device work is, and its kind.
        selection: what is asked for.
        product: the GPU of a part.
        origin: the file, for errors.

    Raises:
        InputError: there is none, or more than one; lists those that there are.
    """
    counts: dict[GpuProcess, Counter[str]] = {}
    for part, kind in work:
        counts.setdefault(part, Counter())[_LISTED.get(kind, "copies")] += 1
    fitting = [
        part for part in counts if selection.device in (None, part.device) and selection.process in (None, part.process)
    ]
    if len(fitting) == 1:
        return fitting[0]
    listed = "; ".join(_described(part, product(part), counts[part]) for part in sorted(counts, key=_place)[:_SHOWN])
    more = f"; and {len(counts) - _SHOWN} more" if len(counts) > _SHOWN else ""
    raise InputError(
        f"{origin}: a workload is one process on one GPU; say which (device=, --device; process=, --process) of "
        f"{listed}{more}"
    )


_LISTED = {OpKind.KERNEL: "kernels", OpKind.MEMSET: "memsets"}
_SHOWN = 32
"""Parts that a message lists."""


def _place(part: GpuProcess) -> tuple[int, int]:
    return part.device, -1 if part.process is None else part.process


def _described(part: GpuProcess, product: GpuProduct, counts: Counter[str]) -> str:
    process = "" if part.process is None else f", process {part.process}"
    figures = ", ".join(f"{counts[what]} {what}" for what in ("kernels", "copies", "memsets"))
    return f"device {part.device} ({product.name or 'GPU not named'}{process}): {figures}"
