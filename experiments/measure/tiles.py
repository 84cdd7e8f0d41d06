"""Measures kernels that synchronise their tiles on the GPU at hand: ``python -m`` this module, see ``--help``.

Grids are those of GPT-3's MLP with 1,536, 2,048 and 3,072 tokens, as cuSync measured them on a V100 without split-K:
on all SMs of this GPU, and on as many as a V100 has, the others being occupied. Gains are predicted from the times of
the kernels alone and the costs of a post and a wait, and stand beside the measured ones.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from gpusched_env.data.dependent_kernels import mlp_kernels
from gpusched_env.errors import GpuschedError, InputError
from gpusched_env.experiments.lib.files import write_file
from gpusched_env.experiments.measure.gpu import MeasuringGpu
from gpusched_env.experiments.measure.tile_costs import costs
from gpusched_env.experiments.measure.tile_kernels import MODEL, Kernels, OnGpu
from gpusched_env.experiments.measure.tile_prediction import predictions
from gpusched_env.experiments.measure.tile_rows import Case, TileMeasurements, TileRow, Unmeasured, Work
from gpusched_env.experiments.measure.tile_tables import POLICIES, STREAM, UNGUARDED
from gpusched_env.hardware.products import match_gpu
from gpusched_env.hardware.specs import load_gpu

TOKENS: Final = (1536, 2048, 3072)
SHORTER: Final = 8
"""By which blocks are shorter in further cases, where synchronising costs more of their time."""


def measure(
    json: Annotated[Path, typer.Option(metavar="PATH", help="Write the measurements there, after each case again.")],
    limit_s: Annotated[float, typer.Option(help="Begin no case after so many seconds.")] = 150.0,
) -> None:
    """Measure producers and consumers with tile semaphores, and predict their gains."""
    try:
        gpu = MeasuringGpu()
        head = _head(gpu)
        rows: list[TileRow] = []

        def add(more: Iterator[TileRow]) -> None:
            for row in more:
                typer.echo(msgspec.json.encode(row))
                rows.append(row)
                write_file(json, msgspec.structs.replace(head, rows=rows).encoded(), "--json")

        add(measured(gpu, head.sms, time.monotonic() + limit_s))
        add(predictions(rows, match_gpu(head.gpu, "this machine")))
    except InputError as error:
        sys.exit(f"error: {error}")


def _head(gpu: MeasuringGpu) -> TileMeasurements:
    recording = msgspec.structs.asdict(gpu.recording())
    return TileMeasurements(**{name: recording[name] for name in recording if name not in ("schema", "rows")})


def measured(gpu: MeasuringGpu, sms: int, until_s: float) -> Iterator[TileRow]:
    """Costs, then all cases that begin in time (``until_s``: of the monotonic clock)."""
    kernels = Kernels(gpu)
    yield from _each("costs", lambda: costs(kernels, sms))
    for case in cases(sms):
        name = f"{case.work}, {case.tokens} tokens, {case.sms} SMs, {case.per_sm} a SM, 1/{case.shorter}"
        if time.monotonic() > until_s:
            yield Unmeasured(left_out=name, why="no time was left")
            continue
        yield from _each(name, lambda case=case: _of(kernels, case, sms))  # type: ignore[misc]


def _each(name: str, work: Callable[[], Iterator[Any]]) -> Iterator[TileRow]:
    """What ``work`` yields; what the GPU or its driver says where that fails is a row."""
    try:
        yield from work()
    except GpuschedError:
        raise
    except Exception as error:
        yield Unmeasured(left_out=name, why=f"{type(error).__name__}: {error}"[:500])


def _of(kernels: Kernels, case: Case, sms: int) -> Iterator[TileRow]:
    there = OnGpu(kernels, case, sms)
    yield from there.alone()
    for policy in (STREAM, *POLICIES, UNGUARDED):
        yield there.pair(policy)
    yield there.consumer_first(UNGUARDED)
    if case == cases(sms)[0]:
        yield there.consumer_first("row")


def cases(sms: int) -> list[Case]:
    """All that are measured on a GPU of so many SMs, what matters most first."""
    there = load_gpu(MODEL.partition("_")[2]).sms
    few = [there] if there < sms else []
    return [
        *(_case("spin", tokens, on) for on in (sms, *few) for tokens in TOKENS),
        *(_case("product", tokens, on) for on in (sms, *few) for tokens in TOKENS),
        *(_case("spin", tokens, sms, shorter=SHORTER) for tokens in TOKENS),
        *(_case("spin", tokens, sms, per_sm=2) for tokens in TOKENS),
    ]


def _case(work: Work, tokens: int, sms: int, per_sm: int = 1, shorter: int = 1) -> Case:
    producer, consumer = ((kernel.rows, kernel.columns) for kernel in mlp_kernels(MODEL, tokens))
    return Case(work=work, tokens=tokens, producer=producer, consumer=consumer, sms=sms, per_sm=per_sm, shorter=shorter)


if __name__ == "__main__":
    typer.run(measure)
