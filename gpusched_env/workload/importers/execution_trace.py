"""Reader of PyTorch execution traces: the memory that the operators of a recording read and write.

``torch.profiler.ExecutionTraceObserver`` writes a node for each operator: ``inputs`` and ``outputs`` with ``values``,
``shapes``, ``types`` and, in newer versions, ``strides``. A tensor's value is ``[tensor id, storage id, offset,
elements, bytes an element, device]``, its offset in elements. The attribute ``rf_id`` is the record-function id that
the profiler has too (``torch/csrc/profiler/standalone/execution_trace_observer.cpp``).

An operator reads all its inputs and writes its outputs, and those inputs that its schema marks as written (``Tensor(a!)
self``) or, without a schema, the first one if its name ends in an underscore. A tensor with strides counts from its
first to its last element. Storages are numbered by address: memory that the allocator hands out again has the number
again if it begins at the same place. Tensors of the CPU are left out.
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.workload.importers.fields import Fields, load_json
from gpusched_env.workload.importers.recording import DeviceEvent
from gpusched_env.workload.workload import OpKind, Segment

_TENSOR = "[tensor id, storage id, offset, elements, bytes an element, device]"
_BETWEEN_ARGUMENTS = re.compile(r",\s*(?![^([]*[)\]])")


class _UnknownMemory(Exception):
    """A tensor whose memory the trace does not tell (a sparse one)."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator and the device memory that it touches."""

    name: str
    reads: tuple[Segment, ...]
    writes: tuple[Segment, ...]


def read_execution_trace(path: Path) -> dict[int, Operator]:
    """Operators by record-function id, those that touch device memory that is known.

    Raises:
        InputError: names file, node and field at fault.
    """
    document = load_json(path)
    if not isinstance(document, dict) or not isinstance(document.get("nodes"), list):
        raise InputError(
            f"{path}: no list 'nodes'; expected an execution trace (torch.profiler.ExecutionTraceObserver)"
        )
    found = {}
    for n, value in enumerate(document["nodes"]):
        node = Fields.of(value, f"{path}: nodes[{n}]")
        name = node.text("name")
        node = dataclasses.replace(node, where=f"{node.where} ({name})")
        attributes = _attributes(node)
        function = attributes.integer("rf_id") if "rf_id" in attributes.values else node.integer("id")
        try:
            inputs, outputs = _segments(node.inside("inputs")), _segments(node.inside("outputs"))
        except _UnknownMemory:
            continue
        written = _written(name, str(attributes.values.get("op_schema", "")))
        reads = dict.fromkeys(segment for argument in inputs for segment in argument)
        writes = dict.fromkeys(segment for argument in outputs for segment in argument)
        for place, argument in enumerate(inputs):
            writes |= dict.fromkeys(argument) if place in written else {}
        if reads or writes:
            found[function] = Operator(name, tuple(reads), tuple(writes))
    return found


def with_memory(
    events: Sequence[DeviceEvent], calls: Sequence[tuple[str, int]], operators: Mapping[int, Operator]
) -> tuple[DeviceEvent, ...]:
    """The events with what their operators read and write; those without an operator stay as they are.

    A memset in an operator with kernels clears a workspace of the kernel behind it: a storage of its own, counted down
    from -1, since the operator's tensors do not tell.

    Args:
        events: device work in any order.
        calls: name and record-function id of the operator that launched each; the id is -1 if none did.
        operators: of the same run, by record-function id.
    """
    found = list(events)
    launching = {function for event, (_, function) in zip(events, calls, strict=True) if event.kind is OpKind.KERNEL}
    cleared: dict[int, tuple[Segment, ...]] = defaultdict(tuple)
    workspaces = 0
    for row in sorted(range(len(events)), key=lambda row: events[row].start_us):
        event, (name, function) = events[row], calls[row]
        operator = operators.get(function)
        if operator is None or operator.name != name:
            continue
        reads, writes = operator.reads, operator.writes
        if event.kind is OpKind.MEMSET and function in launching:
            workspaces += 1
            reads, writes = (), (Segment(-workspaces, 0, max(1, event.bytes)),)
            cleared[function] += writes
        elif event.kind is OpKind.KERNEL:
            workspace = cleared.pop(function, ())
            reads, writes = reads + workspace, writes + workspace
        found[row] = dataclasses.replace(event, reads=reads, writes=writes)
    return tuple(found)


def _attributes(node: Fields) -> Fields:
    """The attributes of a node by name."""
    listed = [Fields.of(value, f"{node.where}.attrs[{a}]") for a, value in enumerate(node.array("attrs"))]
    return Fields({entry.text("name"): entry.values.get("value") for entry in listed}, f"{node.where}.attrs")


def _written(name: str, schema: str) -> set[int]:
    """Places of the inputs that an operator writes."""
    if not schema:
        return {0} if name.endswith("_") else set()
    arguments = _BETWEEN_ARGUMENTS.split(schema.partition("(")[2].rpartition(") ->")[0])
    return {place for place, argument in enumerate(a for a in arguments if a != "*") if "!" in argument}


def _segments(side: Fields) -> list[tuple[Segment, ...]]:
    """Device memory of each argument of the inputs or outputs of a node."""
    values, types, shapes = side.array("values"), side.array("types"), side.array("shapes")
    strides = side.array("strides") if "strides" in side.values else [None] * len(values)
    for name, given in (("types", types), ("shapes", shapes), ("strides", strides)):
        if len(given) != len(values):
            raise InputError(f"{side.where}: field {name!r} has {len(given)} entries, 'values' {len(values)}")
    return [
        tuple(_of_value(value, shape, stride, f"{side.where}.values[{v}]"))
        if "Tensor(" in str(kind) and "uninitialized" not in str(kind)
        else ()
        for v, (value, kind, shape, stride) in enumerate(zip(values, types, shapes, strides, strict=True))
    ]


def _of_value(value: Any, shape: Any, stride: Any, where: str) -> Iterator[Segment]:
    """Device memory of a tensor, or of the tensors in a list."""
    if not isinstance(value, list):
        if value is None or value == "<None>":
            return
        raise InputError(f"{where} is {value!r}, expected {_TENSOR}, or a list of such")
    if not value or type(value[0]) is not int:
        for v, inner in enumerate(value):
            yield from _of_value(inner, _inside(shape, v), _inside(stride, v), f"{where}[{v}]")
        return
    numbers, device = value[1:5], value[-1]
    if len(value) != 6 or not isinstance(device, str) or any(type(n) is not int or n < 0 for n in numbers):
        raise InputError(f"{where} is {value!r}, expected {_TENSOR}")
    storage, offset, elements, width = numbers
    if not device:
        raise _UnknownMemory
    span = _span(elements, shape, stride)
    if device != "cpu" and span > 0:
        yield Segment(storage, offset * width, (offset + span) * width)


def _inside(nested: Any, place: int) -> Any:
    return nested[place] if isinstance(nested, list) and place < len(nested) else None


def _span(elements: int, shape: Any, stride: Any) -> int:
    """Elements from the first to the last of a tensor; of one without known strides, as many as it has."""
    sizes: list[Any] = shape if isinstance(shape, list) else []
    steps: list[Any] = stride if isinstance(stride, list) else []
    known = sizes and len(sizes) == len(steps) and all(type(n) is int for n in (*sizes, *steps))
    if not known or elements == 0:
        return elements
    return 1 + sum(int((size - 1) * step) for size, step in zip(sizes, steps, strict=True))
