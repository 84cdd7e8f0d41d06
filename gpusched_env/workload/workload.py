"""A workload: what one host process does in one iteration, as recorded, in one or more variants.

A variant is one recorded iteration: a sequence of host operations. A host works through it in order;
before each operation it spends ``host_us`` of its own time. Kernels, copies and memsets are asynchronous
(they queue in the tenant's stream); ``SYNC`` blocks the host until everything it issued has finished.
"""

from __future__ import annotations

import enum
import gzip
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from gpusched_env.errors import InputError
from gpusched_env.workload.kernel import Kernel

FORMAT = "gpusched-workload/1"


class OpKind(enum.IntEnum):
    """What a host operation is."""

    KERNEL = 0
    """Launch kernel ``index`` of the kernel table."""
    COPY_TO_DEVICE = 1
    COPY_TO_HOST = 2
    COPY_ON_DEVICE = 3
    MEMSET = 4
    """Copies and memsets occupy their engine, not the SMs."""
    SYNC = 5
    """Wait until all earlier operations of this host have finished."""


class Op(msgspec.Struct, frozen=True, array_like=True):
    """One host operation. In files a list ``[kind, host_us, index, duration_us, bytes]``."""

    kind: OpKind
    host_us: Annotated[float, Meta(ge=0)] = 0.0
    """Host time since the previous operation returned (a launch call's own time included)."""
    index: Annotated[int, Meta(ge=-1)] = -1
    """Row of the kernel table for ``KERNEL``, else -1."""
    duration_us: Annotated[float, Meta(ge=0)] = 0.0
    """Recorded device time of this very operation alone."""
    bytes: Annotated[int, Meta(ge=0)] = 0
    """Bytes moved by copies and memsets."""


class Variant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One recorded iteration."""

    ops: tuple[Op, ...]


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One host process's iteration: kernel table, recorded variants, and how it ran alone.

    ``host_us`` of the operations are such that, alone on the GPU of the recording, an iteration takes
    the median of ``iteration_us``.
    """

    format: str = FORMAT
    name: str
    summary: str = ""
    gpu: str
    """Specification name of the GPU of the recording."""
    source: str
    """How it was recorded."""
    kernels: tuple[Kernel, ...]
    variants: Annotated[tuple[Variant, ...], Meta(min_length=1)]
    iteration_us: Annotated[tuple[Annotated[float, Meta(gt=0)], ...], Meta(min_length=1)]
    """Wall time of iterations measured alone without a profiler, microseconds."""

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"format is {self.format!r}, expected {FORMAT!r}")
        for v, variant in enumerate(self.variants):
            kernels = 0
            for o, op in enumerate(variant.ops):
                if op.kind is OpKind.KERNEL:
                    kernels += 1
                    if not 0 <= op.index < len(self.kernels):
                        raise ValueError(
                            f"variants[{v}].ops[{o}] names kernel {op.index}, the table has {len(self.kernels)}"
                        )
                    if op.duration_us <= 0:
                        raise ValueError(f"variants[{v}].ops[{o}].duration_us is {op.duration_us}, must be positive")
            if kernels == 0:
                raise ValueError(f"variants[{v}] has no kernel")


def decode_workload(data: bytes, where: str) -> Workload:
    """Parse and validate workload JSON, gzipped or plain; ``where`` names the source in errors."""
    try:
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return msgspec.json.decode(data, type=Workload)
    except (OSError, EOFError) as error:
        raise InputError(f"{where}: damaged gzip data ({error})") from error
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise InputError(f"{where}: {error}") from error


def read_workload(path: Path) -> Workload:
    """Read a workload file (JSON, ``.gz`` or plain).

    Raises:
        InputError: unreadable or invalid; names the file and the field.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    return decode_workload(data, str(path))


def encode_workload(workload: Workload) -> bytes:
    """Deterministic gzipped JSON of ``workload``."""
    return gzip.compress(msgspec.json.encode(workload), mtime=0)
