"""Memory that is never used again: what a program would touch if each of its results had storage of its own.

An allocator that recycles memory makes kernels wait for each other that have nothing to do with each other: whoever
gets the storage of a result that is no longer needed must wait until its last reader has ended. Compilers remove such
false dependencies by renaming (R. M. Tomasulo, IBM Journal of Research and Development 1967).

An operator that writes a storage without reading it has allocated its result: the storage gets a new name, and so it is
called until the next operator allocates it. Kernels in a row with the same reads and writes are of one operator, which
allocated once. What an operator writes in place, it reads as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec

from gpusched_env.workload.workload import Op, OpKind, Segment, Workload

Memory = tuple[tuple[Segment, ...], tuple[Segment, ...]]
"""What is read, and what is written."""


def renamed(workload: Workload) -> Workload:
    """The workload, each result of whose kernels has storage of its own.

    Recordings in which nothing was freed within an iteration have the same longest chains, where every kernel is an
    operator's own (physics steps, BERT, MobileNet). Of NASNet, whose convolutions allocate within, a recording can hold
    only what operators return: it lies between the workload and this. Copies, and kernels whose memory is not known,
    stay as they are.
    """
    variants = tuple(
        msgspec.structs.replace(variant, ops=tuple(_renamed(variant.ops))) for variant in workload.variants
    )
    return msgspec.structs.replace(workload, variants=variants)


def _renamed(ops: Sequence[Op]) -> Iterator[Op]:
    used = {segment.storage for op in ops for segment in (*(op.reads or ()), *(op.writes or ()))}
    fresh = itertools.count(max(used, default=0) + 1)
    names: dict[int, int] = {}
    before: Memory | None = None
    for op in ops:
        if op.kind is not OpKind.KERNEL or op.reads is None or op.writes is None:
            before = None
            yield op
            continue
        reads = tuple(_of(segment, names) for segment in op.reads)
        read = {segment.storage for segment in op.reads}
        if (op.reads, op.writes) != before:
            names |= {segment.storage: next(fresh) for segment in op.writes if segment.storage not in read}
        before = op.reads, op.writes
        yield msgspec.structs.replace(op, reads=reads, writes=tuple(_of(segment, names) for segment in op.writes))


def _of(segment: Segment, names: dict[int, int]) -> Segment:
    return msgspec.structs.replace(segment, storage=names.get(segment.storage, segment.storage))
