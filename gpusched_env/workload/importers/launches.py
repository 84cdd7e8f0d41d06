"""A kernel, copy or memset of a Kineto export, with what its launch call says of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from gpusched_env.workload.importers.fields import MOST_BYTES, Fields
from gpusched_env.workload.importers.recording import DeviceEvent, HostCall, LaunchShape
from gpusched_env.workload.workload import OpKind

REGISTERS: Final = "registers per thread"
_NAMED: Final = {OpKind.KERNEL: "Launch", OpKind.MEMSET: "Memset"}
_STREAM = re.compile(r"(?:stream )?(\d{1,18})")
_IN_THREADS = re.compile(r"hip(Ext|Hcc)ModuleLaunchKernel")
"""Calls whose grid counts threads, not blocks."""


class Launch(NamedTuple):
    """A call of the host."""

    call: HostCall
    arguments: Fields
    """What it was called with; empty where profilers do not record that."""

    def launches(self, kind: OpKind) -> bool:
        """Whether it launches such work, by its name."""
        return "Graph" in self.call.name or _NAMED.get(kind, "Memcpy") in self.call.name


def device_event(event: Fields, kind: OpKind, launches: Mapping[int, Launch]) -> DeviceEvent:
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


def _shape(arguments: Fields, launch: Launch | None) -> LaunchShape:
    known = arguments
    if launch is not None and "grid" not in arguments.values and "grid" in launch.arguments.values:
        known = launch.arguments
    grid, block = known.dimensions("grid"), known.dimensions("block")
    if launch is not None and known is launch.arguments and _IN_THREADS.fullmatch(launch.call.name):
        x, y, z = (-(-threads // size) for threads, size in zip(grid, block, strict=True))
        grid = (x, y, z)
    registers = arguments.integer(REGISTERS, 0, 255) if REGISTERS in arguments.values else 0
    return LaunchShape(grid, block, registers, known.integer("shared memory"))


def _size(arguments: Fields, launch: Launch | None) -> int:
    if launch is not None and "bytes" not in arguments.values:
        size = launch.arguments.values.get("size")
        if isinstance(size, str) and re.fullmatch(r"\d{1,15}", size):
            return int(size)
    return arguments.integer("bytes", 0, MOST_BYTES)
