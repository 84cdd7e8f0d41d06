"""Times of kernels alone, for programs whose streams overlap: from a second recording with one launch at a time.

What ran beside other work of its own program is recorded as slow as it was there, which is no time alone. With
``CUDA_LAUNCH_BLOCKING=1`` in the environment every launch waits for its kernel, so nothing runs beside anything.
"""

from __future__ import annotations

import statistics
from collections import defaultdict

from msgspec.structs import replace

from gpusched_env.errors import InputError
from gpusched_env.workload.importers.build import DECIMALS
from gpusched_env.workload.kernel import Kernel
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
