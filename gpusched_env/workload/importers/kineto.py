"""Reader of PyTorch profiler (Kineto) exports: ``torch.profiler.profile(...).export_chrome_trace(path)``.

Needs the activities CPU and CUDA. Host calls and device work are joined by Kineto's correlation id
(``args.correlation``); ``args.stream`` of kernels, copies and memsets is the stream's number in CUPTI (7: PyTorch's
default, the legacy stream), ``tid`` of a call its host thread. All nodes of a CUDA graph have the correlation of its
``cudaGraphLaunch``. See ``libkineto/src/CuptiActivity.h``.

Files since PyTorch 1.8 are read. Before 1.12 categories have other names (``Kernel``, ``Runtime``), annotations are
operators, and numbers of streams and threads are texts. On ROCm the launch call has what it launches: grid and block
(``hipExtModuleLaunchKernel``: the grid in threads), the size of a copy; nothing has registers.

Of events Kineto records the calls: ``cudaStreamWaitEvent``, ``cudaEventSynchronize`` and ``cudaEventRecord`` (PyTorch
2.11 calls ``cudaEventRecordWithFlags``), without stream or event. With ``enable_cuda_sync_events`` (an experimental
option of ``torch.profiler``) it adds, in category ``cuda_sync`` and with the call's correlation, the waiting
``stream``, the event (``wait_on_cuda_event_id``) and, as far as known, the record
(``wait_on_cuda_event_record_corr_id``, -1 for ``cudaEventRecordWithFlags``) and its stream (``wait_on_stream``); newer
versions also write records of events, as category ``cuda_event``. Versions of 2022 and 2023 leave the calls of
``cudaEventRecord`` out: where the stream is known, each is taken to be just before the wait for it; where it is not, as
:mod:`~gpusched_env.workload.importers.unseen` says. What else is missing is inferred
(:mod:`~gpusched_env.workload.importers.ordering`).

Work on the device has the ``External id`` of the operator that launched it. Operators also have a ``Record function
id``, by which an execution trace of the same run is joined
(:mod:`~gpusched_env.workload.importers.pytorch`).

Top-level entries that ``prof.add_metadata_json`` made are kept; one says how long iterations take without the profiler
(:data:`~gpusched_env.workload.importers.recording.UNPROFILED`).

Stream priorities are not recorded, nor which streams synchronise implicitly with the legacy stream: PyTorch's own do
not, so no program does.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuProduct, alike
from gpusched_env.workload.importers.fields import Fields, load_json
from gpusched_env.workload.importers.missing import completed_recording
from gpusched_env.workload.importers.pytorch import (
    RecordedLaunch,
    device_event,
    device_of,
    optional,
    read_execution_trace,
    with_memory,
)
from gpusched_env.workload.importers.recording import (
    ANY,
    UNPROFILED,
    DeviceEvent,
    GpuProcess,
    HostCall,
    OrderCall,
    Recording,
    Selection,
    check_unprofiled,
    ordering,
    pick_iterations,
    select,
)
from gpusched_env.workload.workload import OpKind

# Those with a capital: PyTorch 1.8 to 1.11.
_DEVICE = {
    "kernel": OpKind.KERNEL,
    "gpu_memcpy": OpKind.COPY_ON_DEVICE,
    "gpu_memset": OpKind.MEMSET,
    "Kernel": OpKind.KERNEL,
    "Memcpy": OpKind.COPY_ON_DEVICE,
    "Memset": OpKind.MEMSET,
}
_HOST = {"cuda_runtime", "cuda_driver", "Runtime"}
_OPERATOR = {"cpu_op", "Operator"}
_UNKNOWN = 2**32 - 1
"""CUPTI's number for a stream or event that does not apply."""
_ALIKE = 0.9
"""Share of the work that fits the best process, from which on another one may be it."""
_SUFFIX = re.compile(r"(\.pt\.trace|\.kineto)?\.json(\.gz)?$")


