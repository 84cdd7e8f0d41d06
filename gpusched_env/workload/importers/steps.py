"""Recordings of single steps of a serving engine become one workload, a variant a step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from gpusched_env.errors import InputError
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.steps import Decode, Prefill, Step
from gpusched_env.workload.workload import OpKind, Variant, Workload

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
