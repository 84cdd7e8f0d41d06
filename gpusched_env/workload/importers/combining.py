"""Workloads made of several recordings: with times of kernels alone, of single steps, and with a cold L2."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from gpusched_env.errors import InputError
from gpusched_env.hardware.l2 import keeps
from gpusched_env.workload.importers.build import DECIMALS
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.serving import Decode, Prefill, Step
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

_Shape = tuple[str, tuple[int, ...], tuple[int, ...]]


def with_serial_times(workload: Workload, serial: Workload) -> Workload:
    """The workload, each of whose kernels takes as long as in a recording of the same program one launch at a time.

    A kernel's time is the median over the iterations of ``serial``. Host times, streams and events stay.

    Args:
        workload: of the program as it is.
        serial: of the same program, recorded with ``CUDA_LAUNCH_BLOCKING=1``.

    Raises:
        InputError: the two do not launch the same kernels in the same order.
    """
    shapes = [_shapes(serial, variant) for variant in serial.variants]
    times_us = [[op.duration_us for op in _kernels(variant)] for variant in serial.variants]
    for v, found in enumerate(shapes[1:], start=1):
        _same(found, shapes[0], f"{serial.name}: variants[{v}]", "variants[0] of it")
    median_us = [round(statistics.median(same), DECIMALS) for same in zip(*times_us, strict=True)]
    seen: dict[int, list[float]] = defaultdict(list)
    variants = []
    for v, variant in enumerate(workload.variants):
        _same(_shapes(workload, variant), shapes[0], f"{workload.name}: variants[{v}]", "the recording one at a time")
        left = iter(median_us)
        threads = [
            [replace(op, duration_us=next(left)) if op.kind is OpKind.KERNEL else op for op in thread]
            for thread in variant.all_threads
        ]
        for op in (op for thread in threads for op in thread if op.kind is OpKind.KERNEL):
            seen[op.index].append(op.duration_us)
        variants.append(replace(variant, ops=tuple(threads[0]), threads=tuple(tuple(t) for t in threads[1:])))
    kernels = tuple(_mean(kernel, seen[row]) if row in seen else kernel for row, kernel in enumerate(workload.kernels))
    source = f"{workload.source}; times of kernels from a recording with one launch at a time"
    return replace(workload, kernels=kernels, variants=tuple(variants), source=source)


def _kernels(variant: Variant) -> list[Op]:
    return [op for thread in variant.all_threads for op in thread if op.kind is OpKind.KERNEL]


def _shapes(workload: Workload, variant: Variant) -> list[_Shape]:
    """Names and shapes of an iteration's kernels, one host thread after the other."""
    kernels = [workload.kernels[op.index] for op in _kernels(variant)]
    return [(kernel.name, kernel.grid, kernel.block) for kernel in kernels]


def _same(found: list[_Shape], wanted: list[_Shape], which: str, of: str) -> None:
    """Whether two iterations launch the same.

    Raises:
        InputError: they do not; names the first kernel that differs.
    """
    if found == wanted:
        return
    differs = (place for place, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1])
    place = next(differs, min(len(found), len(wanted)))
    said = [f"{one[place][0]} of {one[place][1]} blocks" if place < len(one) else "none" for one in (found, wanted)]
    raise InputError(
        f"{which}: its kernel {place} is {said[0]}, in {of} it is {said[1]} (they have {len(found)} and {len(wanted)} "
        "kernels); record the same program with CUDA_LAUNCH_BLOCKING=1, with as many iterations before it"
    )


def _mean(kernel: Kernel, durations_us: list[float]) -> Kernel:
    return replace(kernel, duration_us=round(statistics.fmean(durations_us), DECIMALS))


_NAMED: Final = re.compile(r".*_(?:decode_b(?P<batch>[1-9]\d*)_c(?P<context>[1-9]\d*)|prefill_p(?P<prompt>[1-9]\d*))")

COLLECTIVE: Final = "ncclDevKernel"
"""What names of kernels begin with that exchange data with other GPUs (NCCL): all of them run one at the same time."""


def named_step(name: str) -> Step:
    """The step that a recording is of: its name ends in ``_prefill_p512`` (tokens) or ``_decode_b8_c1024`` (requests,
    tokens of each).

    Raises:
        InputError: it ends in neither.
    """
    named = _NAMED.fullmatch(name)
    if named is None:
        raise InputError(f"{name}: says no step; it must end in _prefill_p<tokens> or _decode_b<requests>_c<tokens>")
    if named["prompt"]:
        return Prefill(tokens=int(named["prompt"]))
    return Decode(batch=int(named["batch"]), context=int(named["context"]))


