"""A workload: what one host process does in one iteration, as recorded, in one or more variants.

``Marks`` says what the events of a variant stand for.
"""

from __future__ import annotations

import enum
import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.reading import Duration, Time, decoded, read_bytes, unzipped
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.serving import Step

FORMAT = "gpusched-workload/1"


Share = Annotated[float, Meta(ge=0, le=1e3)]
"""A share of a duration."""


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
    """Wait until all earlier operations of this tenant have finished."""
    SYNC_STREAM = 6
    """Wait until all earlier operations in the stream have finished."""
    SYNC_EVENT = 7
    """Wait until event ``index`` of this iteration is complete."""
    RECORD = 8
    """Record event ``index`` in the stream: it is complete when everything before it there is."""
    WAIT = 9
    """Later operations in the stream wait for event ``index`` of this iteration (none if nothing records it)."""
    GRAPH = 10
    """Launch graph ``index`` of the graph table: one launch, however many nodes it has."""
    HOST = 11
    """Nothing but the host's time."""


COPIES = (OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST, OpKind.COPY_ON_DEVICE, OpKind.MEMSET)
"""Operations of the copy engines."""
DEVICE_OPS = frozenset({OpKind.KERNEL, OpKind.GRAPH, *COPIES})
"""Operations that become launches."""
EVENT_OPS = frozenset({OpKind.RECORD, OpKind.WAIT, OpKind.SYNC_EVENT})


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """A range of device memory that a launch reads or writes: ``[first, end)`` bytes of a storage."""

    storage: int
    first: Annotated[int, Meta(ge=0)]
    end: Annotated[int, Meta(ge=0)]


class Child(msgspec.Struct, frozen=True, array_like=True):
    """A kernel that a kernel launches from the device (fire and forget). In files ``[index, duration_us]``."""

    index: Annotated[int, Meta(ge=0)]
    """Row of the kernel table."""
    duration_us: Duration
    """Duration alone of this very child."""


class TileNeeds(msgspec.Struct, frozen=True, array_like=True):
    """What the tiles of a kernel need of its producer's (:mod:`gpusched_env.hardware.tiles`): a fact, whatever waits
    for it. A kernel's grid is columns, rows and slices of tiles. In files ``[kind, fold, steps, lead]``."""

    kind: Literal["row", "tile", "share", "product"] = "row"
    """``row``: the producer's tiles of the same row, one after the other; ``tile``: the one at the same place;
    ``share``: as large a share of the producer's tiles as that of the blocks up to this one, whichever they are;
    ``product``: tiles of two of the producer's matrices, of the first in its own row, of the second in the row that is
    its column (attention's scores: queries times keys)."""
    fold: Annotated[int, Meta(ge=1)] = 1
    """Matrices that the producer has side by side. A step of a row reads a tile of each, of a product of the first two.
    """
    steps: Annotated[int, Meta(ge=1)] = 1
    """Steps of its inner loop a producer's column, where it needs a row (of a convolution: elements of the filter)."""
    lead: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    """Share of a block's work that needs nothing of the producer, where it is done first."""


class Op(msgspec.Struct, frozen=True, array_like=True):
    """One host operation. In files a list ``[kind, host_us, index, duration_us, bytes, stream, ...]``."""

    kind: OpKind
    host_us: Time = 0.0
    """Host time since the previous operation returned (a launch call's own time included)."""
    index: Annotated[int, Meta(ge=-1)] = -1
    """Row of the kernel table for ``KERNEL``, of the graph table for ``GRAPH``, an event's number where one is
    recorded or waited for, else -1."""
    duration_us: Time = 0.0
    """Recorded device time of this very operation alone (not of graphs: their nodes have their own)."""
    bytes: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """Bytes moved by copies and memsets."""
    stream: Annotated[int, Meta(ge=0)] = 0
    """Stream of the program."""
    tiles: Annotated[int, Meta(ge=-1)] = -1
    """An event of this iteration right behind a kernel, the producer, whose tiles this kernel needs; -1: none. It waits
    for all of the producer, unless a scheduler synchronises their tiles."""
    children: tuple[Child, ...] = ()
    """Kernels that this kernel launches from the device when it starts; it is complete when they are."""
    reads: tuple[Segment, ...] | None = None
    writes: tuple[Segment, ...] | None = None
    """Memory that is read and written, if known; ``None`` means possibly all of it."""
    needs: TileNeeds = TileNeeds()
    """What its tiles need of the producer's, where there are ``tiles``."""
    cold: Share = 0.0
    """Share of its duration by which it takes longer where the L2 has lost what an earlier iteration of its workload
    left there (:mod:`gpusched_env.hardware.l2`); the duration is that of a warm L2."""