def read_kineto(
    path: Path, iteration: str | None = None, execution_trace: Path | None = None, selection: Selection = ANY
) -> Recording:
    """The recording in a Kineto export (see :func:`~gpusched_env.workload.importers.trace.import_trace`).

    Raises:
        InputError: names file, event and field at fault, or the GPUs and processes that there are.
    """
    origin = str(path)
    document = load_json(path)
    if isinstance(document, list):
        raise InputError(
            f"{origin}: no list 'traceEvents', but events alone, as PyTorch before 1.8; use a newer profiler"
        )
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        raise InputError(f"{origin}: no list 'traceEvents'; expected a PyTorch profiler (Kineto) export")
    parts = _Parts()
    for i, value in enumerate(document["traceEvents"]):
        if not isinstance(value, dict) or value.get("ph") == "X":
            parts.take(Fields.of(value, f"{origin}: traceEvents[{i}]"))
    if not any(kind is OpKind.KERNEL for kind, _ in parts.work):
        raise InputError(f"{origin}: no GPU kernel in the trace; profile with ProfilerActivity.CUDA")
    owners = _owners(parts)
    part = select(
        ((GpuProcess(device_of(event), owners[device_of(event)]), kind) for kind, event in parts.work),
        selection,
        lambda part: _product(document, part.device, parts),
        origin,
    )
    parts = parts.of(part)
    launches = {} if part.process is None else parts.launches.get(part.process, {})
    events = tuple(device_event(event, kind, launches) for kind, event in parts.work)
    if execution_trace is not None:
        events = _with_memory(events, parts, execution_trace, origin)
    recording = Recording(
        name=_SUFFIX.sub("", path.name),
        origin=origin,
        recorder="PyTorch profiler (Kineto)",
        gpu=_product(document, part.device, parts),
        events=events,
        orders=tuple(_order_calls(parts)),
        iterations=tuple(pick_iterations([call for _, call in parts.annotations], iteration, origin)),
        overheads=tuple(parts.overheads),
        unprofiled_us=_unprofiled(document, origin),
        host_work=tuple(_call(event) for event in parts.operators) if _threads(parts) > 1 else (),
        advice="import the whole trace, not a part; if it is whole, profile fewer steps, so that no record is dropped"
        if launches
        else "profile with ProfilerActivity.CPU and ProfilerActivity.CUDA",
    )
    return completed_recording(recording, launches)


@dataclass(slots=True)
class _Parts:
    """The events of a trace by category."""

    launches: dict[int, dict[int, RecordedLaunch]] = field(default_factory=dict)
    """Calls by process and correlation."""
    orders: list[tuple[int, int, HostCall]] = field(default_factory=list)
    """Calls that order device work, with their processes and correlations (-1: none)."""
    overheads: list[HostCall] = field(default_factory=list)
    annotations: list[tuple[int, HostCall]] = field(default_factory=list)
    """Annotations with their processes."""
    work: list[tuple[OpKind, Fields]] = field(default_factory=list)
    """Work of the device: kinds and events."""
    operators: list[Fields] = field(default_factory=list)
    details: list[Fields] = field(default_factory=list)
    """What the profiler says of synchronisations and events."""

    def take(self, event: Fields) -> None:
        """Sort an event in."""
        category = str(event.values.get("cat"))
        if category in _DEVICE:
            self.work.append((_DEVICE[category], event))
        elif category in _HOST:
            self._take_call(event)
        elif category == "overhead":
            self.overheads.append(_call(event))
        elif category == "user_annotation" or (category == "Operator" and "::" not in event.text("name")):
            self.annotations.append((_number(event, "pid"), _call(event)))
        elif category in _OPERATOR:
            self.operators.append(event)
        elif category in ("cuda_sync", "cuda_event"):
            self.details.append(event)

    def of(self, part: GpuProcess) -> _Parts:
        """The parts that are of one process on one GPU."""

        def mine(process: int) -> bool:
            return len(self.launches) < 2 or process == part.process

        return _Parts(
            launches={process: calls for process, calls in self.launches.items() if mine(process)},
            orders=[order for order in self.orders if mine(order[0])],
            overheads=self.overheads,
            annotations=[mark for mark in self.annotations if mine(mark[0])],
            work=[(kind, event) for kind, event in self.work if device_of(event) == part.device],
            operators=[event for event in self.operators if mine(_number(event, "pid"))],
            details=self.details,
        )

    def _take_call(self, event: Fields) -> None:
        call, process = _call(event), _number(event, "pid")
        arguments = event.inside("args") if "args" in event.values else Fields({}, event.where)
        correlation = optional(arguments, "correlation")
        if ordering(call.name) is not None:
            self.orders.append((process, correlation, call))
        own = self.launches.setdefault(process, {})
        # Of a runtime call and the driver call inside it, the outer one.
        if correlation >= 0 and (correlation not in own or call.start_us < own[correlation].call.start_us):
            own[correlation] = RecordedLaunch(call, arguments)


def _owners(parts: _Parts) -> dict[int, int | None]:
    """The process that launched most of a GPU's work, by GPU; it is behind calls that fit.

    Processes count their calls alike. Of those that fit alike, each is taken to have a GPU of its own.
    """
    if len(parts.launches) < 2:
        process = next(iter(parts.launches), None)
        return {device_of(event): process for _, event in parts.work}
    by_number: dict[int, list[tuple[int, RecordedLaunch]]] = defaultdict(list)
    for process, calls in sorted(parts.launches.items()):
        for number, launch in calls.items():
            by_number[number].append((process, launch))
    fits: dict[int, Counter[int]] = {}
    for kind, event in parts.work:
        found = fits.setdefault(device_of(event), Counter())
        for process, launch in by_number.get(optional(event.inside("args"), "correlation"), ()):
            found[process] += launch.launches(kind) and launch.call.start_us <= event.microseconds("ts")
    owners: dict[int, int | None] = {}
    taken: set[int | None] = set()
    for device, found in sorted(fits.items()):
        best = max(found.values(), default=0)
        likely = [(process not in taken, fit, -process) for process, fit in found.items() if fit >= _ALIKE * best]
        owners[device] = -max(likely)[2] if likely else None
        taken.add(owners[device])
    return owners


