"""Kernels that add to drawn places, and chains of short kernels behind long grids: the rows of ``scatters.jsonl``.

What is asked: how long such a kernel takes alone by places, blocks and threads; what it costs others, and they it; how
soon a kernel behind a long grid gets in, equal or urgent, by what of an SM it needs; and which SMs a grid takes that
comes while another one runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from gpusched_env.experiments.record.gpu import CupyRecorder, StreamedKernel
from gpusched_env.experiments.record.library import Blocks, Spec, figures, medians

SCATTERS: Final = "scatters"
WORDS: Final = 1 << 28
"""Of the table: a gigabyte."""
WORD_ADDS, ROW_ADDS, ROW_COPIES, ROW_READS = 0, 1, 2, 3
REPETITIONS: Final = 4
URGENT: Final = -5
LINKS: Final = 24
"""Kernels of a chain."""
LONG_US, CHAIN_US = 20.0, 120.0
"""When the stream of a long grid is released, and that of the chain beside it."""
MOST_BLOCKS: Final = 4096
"""Grids of more blocks are told by figures alone."""


class ScatterKernel(Spec, frozen=True, kw_only=True):
    """A kernel ``scatter`` of ``work.cu``; ``fma`` and ``load`` are 0."""

    spread: int = 1
    access: int = ROW_ADDS
    uneven: int = 0


def adding(grid: int, block: int, iters: int, spread: int, access: int = ROW_ADDS, uneven: int = 0) -> ScatterKernel:
    """A kernel that adds to, or reads, places that it draws."""
    return ScatterKernel(
        kind="memory", grid=grid, block=block, smem=0, iters=iters, fma=0, load=0,
        spread=spread, access=access, uneven=uneven,
    )  # fmt: skip


def computing(grid: int, block: int, iters: int, smem: int = 0) -> Spec:
    """A kernel of arithmetic."""
    return Spec(kind="compute", grid=grid, block=block, smem=smem, iters=iters, fma=16, load=0)


def loading(grid: int, block: int, iters: int) -> Spec:
    """A kernel that streams from memory."""
    return Spec(kind="memory", grid=grid, block=block, smem=0, iters=iters, fma=0, load=4)


class ScatterSituation(NamedTuple):
    """Launches that are recorded together."""

    what: str
    launches: tuple[StreamedKernel, ...]


def situations(sms: int, most_shared: int) -> list[ScatterSituation]:
    """All that is recorded, on a GPU of so many SMs whose blocks can have so many bytes of shared memory."""
    return [*_alone(sms), *_side_by_side(sms), *_chains(sms, most_shared), *_packing(sms, most_shared)]


def _single(kernel: Spec) -> ScatterSituation:
    return ScatterSituation("alone", (StreamedKernel(kernel, delay_us=LONG_US),))


def _alone(sms: int) -> Iterator[ScatterSituation]:
    for access, spread in itertools.product((0, 1, 2, 3), (1, 32, 1 << 10, 1 << 15, 1 << 18, 1 << 23)):
        iters = 32 if spread <= 32 and access == WORD_ADDS else 128
        for grid in (1, sms, 8 * sms, 32 * sms):
            yield _single(adding(grid, 256, iters, spread, access))
    # Short blocks of few warps: how quickly are they handed out?
    for block, iters in itertools.product((32, 64, 128, 256), (1, 2, 4, 8, 16)):
        yield _single(adding(4096 * sms, block, iters, 1 << 23, ROW_READS))
        yield _single(computing(4096 * sms, block, iters))


def _side_by_side(sms: int) -> Iterator[ScatterSituation]:
    others = [
        adding(4 * sms, 256, 256, 1 << 18), adding(4 * sms, 256, 64, 32), adding(4 * sms, 256, 256, 1 << 23, ROW_READS),
        computing(4 * sms, 256, 400), loading(4 * sms, 256, 40), computing(sms // 2, 256, 400),
    ]  # fmt: skip
    kinds = ((32, ROW_ADDS), (1 << 15, ROW_ADDS), (1 << 18, ROW_ADDS), (1 << 18, WORD_ADDS), (1 << 23, ROW_COPIES))
    for spread, access in kinds:
        for other in others:
            one = adding(8 * sms, 256, 256, spread, access)
            yield ScatterSituation("pair", (StreamedKernel(one, 0, 0, LONG_US), StreamedKernel(other, 1, 0, LONG_US)))


def long_grids(sms: int) -> list[Spec]:
    """Grids of thousands of blocks that take a millisecond or more."""
    return [
        adding(12_288 * sms, 32, 4, 1 << 23, ROW_READS),
        computing(12_288 * sms, 32, 1),
        adding(64 * sms, 256, 512, 1 << 18),
        adding(64 * sms, 256, 512, 1 << 18, ROW_ADDS, 32),
        adding(64 * sms, 256, 256, 32),
        adding(64 * sms, 256, 512, 1 << 23, ROW_READS),
        computing(64 * sms, 256, 400),
        loading(64 * sms, 256, 80),
    ]


def short_kernels(sms: int, most_shared: int) -> list[Spec]:
    """Kernels of some microseconds: few blocks, many, and such as need much of an SM, or all of it."""
    return [
        computing(4, 256, 40), computing(sms, 256, 40), loading(sms // 2, 256, 4), loading(4 * sms, 256, 4),
        computing(12, 384, 20, most_shared * 3 // 5), computing(sms * 3 // 4, 384, 20, most_shared),
        computing(sms // 3, 128, 20, most_shared // 3),
    ]  # fmt: skip


def _chains(sms: int, most_shared: int) -> Iterator[ScatterSituation]:
    for short in short_kernels(sms, most_shared):
        yield ScatterSituation("chain alone", _chain(short, 0))
        for long, priority in itertools.product(long_grids(sms), (0, URGENT)):
            behind = StreamedKernel(long, 0, 0, LONG_US)
            yield ScatterSituation("chain", (behind, *_chain(short, priority)))


def _chain(short: Spec, priority: int) -> tuple[StreamedKernel, ...]:
    first = StreamedKernel(short, 1, priority, CHAIN_US)
    return (first, *[StreamedKernel(short, 1, priority)] * (LINKS - 1))


def _packing(sms: int, most_shared: int) -> Iterator[ScatterSituation]:
    """A grid that fits at once, and stays, comes a little after a kernel that has most SMs for itself."""
    stays = adding(8 * sms, 128, 2048, 1 << 18)
    for grid, after_us in itertools.product((sms // 4, sms * 3 // 4, sms), (0.0, 2.0, 6.0)):
        holds = computing(grid, 384, 40, most_shared)
        chain = [StreamedKernel(holds, 1, 0, LONG_US), *[StreamedKernel(holds, 1)] * (LINKS - 1)]
        yield ScatterSituation("packing", (StreamedKernel(stays, 0, 0, LONG_US + after_us), *chain))


def scatters_rows(gpu: CupyScatters, there: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows that are still missing: launches, figures of each (medians of repetitions), and every block of one
    repetition (start and end since the release, ns, and SM) where grids are small enough."""
    for what, launches in situations(gpu.sms, gpu.most_shared)[len(there) :]:
        runs, row = repeated(gpu, launches)
        told = [blocks.tolist() if len(blocks) <= MOST_BLOCKS else None for blocks in runs[0]]
        yield {"what": what, **row, "blocks": told}


