"""Reader of PyTorch profiler (Kineto) exports: ``torch.profiler.profile(...).export_chrome_trace(path)``.

Needs the activities CPU and CUDA. Host calls and device work are joined by Kineto's correlation id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec, gpu_names, load_gpu
from gpusched_env.workload.importers.build import build_workload
from gpusched_env.workload.importers.fields import Fields, load_json
from gpusched_env.workload.importers.recording import SYNC_CALLS, DeviceEvent, HostCall, Recording, Shape
from gpusched_env.workload.workload import OpKind, Workload

_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
_HOST = {"cuda_runtime", "cuda_driver"}
_STEP = re.compile(r"ProfilerStep#\d+")
_ITERATION = re.compile(r"iteration|step", re.IGNORECASE)
_SUFFIX = re.compile(r"(\.pt\.trace|\.kineto)?\.json(\.gz)?$")


def import_kineto(path: Path | str, gpu: GpuSpec | None = None, iteration: str | None = None) -> Workload:
    """The workload in a Kineto export, plain or gzipped.

    All host threads of the trace become one host program and all streams one stream, in order of launch.

    Args:
        path: the exported file.
        gpu: the GPU of the recording; ``None``: the shipped specification that fits the trace's device.
        iteration: name of the annotation (``record_function``) that encloses one iteration; ``None``:
            ``ProfilerStep#n``, else annotations called ``iteration...`` or ``step...``, else the whole
            trace is one iteration.

    Raises:
        InputError: names file, event and field at fault, or the GPU that has no specification.
    """
    recording = read_kineto(Path(path), iteration)
    return build_workload(recording, gpu if gpu is not None else match_gpu(recording.device, recording.origin))


def match_gpu(device: str, origin: str) -> GpuSpec:
    """The shipped specification of the GPU that a driver calls ``device``.

    Every part of the specification's name must be a word of ``device``, except ``sxm``, which drivers leave
    out: such a specification fits unless ``device`` says that it is another board (``PCIe``, ``NVL``).

    Raises:
        InputError: not exactly one fits; ``origin`` names the file.
    """
    words = set(re.findall(r"[a-z0-9]+", device.lower()))

    def fits(name: str) -> bool:
        parts = name.split("-")
        return not ("sxm" in parts and words & {"pcie", "nvl"}) and words.issuperset(p for p in parts if p != "sxm")

    fitting = [name for name in gpu_names() if fits(name)]
    if len(fitting) != 1:
        seen = f"recorded on {device!r}" if device else "the recording does not name its GPU"
        raise InputError(f"{origin}: {seen}; say which specification fits (gpu=): {', '.join(gpu_names())}")
    return load_gpu(fitting[0])


def read_kineto(path: Path, iteration: str | None = None) -> Recording:
    """The recording in a Kineto export (see :func:`import_kineto`).

    Raises:
        InputError: names file, event and field at fault.
    """
    origin = str(path)
    document = load_json(path)
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        raise InputError(f"{origin}: no list 'traceEvents'; expected a PyTorch profiler (Kineto) export")
    calls: dict[int, HostCall] = {}
    syncs: list[HostCall] = []
    overheads: list[HostCall] = []
    annotations: list[HostCall] = []
    device_events: list[Fields] = []
    for event in _complete_events(document["traceEvents"], origin):
        category = event.values.get("cat")
        if category in _DEVICE:
            device_events.append(event)
        elif category in _HOST:
            call = _call(event)
            if call.name in SYNC_CALLS:
                syncs.append(call)
            arguments = event.values.get("args")
            if isinstance(arguments, dict) and isinstance(arguments.get("correlation"), int):
                calls.setdefault(arguments["correlation"], call)
        elif category == "overhead":
            overheads.append(_call(event))
        elif category == "user_annotation":
            annotations.append(_call(event))
    events = tuple(_device_event(event, calls) for event in device_events)
    if not any(event.kind is OpKind.KERNEL for event in events):
        raise InputError(f"{origin}: no GPU kernel in the trace; profile with ProfilerActivity.CUDA")
    _check_one_device(device_events, origin)
    return Recording(
        name=_SUFFIX.sub("", path.name),
        origin=origin,
        recorder="PyTorch profiler (Kineto)",
        device=_device_name(document),
        events=events,
        syncs=tuple(syncs),
        iterations=tuple(_iterations(annotations, iteration, origin)),
        overheads=tuple(overheads),
    )


def _complete_events(trace_events: list[Any], origin: str) -> Iterator[Fields]:
    for i, value in enumerate(trace_events):
        event = Fields.of(value, f"{origin}: traceEvents[{i}]")
        if event.values.get("ph") == "X":
            yield event


def _call(event: Fields) -> HostCall:
    return HostCall(event.text("name"), event.microseconds("ts"), event.microseconds("dur"))


def _device_event(event: Fields, calls: dict[int, HostCall]) -> DeviceEvent:
    name = event.text("name")
    arguments = event.inside("args")
    correlation = arguments.values.get("correlation")
    if event.values["cat"] == "kernel":
        kind = OpKind.KERNEL
        shape = Shape(
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


def copy_kind(name: str) -> OpKind:
    """Direction of a copy from its name in the trace (``Memcpy HtoD (Pinned -> Device)``)."""
    if "HtoD" in name or "HostToDevice" in name:
        return OpKind.COPY_TO_DEVICE
    if "DtoH" in name or "DeviceToHost" in name:
        return OpKind.COPY_TO_HOST
    return OpKind.COPY_ON_DEVICE


def _check_one_device(device_events: list[Fields], origin: str) -> None:
    devices = {event.values["args"].get("device", 0) for event in device_events}
    if len(devices) > 1:
        raise InputError(f"{origin}: work of GPUs {sorted(devices, key=str)}; a workload is one process on one GPU")


def _device_name(document: dict[str, Any]) -> str:
    properties = document.get("deviceProperties")
    if isinstance(properties, list) and properties and isinstance(properties[0], dict):
        return str(properties[0].get("name", ""))
    return ""


def _iterations(annotations: list[HostCall], name: str | None, origin: str) -> list[HostCall]:
    if name is not None:
        marks = [mark for mark in annotations if mark.name == name]
        if not marks:
            known = sorted({mark.name for mark in annotations})
            raise InputError(f"{origin}: no annotation {name!r}; the trace has {', '.join(known[:12]) or 'none'}")
    else:
        marks = [mark for mark in annotations if _STEP.fullmatch(mark.name)]
        marks = marks or [mark for mark in annotations if _ITERATION.match(mark.name)]
    return sorted(marks, key=lambda mark: mark.start_us)