class GraphNode(msgspec.Struct, frozen=True, array_like=True):
    """A node of a CUDA graph. In files ``[kind, index, duration_us, bytes, after, cold]``."""

    kind: OpKind
    """``KERNEL``, a copy or ``MEMSET``."""
    index: Annotated[int, Meta(ge=-1)] = -1
    """Row of the kernel table."""
    duration_us: Time = 0.0
    bytes: Annotated[int, Meta(ge=0, le=2**53)] = 0
    after: tuple[Annotated[int, Meta(ge=0)], ...] = ()
    """Earlier nodes of the graph that it waits for."""
    cold: Share = 0.0
    """Share by which it takes longer where the L2 has lost its data, as :attr:`Op.cold`."""


class Variant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One recorded iteration."""

    ops: tuple[Op, ...]
    """Operations of the main host thread."""
    threads: tuple[tuple[Op, ...], ...] = ()
    """Operations of further host threads, which begin with the main one; the host work ends with the last of them."""
    step: Step | None = None
    """Which step of a serving engine it is; ``None``: of none."""

    def mapped(self, op_of: Callable[[Op], Op]) -> Variant:
        """The same of other operations, made in their order, thread after thread."""
        ops, *threads = (tuple(map(op_of, ops)) for ops in self.all_threads)
        return msgspec.structs.replace(self, ops=ops, threads=tuple(threads))

    @property
    def all_threads(self) -> tuple[tuple[Op, ...], ...]:
        """Operations by host thread, the main one first."""
        return (self.ops, *self.threads)

    @property
    def all_ops(self) -> Iterator[Op]:
        """Operations of all host threads."""
        return (op for thread in self.all_threads for op in thread)


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
    gpu_spec: GpuSpec | None = None
    """The specification itself where it is not among the shipped ones."""
    source: str
    """How it was recorded."""
    kernels: tuple[Kernel, ...]
    graphs: tuple[tuple[GraphNode, ...], ...] = ()
    """CUDA graphs that operations launch: nodes in an order in which they could run one by one."""
    stream_priorities: tuple[Annotated[int, Meta(le=0)], ...] = (0,)
    """Priority of each of the program's streams, CUDA's convention; operations name streams by their place here."""
    variants: Annotated[tuple[Variant, ...], Meta(min_length=1)]
    iteration_us: Annotated[tuple[Duration, ...], Meta(min_length=1)]
    """Wall time of iterations measured alone without a profiler, microseconds."""
    footprint_bytes: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """Device memory that an iteration touches, which the L2 would have to hold for the next one; 0: not known, as are
    the operations' :attr:`Op.cold`."""
    profiled: bool = False
    """Whether host times, and ``iteration_us``, are those of a run under a profiler, which slows the host: nothing said
    how long an iteration takes without."""

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"format is {self.format!r}, expected {FORMAT!r}")
        if self.gpu_spec is not None and self.gpu_spec.name != self.gpu:
            raise ValueError(f"gpu is {self.gpu!r}, but gpu_spec is of {self.gpu_spec.name!r}")
        for k, kernel in enumerate(self.kernels):
            for form in kernel.forms:
                if form == k or form >= len(self.kernels):
                    raise ValueError(
                        f"kernels[{k}].forms names kernel {form}, must be another of the table's {len(self.kernels)}"
                    )
        for g, nodes in enumerate(self.graphs):
            self._check_graph(nodes, f"graphs[{g}]")
        for v, variant in enumerate(self.variants):
            for t, ops in enumerate(variant.all_threads):
                where = f"variants[{v}].ops" if t == 0 else f"variants[{v}].threads[{t - 1}]"
                for o, op in enumerate(ops):
                    self._check_op(op, f"{where}[{o}]")
            if not any(op.kind in (OpKind.KERNEL, OpKind.GRAPH) for op in variant.all_ops):
                raise ValueError(f"variants[{v}] has no kernel")
        self._check_steps()

    @property
    def spec(self) -> GpuSpec:
        """Specification of the GPU of the recording.

        Raises:
            InputError: it is not in the file, and no shipped one has its name.
        """
        return self.gpu_spec if self.gpu_spec is not None else load_gpu(self.gpu)

    def _check_steps(self) -> None:
        first: dict[Step, int] = {}
        for v, variant in enumerate(self.variants):
            if variant.step is not None and first.setdefault(variant.step, v) != v:
                raise ValueError(f"variants[{v}].step is that of variants[{first[variant.step]}]; record a step once")

    def _check_op(self, op: Op, where: str) -> None:
        if op.stream >= len(self.stream_priorities):
            raise ValueError(f"{where}.stream is {op.stream}, stream_priorities names {len(self.stream_priorities)}")
        if op.kind is OpKind.KERNEL:
            self._check_kernel(op.index, op.duration_us, where)
            for c, child in enumerate(op.children):
                self._check_kernel(child.index, child.duration_us, f"{where}.children[{c}]")
        elif op.kind is OpKind.GRAPH:
            if not 0 <= op.index < len(self.graphs):
                raise ValueError(f"{where} names graph {op.index}, the table has {len(self.graphs)}")
        elif op.kind in EVENT_OPS and op.index < 0:
            raise ValueError(f"{where}.index is {op.index}, must be the number of an event")
        if op.kind is not OpKind.KERNEL and (op.children or op.tiles >= 0):
            raise ValueError(f"{where}: only kernels have children or wait for tiles")

    def _check_kernel(self, index: int, duration_us: float, where: str) -> None:
        if not 0 <= index < len(self.kernels):
            raise ValueError(f"{where} names kernel {index}, the table has {len(self.kernels)}")
        if duration_us <= 0:
            raise ValueError(f"{where}.duration_us is {duration_us}, must be positive")

    def _check_graph(self, nodes: tuple[GraphNode, ...], where: str) -> None:
        if not any(node.kind is OpKind.KERNEL for node in nodes):
            raise ValueError(f"{where} has no kernel")
        for n, node in enumerate(nodes):
            if node.kind is not OpKind.KERNEL and node.kind not in COPIES:
                raise ValueError(f"{where}[{n}].kind is {node.kind.name}, must be KERNEL, a copy or MEMSET")
            if node.kind is OpKind.KERNEL:
                self._check_kernel(node.index, node.duration_us, f"{where}[{n}]")
            if any(before >= n for before in node.after):
                raise ValueError(f"{where}[{n}].after is {list(node.after)}, must name earlier nodes")