def repeated(gpu: CupyRecorder, launches: Sequence[StreamedKernel]) -> tuple[list[list[Blocks]], dict[str, Any]]:
    """Launches several times, after one time that does not count: what blocks reported, and the fields of a row."""
    runs = [gpu.run(launches) for _ in range(1 + REPETITIONS)][1:]
    found = [[figures(run[place]) for run in runs] for place in range(len(launches))]
    return runs, {
        "launches": [
            {"stream": one.stream, "priority": one.priority, "delay_us": one.delay_us}
            | msgspec.structs.asdict(one.spec)
            for one in launches
        ],
        "measured": [medians(same) for same in found],
        "duration_us": [float(np.median([one.duration_us for one in same])) for same in found],
    }


class CupyScatters(CupyRecorder):
    """Runs both kernels of ``work.cu``."""

    def __init__(self, number: int = 0) -> None:
        super().__init__(number)
        with self._told():
            self._scatter = int(self._modules[0].get_function("scatter").ptr)
            self._table = self._cp.zeros(WORDS, np.float32)
            self._cp.cuda.runtime.deviceSynchronize()

    def _function(self, spec: Spec, stream: Any, copy: bool) -> int:
        return self._scatter if isinstance(spec, ScatterKernel) else super()._function(spec, stream, copy)

    def _given(self, spec: Spec) -> list[int]:
        if not isinstance(spec, ScatterKernel):
            return super()._given(spec)
        tail = [spec.iters | spec.spread << 32, spec.access | spec.uneven << 32]
        return [int(self._table.data.ptr), WORDS, int(self._sink.data.ptr), 0, 0, *tail]