def _threads(parts: _Parts) -> int:
    launches = (launch.call for calls in parts.launches.values() for launch in calls.values())
    return len({call.thread for call in (*launches, *(call for *_, call in parts.orders))})


def _order_calls(parts: _Parts) -> Iterator[OrderCall]:
    """Calls that order device work, with what the trace says of their streams and events."""
    streams: dict[int | None, int] = {}
    waits: dict[int | None, tuple[int | None, int | None]] = {}
    recorded: dict[int | None, int] = {}
    """Stream whose record a wait waits for, by the wait's correlation."""
    for detail in parts.details:
        arguments = detail.inside("args")
        correlation, stream = _detail(arguments, "correlation"), _detail(arguments, "stream")
        if stream is not None:
            streams[correlation] = stream
        if "wait_on_cuda_event_id" not in arguments.values:
            continue
        record = _detail(arguments, "wait_on_cuda_event_record_corr_id")
        waits[correlation] = (_detail(arguments, "wait_on_cuda_event_id"), record)
        stream = _detail(arguments, "wait_on_stream")
        if stream is not None:
            recorded[correlation] = stream
            if record is not None:
                streams[record] = stream
    silent = not any(ordering(call.name) is OpKind.RECORD for *_, call in parts.orders)
    for _, correlation, call in parts.orders:
        kind = ordering(call.name)
        assert kind is not None, "sorted in as one"
        waited, named = waits.get(correlation, (None, None))
        if silent and correlation in recorded:
            before = HostCall("cudaEventRecord", call.start_us, 0.0, call.thread)
            yield OrderCall(before, OpKind.RECORD, stream=recorded[correlation])
        yield OrderCall(call, kind, correlation, streams.get(correlation), waited, named)


def _detail(arguments: Fields, name: str) -> int | None:
    """A number among the arguments of an event; ``None`` if it is missing, or does not apply."""
    number = arguments.integer(name, -1) if name in arguments.values else -1
    return None if number in (-1, _UNKNOWN) else number


def _call(event: Fields) -> HostCall:
    duration_us = event.microseconds("dur") if "dur" in event.values else 0.0
    return HostCall(event.text("name"), event.microseconds("ts"), duration_us, _number(event, "tid"))


def _number(event: Fields, name: str) -> int:
    """The number of a thread or process, which older files have as a text; 0 if it is missing."""
    value = event.values.get(name, 0)
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value):
        return int(value)
    return event.integer(name, least=-(2**63)) if name in event.values else 0


def _with_memory(
    events: tuple[DeviceEvent, ...], parts: _Parts, execution_trace: Path, origin: str
) -> tuple[DeviceEvent, ...]:
    """The events with what their operators read and write.

    An event has the ``External id`` of its operator, and an operator a record-function id: 0 unless an execution trace
    was being written.
    """
    launching = {_argument(event, "External id"): event for event in parts.operators}
    launching.pop(-1, None)
    operators = [launching.get(_argument(event, "External id")) for _, event in parts.work]
    calls = [("", -1) if op is None else (op.text("name"), _argument(op, "Record function id")) for op in operators]
    found = with_memory(events, calls, read_execution_trace(execution_trace))
    if all(event.reads is None for event in found):
        raise InputError(
            f"{execution_trace}: none of its operators launched anything in {origin}; record both in one run "
            "(torch.profiler.profile with execution_trace_observer)"
        )
    return found


def _argument(event: Fields, name: str) -> int:
    """A number among an event's arguments; -1: it has none of that name."""
    return optional(event.inside("args"), name) if "args" in event.values else -1


def _unprofiled(document: dict[str, Any], origin: str) -> tuple[float, ...]:
    given = document.get(UNPROFILED, [])
    return check_unprofiled(given if isinstance(given, list) else [given], f"{origin}: {UNPROFILED}")


def _product(document: dict[str, Any], device: int, parts: _Parts) -> GpuProduct:
    """What the trace says of a GPU: the one of its number, or any if all are called alike.

    On ROCm numbers begin at 2, behind those of the hosts.
    """
    listed = document.get("deviceProperties")
    found = [gpu for gpu in listed if isinstance(gpu, dict)] if isinstance(listed, list) else []
    products = [GpuProduct.of(gpu.get("name"), gpu.get("numSms"), gpu.get("totalGlobalMem")) for gpu in found]
    calls = (launch.call for own in parts.launches.values() for launch in own.values())
    rocm = any(call.name.startswith("hip") for call in calls)
    own = [product for gpu, product in zip(found, products, strict=True) if not rocm and gpu.get("id") == device]
    return alike(own or products)
