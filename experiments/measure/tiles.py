"""Measures kernels that synchronise their tiles on the GPU at hand: ``python -m`` this module, see ``--help``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import numpy as np
import typer

from gpusched_env.data.dependent_kernels import mlp_kernels
from gpusched_env.errors import GpuschedError, InputError
from gpusched_env.experiments.lib.files import write_file
from gpusched_env.experiments.measure.gpu import MeasuringGpu, RepetitionTimes, struct
from gpusched_env.experiments.measure.tile_rows import (
    POLICIES,
    STREAM,
    UNGUARDED,
    AloneTime,
    CostTime,
    PairTime,
    TileCase,
    TileMeasurements,
    TileRow,
    TileTables,
    Unmeasured,
    Work,
    predictions,
    tables_of,
)
from gpusched_env.hardware.specs import load_gpu, match_gpu

THREADS: Final = 256
SIDE: Final = 128
"""Elements of a tile, either way."""
DEPTH_OF_FIRST: Final = 2
"""Depth of the first product, in the second one's: GPT-3's hidden columns on one of eight GPUs are half its columns."""
SHARED: Final = {1: 120 * 1024, 2: 100 * 1024}
"""Bytes of shared memory of a block, by how many are to share an SM (of 227 KB)."""
WHOLE_SM: Final = 200 * 1024
"""Shared memory of a block beside which none of these fits, bytes."""
MOST_SHARED: Final = {"spin": SHARED[1], "product": SHARED[1], "occupy": WHOLE_SM}
NAMES: Final = ("spin", "product", "occupy", "wait_kernel")
GIVE_UP_US: Final = 30_000
LONGEST_US: Final = 400_000
"""Time that SMs are occupied, at most."""
LATER_NS: Final = 1_000_000
"""Time by which a producer is later whose consumer goes first."""
POSTED: Final = 1 << 30
"""Posts of a semaphore for which nobody waits any more."""
MODEL: Final = "gpt3_v100"


class TileKernels:
    """The kernels of ``tiles.cu``, two streams, and those SMs that are occupied.

    Raises:
        InputError: there is no CuPy, or no GPU.
    """

    def __init__(self, gpu: MeasuringGpu) -> None:
        self.gpu, cuda = gpu, gpu.cupy.cuda
        module = gpu.kernels(__package__, "tiles.cu", ("-std=c++17",))
        self.by_name = {name: module.get_function(name) for name in NAMES}
        for name, bytes_ in MOST_SHARED.items():
            self.by_name[name].max_dynamic_shared_size_bytes = bytes_
        self.mhz = gpu.recording().clock_mhz
        self.producing, self.consuming, self._occupying = (
            cuda.Stream(non_blocking=True, priority=priority) for priority in (-1, 0, -1)
        )
        self._forked, self._joined = ([cuda.Event(disable_timing=True) for _ in range(2)] for _ in range(2))
        self._released = self.zeros(1)
        self._times_occupied = 0

    def zeros(self, *shape: int) -> Any:
        """Integers on the GPU."""
        return self.gpu.array(np.zeros(shape, np.int32))

    def occupy(self, sms: int) -> None:
        """Let go the SMs that are occupied, and occupy so many."""
        self.release()
        if sms:
            self._times_occupied += 1
            arguments = (self._released, np.int32(self._times_occupied), np.int32(LONGEST_US))
            with self._occupying:
                self.by_name["occupy"]((sms,), (32,), arguments, shared_mem=WHOLE_SM)

    def release(self) -> None:
        """Let go the SMs that are occupied."""
        self._released.fill(self._times_occupied)

    def apart(self, work: Callable[[], None]) -> None:
        """Queue work of both streams, which begins when the current stream is there, and which that waits for."""
        current, streams = self.gpu.cupy.cuda.get_current_stream(), (self.producing, self.consuming)
        for stream, event in zip(streams, self._forked, strict=True):
            event.record(current)
            stream.wait_event(event)
        work()
        for stream, event in zip(streams, self._joined, strict=True):
            event.record(stream)
            current.wait_event(event)


def blocks_us(case: TileCase) -> tuple[float, float]:
    """How long blocks of a case that spin take: those of the producer and of the consumer on a V100, or less."""
    sms = load_gpu(MODEL.partition("_")[2]).sms
    first, second = (kernel.duration_us / kernel.waves(sms) for kernel in mlp_kernels(MODEL, case.tokens))
    return first / case.shorter, second / case.shorter


class TilePairOnGpu:
    """Both kernels of a case."""

    def __init__(self, kernels: TileKernels, case: TileCase, sms: int) -> None:
        """``sms``: of the GPU."""
        self.case, self._kernels, self._gpu = case, kernels, kernels.gpu
        self._occupied = sms - case.sms
        self._steps = case.producer[1]
        self._step_us = [us / self._steps for us in blocks_us(case)]
        self._early, self._gave_up, self._started = (kernels.zeros(1) for _ in range(3))
        self._ended = kernels.zeros(case.producer[0] * case.producer[1])
        self._round = 0
        self._shared = SHARED[case.per_sm]
        self._kernel = kernels.by_name[case.work]
        self._operands = self._matrices() if case.work == "product" else None

    def _matrices(self) -> list[Any]:
        """Operands and results of both products, of small integers, which are exact; and what is to come out."""
        rows, inner, outer = (SIDE * n for n in (self.case.producer[0], self.case.producer[1], self.case.consumer[1]))
        dice = np.random.default_rng(0)
        shapes = ((rows, DEPTH_OF_FIRST * inner), (DEPTH_OF_FIRST * inner, inner), (inner, outer))
        x, first, second = (self._gpu.array(dice.integers(-1, 2, of).astype(np.float32)) for of in shapes)
        between, result = (self._gpu.array(np.zeros(of, np.float32)) for of in ((rows, inner), (rows, outer)))
        return [x, first, between, second, result, (x @ first) @ second]

    def alone(self) -> list[AloneTime]:
        """Each kernel alone: neither posts nor waits."""
        return [
            AloneTime(case=self.case, role="producer", **asdict(self.one("producer", STREAM))),
            AloneTime(case=self.case, role="consumer", **asdict(self.one("consumer", STREAM))),
        ]

    def one(self, role: str, policy: str) -> RepetitionTimes:
        """The producer or the consumer alone under a policy, everything that it waits for being posted."""
        self._reset(tables_of(policy, self.case.producer, self.case.consumer), clear=False)
        self._semaphores.fill(POSTED)
        if role == "producer":
            return self._took(lambda: self._producer(posting=policy in POLICIES))
        return self._took(self._consumer)

    def pair(self, policy: str) -> PairTime:
        """Both under a policy."""
        kernels = self._kernels

        def in_order() -> None:
            with kernels.producing:
                self._producer(posting=False)
                self._consumer()

        def beside() -> None:
            with kernels.producing:
                self._producer(posting=policy in POLICIES)
            with kernels.consuming:
                self._wait_kernel()
                self._consumer()

        return self._pair_time(policy, policy, in_order if policy == STREAM else beside)

    def consumer_first(self, policy: str) -> PairTime:
        """The consumer before its producer: it takes all slots, and waits until it gives up."""
        kernels = self._kernels

        def work() -> None:
            with kernels.consuming:
                self._consumer()
            with kernels.producing:
                self._gpu.hold(LATER_NS)
                self._producer(posting=True)

        return self._pair_time(f"{policy}, consumer first", policy, work)

    def _pair_time(self, name: str, policy: str, work: Callable[[], None]) -> PairTime:
        self._reset(tables_of(policy, self.case.producer, self.case.consumer), clear=True)
        took = self._took(lambda: self._kernels.apart(work))
        right = None
        if self._operands:
            right = bool((self._operands[4] == self._operands[5]).all())
        early, gave_up = (int(count[0]) for count in (self._early, self._gave_up))
        return PairTime(case=self.case, policy=name, early=early, gave_up=gave_up, right=right, **asdict(took))

    def _reset(self, tables: TileTables, *, clear: bool) -> None:
        """``clear``: the first product before each run, so that nobody reads an earlier run's."""
        self._round, self._clear, self._tables = 0, clear, tables
        self._semaphores, self._post = self._kernels.zeros(tables.semaphores), self._gpu.array(tables.post)
        # A kernel's argument is an array; where nobody waits, of one number that nobody reads.
        self._awaited, self._before = (
            self._gpu.array(table if table.size else np.zeros(1, np.int32)) for table in (tables.awaited, tables.before)
        )
        for word in (self._early, self._gave_up, self._started, self._ended):
            word.fill(0)

    def _took(self, work: Callable[[], None]) -> RepetitionTimes:
        took = self._gpu.took(work, self._prepare)
        self._kernels.release()
        return took

    def _prepare(self) -> None:
        self._round += 1
        if self._operands and self._clear:
            self._operands[2].fill(0)
            self._operands[4].fill(0)
        self._kernels.occupy(self._occupied)

    def _producer(self, *, posting: bool) -> None:
        self._launch(self.case.producer, posting, consuming=False)

    def _consumer(self) -> None:
        self._launch(self.case.consumer, posting=False, consuming=True)

    def _launch(self, tiles: tuple[int, int], posting: bool, consuming: bool) -> None:
        rows, columns = tiles
        more: tuple[Any, ...]
        if self._operands:
            x, first, between, second, result, _ = self._operands
            a, b, c = (between, second, result) if consuming else (x, first, between)
            more = (a, b, c, np.int32(a.shape[1]))
        else:
            more = (np.int32(round(self._kernels.mhz * self._step_us[consuming])),)
        self._kernel(
            (columns, rows),
            (THREADS,),
            (self.struct(posting=posting, consuming=consuming), *more),
            shared_mem=self._shared,
        )

    def _wait_kernel(self) -> None:
        numbers = (self._started, np.int32(self._round), np.int32(GIVE_UP_US), self._gave_up)
        self._kernels.by_name["wait_kernel"]((1,), (1,), numbers)

    def struct(self, *, posting: bool, consuming: bool) -> Any:
        """The kernels' first argument."""
        return struct(
            {
                "semaphores": self._semaphores,
                "ended": self._ended,
                "started": self._started,
                "early": self._early,
                "gave_up": self._gave_up,
                "post": self._post,
                "awaited": self._awaited,
                "before": self._before,
                "posting": int(posting),
                "waits": self._tables.waits,
                "value": self._tables.value,
                "steps": self._steps,
                "columns": self._steps,
                "consuming": int(consuming),
                "round": self._round,
                "limit_us": GIVE_UP_US,
            }
        )


