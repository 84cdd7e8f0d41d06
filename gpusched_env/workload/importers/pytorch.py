"""What PyTorch's files say of one launch, and of the memory that operators read and write.

Launches are those of Kineto exports; memory is that of execution traces.
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from gpusched_env.errors import InputError
from gpusched_env.workload.importers.fields import MOST_BYTES, Fields, load_json
from gpusched_env.workload.importers.recording import DeviceEvent, HostCall, LaunchShape
from gpusched_env.workload.workload import OpKind, Segment

REGISTERS: Final = "registers per thread"
_NAMED: Final = {OpKind.KERNEL: "Launch", OpKind.MEMSET: "Memset"}
_STREAM = re.compile(r"(?:stream )?(\d{1,18})")
_IN_THREADS = re.compile(r"hip(Ext|Hcc)ModuleLaunchKernel")
"""Calls whose grid counts threads, not blocks."""


class RecordedLaunch(NamedTuple):
    """A call of the host."""

    call: HostCall
    arguments: Fields
    """Arguments that it was called with; empty where profilers do not record that."""

    def launches(self, kind: OpKind) -> bool:
        """Whether it launches work of a kind, by its name."""
        return "Graph" in self.call.name or _NAMED.get(kind, "Memcpy") in self.call.name


def device_event(event: Fields, kind: OpKind, launches: Mapping[int, RecordedLaunch]) -> DeviceEvent:
    """The event, with its launch by correlation.

    Args:
        event: as in the file.
        kind: a kernel, a memset, or any copy.
        launches: calls by correlation.

    Raises:
        InputError: names the field at fault.
    """
    name = event.text("name")
    arguments = event.inside("args")
    number = optional(arguments, "correlation")
    launch = launches.get(number) if number >= 0 else None
    shape, size = None, 0
    if kind is OpKind.KERNEL:
        shape = _shape(arguments, launch)
    else:
        size = _size(arguments, launch)
    return DeviceEvent(
        kind=copy_kind(name) if kind not in (OpKind.KERNEL, OpKind.MEMSET) else kind,
        name=name,
        start_us=event.microseconds("ts"),
        duration_us=event.microseconds("dur"),
        stream=_stream(event, arguments),
        call=None if launch is None else launch.call,
        number=number,
        shape=shape,
        bytes=size,
        pageable="Pageable" in name,
    )


def optional(fields: Fields, name: str) -> int:
    """A number of an event; -1: it has none of that name."""
    value = fields.values.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def device_of(event: Fields) -> int:
    """Number of the GPU that an event ran on; 0 if the file has none."""
    arguments = event.inside("args")
    return arguments.integer("device") if "device" in arguments.values else max(0, optional(event, "pid"))


def copy_kind(name: str) -> OpKind:
    """Direction of a copy from its name in the trace (``Memcpy HtoD (Pinned -> Device)``)."""
    if re.search(r"Hto[DA]|HostTo(Device|Array)", name):
        return OpKind.COPY_TO_DEVICE
    if re.search(r"[DA]toH|(Device|Array)ToHost", name):
        return OpKind.COPY_TO_HOST
    return OpKind.COPY_ON_DEVICE


def _stream(event: Fields, arguments: Fields) -> int:
    given = _STREAM.fullmatch(str(event.values.get("tid")))
    return int(given[1]) if given and "stream" not in arguments.values else arguments.integer("stream")


def _shape(arguments: Fields, launch: RecordedLaunch | None) -> LaunchShape:
    known = arguments
    if launch is not None and "grid" not in arguments.values and "grid" in launch.arguments.values:
        known = launch.arguments
    grid, block = known.dimensions("grid"), known.dimensions("block")
    if launch is not None and known is launch.arguments and _IN_THREADS.fullmatch(launch.call.name):
        x, y, z = (-(-threads // size) for threads, size in zip(grid, block, strict=True))
        grid = (x, y, z)
    registers = arguments.integer(REGISTERS, 0, 255) if REGISTERS in arguments.values else 0
    return LaunchShape(grid, block, registers, known.integer("shared memory"))


def _size(arguments: Fields, launch: RecordedLaunch | None) -> int:
    if launch is not None and "bytes" not in arguments.values:
        size = launch.arguments.values.get("size")
        if isinstance(size, str) and re.fullmatch(r"\d{1,15}", size):
            return int(size)
    return arguments.integer("bytes", 0, MOST_BYTES)


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
