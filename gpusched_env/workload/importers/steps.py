"""Recordings of single steps of a serving engine become one workload, a variant a step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from gpusched_env.errors import InputError
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.steps import Decode, Prefill, Step
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

_NAMED: Final = re.compile(r".*_(?:decode_b(?P<batch>[1-9]\d*)_c(?P<context>[1-9]\d*)|prefill_p(?P<prompt>[1-9]\d*))")


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
    """One workload of the first recorded iteration of each step, by batch and length.

    A kernel of the same name and shape in several steps becomes one row of the kernel table, with the mean of its
    durations; each operation keeps its own.

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
        variant = recording.variants[0]
        ops = []
        for op in variant.ops:
            if op.kind is OpKind.KERNEL:
                kernel = recording.kernels[op.index]
                shape = (*kernel.identity, kernel.registers, kernel.shared_bytes)
                row = rows.setdefault(shape, len(kernels))
                if row == len(kernels):
                    kernels.append(kernel)
                    spent_us.append([])
                spent_us[row].append(op.duration_us)
                op = _at(op, row)
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


def _at(op: Op, row: int) -> Op:
    """The operation with another row of the kernel table."""
    return msgspec.structs.replace(op, index=row)