WAVES: Final = 20
STEPS: Final = 24
"""Tiles of a row of the producer, which a block waits for one after the other."""
COST_SHORTER: Final = 100
"""Blocks are so much shorter than a V100's: what they do besides is of no interest."""
QUEUED: Final = 8
"""Wait kernels one behind the other."""


def costs(kernels: TileKernels, sms: int) -> Iterator[CostTime]:
    """The times by which posting and waiting lengthen a block on each SM, wave after wave."""
    waiting = TilePairOnGpu(kernels, _cost_case((WAVES, STEPS), (WAVES, sms), sms), sms)
    posting = TilePairOnGpu(kernels, _cost_case((WAVES, sms), (WAVES, sms), sms), sms)
    yield _cost("post", posting.one("producer", "row"), posting.one("producer", STREAM), WAVES)
    yield _cost("wait", waiting.one("consumer", "tile"), waiting.one("consumer", STREAM), WAVES * STEPS)
    yield _cost("wait-kernel", _queued(kernels, QUEUED + 1), _queued(kernels, 1), QUEUED)


def _cost_case(producer: tuple[int, int], consumer: tuple[int, int], sms: int) -> TileCase:
    return TileCase(
        work="spin", tokens=1536, producer=producer, consumer=consumer, sms=sms, per_sm=1, shorter=COST_SHORTER
    )