def merge_steps(name: str, recordings: Mapping[str, Workload]) -> Workload:
    """One workload of the shortest recorded iteration of each step, by batch and length.

    A kernel of the same name and shape in several steps becomes one row of the kernel table, with the mean of its
    durations; each operation keeps its own. A collective (:data:`COLLECTIVE`) takes as long as the shortest of its kind
    in the step: a longer one has waited for another GPU, whose process had fallen behind under the profiler.

    Args:
        name: of the workload.
        recordings: by name (:func:`named_step`); all of one GPU.

    Raises:
        InputError: there are none, a name says no step, or GPUs differ.
    """
    if not recordings:
        raise InputError(f"{name}: has no recordings of steps")
    gpus = {recording.gpu for recording in recordings.values()}
    if len(gpus) > 1:
        raise InputError(f"{name}: steps were recorded on different GPUs, {', '.join(sorted(gpus))}; record all on one")
    by_size = sorted((named_step(key).size, key) for key in recordings)
    rows: dict[tuple[object, ...], int] = {}
    kernels: list[Kernel] = []
    spent_us: list[list[float]] = []
    variants = []
    for _, key in by_size:
        recording = recordings[key]
        if recording.graphs or len(recording.stream_priorities) > 1:
            raise InputError(f"{key}: has CUDA graphs or several streams; record its kernels one by one in one stream")
        variant = min(recording.variants, key=lambda recorded: sum(op.duration_us for op in recorded.ops))
        together_us: dict[int, float] = {}
        for op in variant.ops:
            if op.kind is OpKind.KERNEL and recording.kernels[op.index].name.startswith(COLLECTIVE):
                together_us[op.index] = min(op.duration_us, together_us.get(op.index, op.duration_us))
        ops = []
        for op in variant.ops:
            if op.kind is OpKind.KERNEL:
                kernel = recording.kernels[op.index]
                shape = (*kernel.identity, kernel.registers, kernel.shared_bytes)
                op = msgspec.structs.replace(op, duration_us=together_us.get(op.index, op.duration_us))
                row = rows.setdefault(shape, len(kernels))
                if row == len(kernels):
                    kernels.append(kernel)
                    spent_us.append([])
                spent_us[row].append(op.duration_us)
                op = msgspec.structs.replace(op, index=row)
            ops.append(op)
        variants.append(Variant(ops=tuple(ops), threads=variant.threads, step=named_step(key)))
    first = recordings[by_size[0][1]]
    return msgspec.structs.replace(
        first,
        name=name,
        summary="",
        source=f"{len(variants)} steps, each of them: {first.source}",
        kernels=tuple(
            msgspec.structs.replace(kernel, duration_us=sum(each) / len(each))
            for kernel, each in zip(kernels, spent_us, strict=True)
        ),
        variants=tuple(variants),
        iteration_us=(1.0,),
    )


SCATTER: Final = 0.02
"""Medians of a kernel's times differ by so much of themselves without any cause: smaller differences count as none."""
Times = tuple[Annotated[float, Meta(gt=0)], ...]


class CacheRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of ``gpusched lab record DIR --sets cache``: what of it is read here."""

    model: str
    weight_bytes: Annotated[int, Meta(ge=0)]
    """Bytes of a network's weights and inputs."""
    other_bytes: Annotated[int, Meta(ge=0)]
    """Most bytes that an iteration holds besides."""
    warm_us: Times
    """Times of an iteration's kernels in order, one iteration after the other."""
    cold_us: Times
    """Times of the same kernels, each iteration behind something that empties the L2."""

    @property
    def footprint_bytes(self) -> int:
        """Bytes that an iteration touches."""
        return self.weight_bytes + self.other_bytes


def with_cache(workload: Workload, row: CacheRow) -> Workload:
    """The workload with its footprint, and by how much each of its kernels is longer in a cold L2.

    A network that does not fit into the L2 of its GPU finds nothing there when it is alone either: its kernels lose
    nothing to others.

    Args:
        workload: with kernels launched one by one.
        row: of the same network.

    Raises:
        InputError: the network fits, and the row is of an iteration with another number of kernels.
    """
    if not keeps(workload.spec.l2_bytes, row.footprint_bytes):
        return msgspec.structs.replace(without_cache(workload), footprint_bytes=row.footprint_bytes)
    cold = [
        share if (share := colder / warm - 1.0) > SCATTER else 0.0
        for warm, colder in zip(row.warm_us, row.cold_us, strict=True)
    ]
    variants = []
    for v, variant in enumerate(workload.variants):
        kernels = sum(op.kind is OpKind.KERNEL for op in variant.all_ops)
        if kernels != len(cold) or variant.threads:
            raise InputError(
                f"{workload.name}: variants[{v}] has {kernels} kernels in {1 + len(variant.threads)} host threads, "
                f"the recording of the L2 {len(cold)} in one; record both of the same network and batch"
            )
        left = iter(cold)
        variants.append(
            msgspec.structs.replace(
                variant, ops=tuple(_with(op, next(left)) if op.kind is OpKind.KERNEL else op for op in variant.ops)
            )
        )
    return msgspec.structs.replace(workload, variants=tuple(variants), footprint_bytes=row.footprint_bytes)


def loses_cached_data(workload: Workload) -> bool:
    """Whether any of a workload's kernels takes longer where the L2 has lost its data."""
    nodes = (node for graph in workload.graphs for node in graph)
    return any(op.cold > 0.0 for variant in workload.variants for op in variant.all_ops) or any(n.cold for n in nodes)


def without_cache(workload: Workload) -> Workload:
    """The workload as if nothing of it were lost in the L2; one with kernels launched one by one in a host thread."""
    variants = tuple(
        msgspec.structs.replace(variant, ops=tuple(_with(op, 0.0) for op in variant.ops))
        for variant in workload.variants
    )
    return msgspec.structs.replace(workload, variants=variants, footprint_bytes=0)


def _with(op: Op, cold: float) -> Op:
    return msgspec.structs.replace(op, cold=round(cold, 4))
