"""Carrying a workload over to another GPU, held against recordings of the same networks on both.

For each network that two folders have under the same name, the recording of the first GPU is carried over
(:mod:`gpusched_env.workload.carry_over`) and its kernels' times alone are compared with the recording of the second.
A kernel is the same where its name, grid and block are: libraries choose others for some layers on another GPU.

Two rivals stand beside the prediction. One leaves all times as they are. One knows nothing of the L2, as of workloads
whose L2 was not recorded, and takes all traffic of a kernel's class to be the DRAM's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpusched_env.display.table import Table
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.validate import products
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.carry_over import carry_over
from gpusched_env.workload.profile import profile_kernel
from gpusched_env.workload.workload import OpKind, Workload, read_workload

Floats = NDArray[np.float64]
Predictor = Literal["carried over", "uncached", "unchanged"]
Identity = tuple[str, tuple[int, int, int], tuple[int, int, int]]

RECORDING = "*.workload.json*"
KERNEL_LIMIT, NETWORK_LIMIT = 0.06, 0.08
"""Limits of the median absolute error; fixed before the first comparison."""
SHORT_US, LONG_US = 5.0, 20.0
"""Kernels are shown apart by their recorded time: below, between and above."""
SHARE, SIGNED = "{:.1%}", "{:+.1%}"


@dataclass(frozen=True, slots=True)
class CarryOverResult:
    """A network of one GPU on another: ratios to what was recorded there."""

    network: str
    recorded_on: str
    gpu: str
    lengths_us: Floats
    """Recorded times of the kernels that both recordings have, on ``gpu``, medians of their launches."""
    kernels: Floats
    """The time carried over, over the recorded one, by kernel."""
    uncached: Floats
    """The time carried over where nothing is known of the L2, over the recorded one, by kernel."""
    unchanged: Floats
    """The time on the other GPU, as it is, over the recorded one, by kernel."""
    network_ratio: float
    """The ratio of all kernels of an iteration together."""
    network_uncached: float
    network_unchanged: float
    distinct: int
    """Kernels of the recording that is carried over."""


def carry_over_result(source: Workload, target: Workload) -> CarryOverResult:
    """``source`` on the GPU of ``target``, which is a recording of the same network.

    Raises:
        InputError: both are of one GPU, or have no kernel in common.
    """
    if source.gpu == target.gpu:
        raise InputError(f"{source.name}: both recordings are of {source.gpu}; carrying over is between two GPUs")
    gpu = load_gpu(target.gpu)
    there, _ = carry_over(source, gpu)
    factors, uncached = (
        [
            profile_kernel(new, source.spec, gpu, l2_recorded=known).duration_us / old.duration_us
            for new, old in zip(there.kernels, source.kernels, strict=True)
        ]
        for known in (source.footprint_bytes > 0, False)
    )
    mine, theirs = _launches(source), _launches(target)
    shared = [key for key in mine if key in theirs]
    if not shared:
        raise InputError(f"{source.name}: its recordings on {source.gpu} and {target.gpu} have no kernel in common")
    factor, of_uncached = (
        {kernel.identity: value for kernel, value in zip(source.kernels, values, strict=True)}
        for values in (factors, uncached)
    )
    recorded = np.array([np.median(theirs[key]) for key in shared])
    before = np.array([np.median(mine[key]) for key in shared])
    whole = _iteration_us(target, [1.0] * len(target.kernels))
    return CarryOverResult(
        network=source.name,
        recorded_on=source.gpu,
        gpu=target.gpu,
        lengths_us=recorded,
        kernels=before * [factor[key] for key in shared] / recorded,
        uncached=before * [of_uncached[key] for key in shared] / recorded,
        unchanged=before / recorded,
        network_ratio=_iteration_us(source, factors) / whole,
        network_uncached=_iteration_us(source, uncached) / whole,
        network_unchanged=_iteration_us(source, [1.0] * len(factors)) / whole,
        distinct=len(mine),
    )


def _launches(workload: Workload) -> dict[Identity, list[float]]:
    """Times of all launches of each kernel, in microseconds."""
    found: dict[Identity, list[float]] = {}
    for variant in workload.variants:
        for op in variant.ops:
            if op.kind is OpKind.KERNEL:
                found.setdefault(workload.kernels[op.index].identity, []).append(op.duration_us)
    return found


def _iteration_us(workload: Workload, factors: Sequence[float]) -> float:
    """All kernels of an iteration together, each with its factor: the median over the recorded iterations."""
    return float(
        np.median(
            [
                sum(op.duration_us * factors[op.index] for op in variant.ops if op.kind is OpKind.KERNEL)
                for variant in workload.variants
            ]
        )
    )


def both_ways(first: Path, second: Path) -> list[CarryOverResult]:
    """Every network that both folders have, from the first GPU to the second, then back.

    Raises:
        InputError: a folder has no recording that the other one has; as :func:`carry_over_result`.
    """
    names = sorted({path.name for path in first.glob(RECORDING)} & {path.name for path in second.glob(RECORDING)})
    if not names:
        raise InputError(f"{first} and {second} have no recording ({RECORDING}) of the same name")
    return [
        carry_over_result(read_workload(source / name), read_workload(target / name))
        for source, target in ((first, second), (second, first))
        for name in names
    ]


def directions(found: Sequence[CarryOverResult]) -> Iterator[tuple[str, list[CarryOverResult]]]:
    """The networks by direction."""
    for way in dict.fromkeys((each.recorded_on, each.gpu) for each in found):
        yield f"{way[0]} to {way[1]}", [each for each in found if (each.recorded_on, each.gpu) == way]


def within_limits(found: Sequence[CarryOverResult]) -> bool:
    """Whether kernels and networks are within their limits, in each direction."""
    return all(
        _median(_of(group, "kernels")) <= KERNEL_LIMIT and _median(_of(group, "networks")) <= NETWORK_LIMIT
        for _, group in directions(found)
    )


def _of(group: Sequence[CarryOverResult], which: str, predictor: Predictor = "carried over") -> Floats:
    """Absolute errors of all kernels, or of the networks."""
    kernels, network = {
        "carried over": ("kernels", "network_ratio"),
        "uncached": ("uncached", "network_uncached"),
        "unchanged": ("unchanged", "network_unchanged"),
    }[predictor]
    if which == "networks":
        ratios = np.array([getattr(each, network) for each in group])
    else:
        ratios = np.concatenate([getattr(each, kernels) for each in group])
    return np.abs(ratios - 1.0)


def _median(errors: Floats) -> float:
    return float(np.median(errors))


def summary(found: Sequence[CarryOverResult]) -> Table:
    """Errors of kernels and networks by direction, beside taking times as they are."""
    rows = []
    for way, group in directions(found):
        for which, limit in (("kernels", KERNEL_LIMIT), ("networks", NETWORK_LIMIT)):
            errors = _of(group, which)
            verdict = "holds" if _median(errors) <= limit else "misses"
            rows.append(
                [
                    way,
                    which,
                    str(len(errors)),
                    SHARE.format(_median(errors)),
                    SHARE.format(np.quantile(errors, 0.9)),
                    SHARE.format(limit),
                    verdict,
                    *(
                        SHARE.format(value)
                        for rival in (_of(group, which, "uncached"), _of(group, which, "unchanged"))
                        for value in (_median(rival), np.quantile(rival, 0.9))
                    ),
                ]
            )
    heads = ["from and to", "of", "number", "error, median", "p90", "limit", ""]
    heads += ["without the L2, median", "p90", "unchanged, median", "p90"]
    note = "*Without the L2*: of workloads whose L2 was not recorded. *Unchanged*: times of the other GPU as they are."
    return Table("Errors", heads, rows, note=note)


def by_length(found: Sequence[CarryOverResult]) -> Table:
    """The errors of kernels by how long they are: ratios of predicted to recorded times."""
    rows = []
    for way, group in directions(found):
        lengths = np.concatenate([each.lengths_us for each in group])
        predicted = np.concatenate([each.kernels for each in group])
        recorded = 1.0 / np.concatenate([each.unchanged for each in group])
        for name, inside in (
            (f"below {SHORT_US:g} us", lengths < SHORT_US),
            (f"{SHORT_US:g} to {LONG_US:g} us", (lengths >= SHORT_US) & (lengths < LONG_US)),
            (f"{LONG_US:g} us and more", lengths >= LONG_US),
        ):
            if inside.any():
                changes = predicted[inside] * recorded[inside]
                rows.append(
                    [way, name, str(int(inside.sum())), *(_spread(values) for values in (recorded[inside], changes))]
                )
    note = "By how much times change from the first GPU to the second: 10th, 50th and 90th percentile of kernels."
    return Table("Kernels by length", ["from and to", "length", "kernels", "recorded", "carried over"], rows, note=note)


def _spread(ratios: Floats) -> str:
    return " / ".join(SIGNED.format(value - 1.0) for value in np.quantile(ratios, [0.1, 0.5, 0.9]))


def networks(found: Sequence[CarryOverResult]) -> Table:
    """A row a network and direction."""
    rows = [
        [
            each.network,
            f"{each.recorded_on} to {each.gpu}",
            f"{len(each.kernels)} of {each.distinct}",
            SHARE.format(_median(np.abs(each.kernels - 1.0))),
            SIGNED.format(each.network_ratio - 1.0),
            SIGNED.format(each.network_unchanged - 1.0),
        ]
        for each in found
    ]
    heads = ["network", "from and to", "kernels compared", "error of a kernel, median", "network", "unchanged"]
    return Table(
        "Networks", heads, rows, note="*Network*: all kernels of an iteration together, against the recording."
    )


def markdown(found: Sequence[CarryOverResult], measured: products.Measured | None, command: str) -> str:
    """The page of carried times, Markdown: networks of two GPUs, and products of several, if there are any."""
    return page(
        "carry-over.md.j2",
        products=None if measured is None else products.page_of(measured),
        holds=within_limits(found),
        summary=summary(found),
        lengths=by_length(found),
        networks=networks(found),
        command=command,
        worst=SHARE.format(max(_median(_of(group, "networks")) for _, group in directions(found))),
        kernels=SHARE.format(max(_median(_of(group, "kernels")) for _, group in directions(found))),
        rivals={
            predictor: {
                which: SHARE.format(max(_median(_of(group, which, predictor)) for _, group in directions(found)))
                for which in ("networks", "kernels")
            }
            for predictor in ("uncached", "unchanged")
        },
        count=len(found) // 2,
        gpus=[load_gpu(name) for name in dict.fromkeys(each.gpu for each in found)],
    )
