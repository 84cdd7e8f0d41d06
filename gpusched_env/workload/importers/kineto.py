"""Reader of PyTorch profiler (Kineto) exports: ``torch.profiler.profile(...).export_chrome_trace(path)``.

Needs the activities CPU and CUDA. Host calls and device work are joined by Kineto's correlation id
(``args.correlation``); ``args.stream`` of kernels, copies and memsets is the stream's number in CUPTI (7: PyTorch's
default, the legacy stream), ``tid`` of a call its host thread. All nodes of a CUDA graph have the correlation of its
``cudaGraphLaunch``. See ``libkineto/src/CuptiActivity.h``.

Of events Kineto records the calls: ``cudaStreamWaitEvent``, ``cudaEventSynchronize`` and ``cudaEventRecord`` (PyTorch
2.11 calls ``cudaEventRecordWithFlags``), without stream or event. With ``enable_cuda_sync_events`` (an experimental
option of ``torch.profiler``) it adds, in category ``cuda_sync`` and with the call's correlation, the waiting
``stream``, the event (``wait_on_cuda_event_id``) and, as far as known, the record
(``wait_on_cuda_event_record_corr_id``, -1 for ``cudaEventRecordWithFlags``) and its stream (``wait_on_stream``); newer
versions also write records of events, as category ``cuda_event``. What is missing is inferred
(:mod:`~gpusched_env.workload.importers.ordering`).

Work on the device has the ``External id`` of the operator that launched it. Operators also have a ``Record function
id``, by which an execution trace of the same run is joined
(:mod:`~gpusched_env.workload.importers.execution_trace`).

Top-level entries that ``prof.add_metadata_json`` made are kept; one says how long iterations take without the profiler
(:data:`~gpusched_env.workload.importers.recording.UNPROFILED`).

Stream priorities are not recorded, nor which streams synchronise implicitly with the legacy stream: PyTorch's own do
not, so no program does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.workload.importers.execution_trace import read_execution_trace, with_memory
from gpusched_env.workload.importers.fields import Fields, load_json
from gpusched_env.workload.importers.recording import (
    UNPROFILED,
    DeviceEvent,
    HostCall,
    LaunchShape,
    OrderCall,
    Recording,
    check_unprofiled,
    ordering,
    pick_iterations,
)
from gpusched_env.workload.workload import OpKind

_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
_HOST = {"cuda_runtime", "cuda_driver"}
_SUFFIX = re.compile(r"(\.pt\.trace|\.kineto)?\.json(\.gz)?$")


def read_kineto(path: Path, iteration: str | None = None, execution_trace: Path | None = None) -> Recording:
    """The recording in a Kineto export (see :func:`~gpusched_env.workload.importers.trace.import_trace`).

    Raises:
        InputError: names file, event and field at fault.
    """
    origin = str(path)
    document = load_json(path)
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        raise InputError(f"{origin}: no list 'traceEvents'; expected a PyTorch profiler (Kineto) export")
    parts = _Parts()
    for event in _complete_events(document["traceEvents"], origin):
        parts.take(event)
    events = tuple(_device_event(event, parts.calls) for event in parts.device_events)
    if not any(event.kind is OpKind.KERNEL for event in events):
        raise InputError(f"{origin}: no GPU kernel in the trace; profile with ProfilerActivity.CUDA")
    _check_one_device(parts.device_events, origin)
    if execution_trace is not None:
        events = _with_memory(events, parts, execution_trace, origin)
    return Recording(
        name=_SUFFIX.sub("", path.name),
        origin=origin,
        recorder="PyTorch profiler (Kineto)",
        device=_device_name(document),
        events=events,
        orders=tuple(_order_calls(parts)),
        iterations=tuple(pick_iterations(parts.annotations, iteration, origin)),
        overheads=tuple(parts.overheads),
        unprofiled_us=_unprofiled(document, origin),
        host_work=tuple(_call(event) for event in parts.operators) if _threads(parts) > 1 else (),
    )


@dataclass(slots=True)
class _Parts:
    """The events of a trace by category."""

    calls: dict[int, HostCall] = field(default_factory=dict)
    """Launches and other calls by correlation."""
    orders: list[tuple[int, HostCall]] = field(default_factory=list)
    """Calls that order device work, with their correlations (-1: none)."""
    overheads: list[HostCall] = field(default_factory=list)
    annotations: list[HostCall] = field(default_factory=list)
    device_events: list[Fields] = field(default_factory=list)
    operators: list[Fields] = field(default_factory=list)
    details: list[Fields] = field(default_factory=list)
    """What the profiler says of synchronisations and events."""

    def take(self, event: Fields) -> None:
        """Sort an event in."""
        category = str(event.values.get("cat"))
        if category in _DEVICE:
            self.device_events.append(event)
        elif category in _HOST:
            call = _call(event)
            correlation = _argument(event, "correlation")
            if ordering(call.name) is not None:
                self.orders.append((correlation, call))
            if correlation >= 0:
                self.calls.setdefault(correlation, call)
        elif category == "overhead":
            self.overheads.append(_call(event))
        elif category == "user_annotation":
            self.annotations.append(_call(event))
        elif category == "cpu_op":
            self.operators.append(event)
        elif category in ("cuda_sync", "cuda_event"):
            self.details.append(event)


def _argument(event: Fields, name: str) -> int:
    """A number of an event; -1: it has none of that name."""
    arguments = event.values.get("args")
    value = arguments.get(name) if isinstance(arguments, dict) else None
    return value if isinstance(value, int) else -1


def _threads(parts: _Parts) -> int:
    return len({call.thread for call in (*parts.calls.values(), *(call for _, call in parts.orders))})


def _order_calls(parts: _Parts) -> Iterator[OrderCall]:
    """Calls that order device work, with what the trace says of their streams and events."""
    streams: dict[int, int] = {}
    waits: dict[int, tuple[int | None, int | None]] = {}
    for detail in parts.details:
        arguments = detail.inside("args")
        correlation = arguments.integer("correlation", -1)
        if arguments.integer("stream", -1) >= 0:
            streams[correlation] = arguments.values["stream"]
        if "wait_on_cuda_event_id" not in arguments.values:
            continue
        event_id = arguments.integer("wait_on_cuda_event_id", -1)
        record = arguments.integer("wait_on_cuda_event_record_corr_id", -1)
        waits[correlation] = (event_id if event_id >= 0 else None, record if record >= 0 else None)
        if record >= 0 and arguments.integer("wait_on_stream", -1) >= 0:
            streams[record] = arguments.values["wait_on_stream"]
    for correlation, call in parts.orders:
        kind = ordering(call.name)
        assert kind is not None, "sorted in as one"
        waited, named = waits.get(correlation, (None, None))
        yield OrderCall(call, kind, correlation, streams.get(correlation), waited, named)


def _complete_events(trace_events: list[Any], origin: str) -> Iterator[Fields]:
    for i, value in enumerate(trace_events):
        event = Fields.of(value, f"{origin}: traceEvents[{i}]")
        if event.values.get("ph") == "X":
            yield event


def _call(event: Fields) -> HostCall:
    thread = event.integer("tid", least=-(2**63)) if "tid" in event.values else 0
    return HostCall(event.text("name"), event.microseconds("ts"), event.microseconds("dur"), thread)


def _device_event(event: Fields, calls: dict[int, HostCall]) -> DeviceEvent:
    name = event.text("name")
    arguments = event.inside("args")
    correlation = arguments.values.get("correlation")
    if event.values["cat"] == "kernel":
        kind = OpKind.KERNEL
        shape = LaunchShape(
            grid=arguments.dimensions("grid"),
            block=arguments.dimensions("block"),
            registers=arguments.integer("registers per thread", 1, 255),
            shared_bytes=arguments.integer("shared memory"),
        )
        size = 0
    else:
        kind = OpKind.MEMSET if event.values["cat"] == "gpu_memset" else copy_kind(name)
        shape = None
        size = arguments.integer("bytes")
    return DeviceEvent(
        kind=kind,
        name=name,
        start_us=event.microseconds("ts"),
        duration_us=event.microseconds("dur"),
        stream=arguments.integer("stream"),
        call=calls.get(correlation) if isinstance(correlation, int) else None,
        shape=shape,
        bytes=size,
    )


def _with_memory(
    events: tuple[DeviceEvent, ...], parts: _Parts, execution_trace: Path, origin: str
) -> tuple[DeviceEvent, ...]:
    """The events with what their operators read and write.

    An event has the ``External id`` of its operator, and an operator a record-function id: 0 unless an execution trace
    was being written.
    """
    launching = {_argument(event, "External id"): event for event in parts.operators}
    launching.pop(-1, None)
    operators = [launching.get(_argument(event, "External id")) for event in parts.device_events]
    calls = [("", -1) if op is None else (op.text("name"), _argument(op, "Record function id")) for op in operators]
    found = with_memory(events, calls, read_execution_trace(execution_trace))
    if all(event.reads is None for event in found):
        raise InputError(
            f"{execution_trace}: none of its operators launched anything in {origin}; record both in one run "
            "(torch.profiler.profile with execution_trace_observer)"
        )
    return found


def copy_kind(name: str) -> OpKind:
    """Direction of a copy from its name in the trace (``Memcpy HtoD (Pinned -> Device)``)."""
    if "HtoD" in name or "HostToDevice" in name:
        return OpKind.COPY_TO_DEVICE
    if "DtoH" in name or "DeviceToHost" in name:
        return OpKind.COPY_TO_HOST
    return OpKind.COPY_ON_DEVICE


def _check_one_device(device_events: Sequence[Fields], origin: str) -> None:
    arguments = (event.inside("args") for event in device_events)
    devices = {found.integer("device") if "device" in found.values else 0 for found in arguments}
    if len(devices) > 1:
        raise InputError(f"{origin}: work of GPUs {sorted(devices)}; a workload is one process on one GPU")


def _unprofiled(document: dict[str, Any], origin: str) -> tuple[float, ...]:
    given = document.get(UNPROFILED, [])
    return check_unprofiled(given if isinstance(given, list) else [given], f"{origin}: {UNPROFILED}")


def _device_name(document: dict[str, Any]) -> str:
    properties = document.get("deviceProperties")
    if isinstance(properties, list) and properties and isinstance(properties[0], dict):
        return str(properties[0].get("name", ""))
    return ""