def _queued(kernels: TileKernels, count: int) -> RepetitionTimes:
    """Wait kernels that have nothing to wait for."""
    flag, gave_up = kernels.zeros(1), kernels.zeros(1)
    arguments = (flag, np.int32(0), np.int32(GIVE_UP_US), gave_up)

    def work() -> None:
        for _ in range(count):
            kernels.by_name["wait_kernel"]((1,), (1,), arguments)

    return kernels.gpu.took(work)


def _cost(of: str, took: RepetitionTimes, without: RepetitionTimes, turns: int) -> CostTime:
    each = {name: round(max(0.0, us - without.median_us) / turns, 4) for name, us in asdict(took).items()}
    return CostTime(of=of, **each)


TOKENS: Final = (1536, 2048, 3072)
SHORTER: Final = 8
"""The factor by which blocks are shorter in further cases, where synchronising costs more of their time."""


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
    kernels = TileKernels(gpu)
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


def _of(kernels: TileKernels, case: TileCase, sms: int) -> Iterator[TileRow]:
    there = TilePairOnGpu(kernels, case, sms)
    yield from there.alone()
    for policy in (STREAM, *POLICIES, UNGUARDED):
        yield there.pair(policy)
    yield there.consumer_first(UNGUARDED)
    if case == cases(sms)[0]:
        yield there.consumer_first("row")


def cases(sms: int) -> list[TileCase]:
    """All that are measured on a GPU of so many SMs, what matters most first."""
    there = load_gpu(MODEL.partition("_")[2]).sms
    few = [there] if there < sms else []
    return [
        *(_case("spin", tokens, on) for on in (sms, *few) for tokens in TOKENS),
        *(_case("product", tokens, on) for on in (sms, *few) for tokens in TOKENS),
        *(_case("spin", tokens, sms, shorter=SHORTER) for tokens in TOKENS),
        *(_case("spin", tokens, sms, per_sm=2) for tokens in TOKENS),
    ]


def _case(work: Work, tokens: int, sms: int, per_sm: int = 1, shorter: int = 1) -> TileCase:
    producer, consumer = ((kernel.rows, kernel.columns) for kernel in mlp_kernels(MODEL, tokens))
    return TileCase(
        work=work, tokens=tokens, producer=producer, consumer=consumer, sms=sms, per_sm=per_sm, shorter=shorter
    )


if __name__ == "__main__":
    typer.run(measure)
