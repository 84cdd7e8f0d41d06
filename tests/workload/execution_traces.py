"""Execution traces by hand, and Kineto events that belong to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.workload.kineto_traces import Event, call, kernel, memcpy

GPU, CPU = "cuda:0", "cpu"
Tensor = tuple[list[Any], list[int], list[int]]
"""Value, shape and strides."""


def tensor(storage: int, shape: list[int], offset: int = 0, stride: list[int] | None = None, on: str = GPU) -> Tensor:
    """A tensor of 4-byte elements; contiguous, if it has no other strides."""
    steps, elements = [], 1
    for size in reversed(shape):
        steps.insert(0, elements)
        elements *= size
    return [storage + 100, storage, offset, elements, 4, on], shape, stride or steps


def side(tensors: list[Any]) -> Event:
    """Inputs or outputs: tensors, lists of tensors, and numbers."""
    given: Event = {"values": [], "shapes": [], "types": [], "strides": []}
    for item in tensors:
        if isinstance(item, list):
            parts: tuple[Any, Any, Any] = tuple(list(part) for part in zip(*item, strict=True))  # type: ignore[assignment]
            kind = f"GenericList[{','.join('Tensor(float)' for _ in item)}]"
        elif isinstance(item, tuple):
            parts, kind = item, "Tensor(float)"
        else:
            parts, kind = (item, [], []), "Int"
        for field, value in zip(("values", "shapes", "strides", "types"), (*parts, kind), strict=True):
            given[field].append(value)
    return given


def node(function: int, name: str, inputs: list[Any], outputs: list[Any], schema: str = "") -> Event:
    attributes = [{"name": "rf_id", "type": "uint64", "value": function}]
    attributes.append({"name": "op_schema", "type": "string", "value": schema})
    return {"id": 50 + function, "name": name, "inputs": side(inputs), "outputs": side(outputs), "attrs": attributes}


def operators(tmp_path: Path, *nodes: Event) -> Path:
    path = tmp_path / "operators.json"
    path.write_text(json.dumps({"schema": "1.1.1-chakra.0.0.4", "nodes": nodes}))
    return path


def operator(function: int, name: str, external: int = 0) -> Event:
    """An operator as the profiler has it, with an ``External id`` that is not its record-function id."""
    arguments = {"External id": external or function + 1000, "Record function id": function}
    return {"ph": "X", "cat": "cpu_op", "name": name, "ts": 0.0, "dur": 1.0, "tid": 1, "args": arguments}


def launched(number: int, function: int, memset: int = 0, **args: Any) -> list[Event]:
    """The launch of a kernel, or of a memset of so many bytes, by an operator; operator 0 is none."""
    ts = 20.0 * number
    event = kernel(ts + 6.0, 5.0, number, **args)
    if memset:
        event = memcpy("Memset (Device)", ts + 6.0, 5.0, number, memset) | {"cat": "gpu_memset"}
    if function:
        event["args"]["External id"] = function + 1000
    return [call("cudaLaunchKernel", ts, 4.0, number), event]
