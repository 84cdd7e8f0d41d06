"""Reader of digests: the compact JSON that the shipped models were recorded in.

A digest holds ``events`` (device work with its launch calls and stream), ``syncs``, ``iteration_marks_us`` and the
wall times of iterations without the profiler. Calls for events were not kept, and all calls are of one host thread.
``python -m gpusched_env.workload.importers.digest SOURCE TARGET`` converts a folder of them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.hardware.products import Product, match_gpu
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.importers.build import build_workload
from gpusched_env.workload.importers.fields import Fields, load_json
from gpusched_env.workload.importers.launches import copy_kind
from gpusched_env.workload.importers.recording import (
    DeviceEvent,
    HostCall,
    LaunchShape,
    OrderCall,
    Recording,
    ordering,
)
from gpusched_env.workload.workload import OpKind, Workload, encode_workload

LARGEST_BYTES = 250_000
"""Workload files above this are not written: the package stays small."""


def read_digest(path: Path) -> Recording:
    """The recording in a digest file.

    Raises:
        InputError: names file, event and field at fault.
    """
    digest = Fields.of(load_json(path), str(path))
    events = tuple(_event(value, f"{path}: events[{i}]") for i, value in enumerate(digest.array("events")))
    if not any(event.kind is OpKind.KERNEL for event in events):
        raise InputError(f"{path}: no kernel among its events")
    calls = [_call(value, f"{path}: syncs[{i}]") for i, value in enumerate(digest.array("syncs"))]
    # Copies are listed among the synchronisations whether they block or not; the copies themselves tell.
    orders = [OrderCall(call, kind) for call in calls for kind in (ordering(call.name),) if kind is not None]
    return Recording(
        name=digest.text("workload"),
        origin=str(path),
        recorder=f"PyTorch {digest.text('torch')} profiler, CUDA {digest.text('cuda')}",
        gpu=Product(digest.text("gpu")),
        events=events,
        orders=tuple(orders),
        iterations=tuple(
            _call([*_list(value), "iteration"], f"{path}: iteration_marks_us[{i}]")
            for i, value in enumerate(digest.array("iteration_marks_us"))
        ),
        unprofiled_us=tuple(
            Fields({"wall": wall}, f"{path}: wall_us_each[{i}]").microseconds("wall")
            for i, wall in enumerate(digest.array("wall_us_each"))
        ),
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _call(value: Any, where: str) -> HostCall:
    fields = Fields(dict(zip(("start", "duration", "call"), _list(value), strict=False)), where)
    return HostCall(fields.text("call"), fields.microseconds("start"), fields.microseconds("duration"))


def _event(value: Any, where: str) -> DeviceEvent:
    event = Fields.of(value, where)
    name = event.text("name")
    kinds = {"kernel": OpKind.KERNEL, "gpu_memset": OpKind.MEMSET, "gpu_memcpy": copy_kind(name)}
    if event.text("kind") not in kinds:
        raise event.fail("kind", f"one of {', '.join(kinds)}")
    kind = kinds[event.text("kind")]
    shape = None
    if kind is OpKind.KERNEL:
        shape = LaunchShape(
            event.dimensions("grid"),
            event.dimensions("block"),
            event.integer("regs", 1, 255),
            event.integer("smem_bytes"),
        )
    call = None
    if event.values.get("launch_ts_us") is not None:
        call = HostCall(
            event.text("launch_api"), event.microseconds("launch_ts_us"), event.microseconds("launch_dur_us")
        )
    return DeviceEvent(
        kind=kind,
        name=name,
        start_us=event.microseconds("ts_us"),
        duration_us=event.microseconds("dur_us"),
        stream=event.integer("stream"),
        call=call,
        shape=shape,
        bytes=0 if shape else event.integer("bytes"),
    )


def describe(name: str) -> str:
    """A sentence for a recording called ``model[_fp32]_phase_details`` (``bert_infer_b8_s128``)."""
    parts = re.fullmatch(r"(.+?)(_fp32)?_(infer|train|step|prefill|decode|input\d)_(.+)", name)
    if parts is None:
        return name
    phase = {"infer": "inference", "train": "training step", "step": "step"}.get(parts[3], parts[3])
    sizes = {"b": "batch", "s": "sequence length", "t": "time steps"}
    details = [f"{sizes[d[0]]} {d[1:]}" if d[0] in sizes and d[1:].isdigit() else d for d in parts[4].split("_")]
    precision = ["fp32"] if parts[2] else []
    return f"{parts[1]} {phase}, {', '.join([*details, *precision])}"


def convert_folder(source: Path, target: Path, gpu: GpuSpec | None = None) -> list[tuple[str, int, Workload]]:
    """Convert every digest in ``source`` (``*.json.gz`` but no ``*.kineto.json.gz``) to a workload in ``target``.

    Returns:
        name, size in bytes and workload of each; those above :data:`LARGEST_BYTES` were not written.

    Raises:
        InputError: a digest is malformed; files before it in the alphabet were written.
    """
    converted = []
    for path in sorted(source.glob("*.json.gz")):
        if path.name.endswith(".kineto.json.gz"):
            continue
        recording = read_digest(path)
        spec = gpu if gpu is not None else match_gpu(recording.gpu, recording.origin)
        workload = build_workload(recording, spec, summary=describe(recording.name))
        data = encode_workload(workload)
        if len(data) <= LARGEST_BYTES:
            (target / f"{recording.name}.workload.json.gz").write_bytes(data)
        converted.append((recording.name, len(data), workload))
    return converted


if __name__ == "__main__":
    for converted_name, size, _ in convert_folder(Path(sys.argv[1]), Path(sys.argv[2])):
        print(f"{converted_name}: {size} bytes{'' if size <= LARGEST_BYTES else ', not written (too large)'}")