def is_workload_path(name: str) -> bool:
    """Whether a workload is named by the path of its file."""
    return name.endswith((".json", ".json.gz")) or os.sep in name


def decode_workload(data: bytes, where: str) -> Workload:
    """Parse and validate workload JSON, gzipped or plain; ``where`` names the source in errors."""
    return decoded(unzipped(data, where), Workload, where)


def read_workload(path: Path) -> Workload:
    """Read a workload file (JSON, ``.gz`` or plain).

    Raises:
        InputError: unreadable or invalid; names the file and the field.
    """
    return decode_workload(read_bytes(path), str(path))


def encode_workload(workload: Workload) -> bytes:
    """Deterministic gzipped JSON of ``workload``."""
    return gzip.compress(msgspec.json.encode(workload), mtime=0)


Ref = tuple[int, int]
"""An operation of a variant: thread and place."""


class Marks:
    """What the events of a variant stand for, and the marks of the operations that are waited for."""

    def __init__(self, variant: Variant) -> None:
        self._awaited: dict[Ref, tuple[Ref, ...]] = {}
        self._events: dict[int, tuple[Ref, ...]] = {}
        for thread, ops in enumerate(variant.all_threads):
            self._resolve_records(thread, ops)
        for thread, ops in enumerate(variant.all_threads):
            self._resolve_waits(thread, ops)
        used = sorted({ref for refs in self._awaited.values() for ref in refs})
        self._numbers = {ref: number for number, ref in enumerate(used)}
        self.count = len(used)

    def _resolve_records(self, thread: int, ops: tuple[Op, ...]) -> None:
        frontier: dict[int, tuple[Ref, ...]] = {}
        for place, op in enumerate(ops):
            if op.kind in DEVICE_OPS:
                frontier[op.stream] = ((thread, place),)
            elif op.kind is OpKind.RECORD:
                self._events[op.index] = frontier.get(op.stream, ())
            elif op.kind is OpKind.WAIT:
                known = self._events.get(op.index, ())
                frontier[op.stream] = (*frontier.get(op.stream, ()), *known)

    def _resolve_waits(self, thread: int, ops: tuple[Op, ...]) -> None:
        waits: dict[int, list[Ref]] = {}
        for place, op in enumerate(ops):
            if op.kind is OpKind.WAIT:
                waits.setdefault(op.stream, []).extend(self._events.get(op.index, ()))
            elif op.kind is OpKind.SYNC_EVENT:
                self._awaited[thread, place] = self._events.get(op.index, ())
            elif op.kind in DEVICE_OPS:
                whole = self._events.get(op.tiles, ()) if op.tiles >= 0 else ()
                before = dict.fromkeys([*waits.pop(op.stream, ()), *whole])
                self._awaited[thread, place] = tuple(ref for ref in before if ref != (thread, place))

    def awaited(self, thread: int, place: int) -> tuple[Ref, ...]:
        """The operations that one waits for by events."""
        return self._awaited.get((thread, place), ())

    def awaited_marks(self, thread: int, place: int) -> tuple[int, ...]:
        """Marks of the operations that one waits for by events."""
        return tuple(sorted({self._numbers[ref] for ref in self.awaited(thread, place)}))

    def of(self, ref: Ref) -> int:
        """The mark of an operation; -1: none waits for it."""
        return self._numbers.get(ref, -1)

    def standing_for(self, event: int) -> tuple[Ref, ...]:
        """The operations that an event stands for; none where nothing records it."""
        return self._events.get(event, ())

    def tiles(self, op: Op) -> int:
        """The mark of the kernel whose tiles a kernel needs; -1: none."""
        return self.of(self._events[op.tiles][0]) if op.tiles >= 0 else -1
