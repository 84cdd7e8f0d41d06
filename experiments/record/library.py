"""The synthetic kernels of a recording: their parameters, what runs together, and what their blocks report."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from gpusched_env.experiments.validate.recordings import ValidatedLaunch

KINDS: Final = ("compute", "memory", "mixed")
LOOPS: Final = {"compute": (16, 0), "memory": (0, 4), "mixed": (16, 1)}
"""Turns of four multiply-adds and loads that an iteration of each kind has."""
CHAINS: Final = 4
FLOP_PER_FMA: Final = 2
BYTES_PER_LOAD: Final = 16
BLOCKS: Final = (64, 128, 256, 512, 1024)
"""Threads a block, of drawn kernels."""
GRIDS: Final = (4, 16, 100, 200, 800)
WAVES: Final = (0.25, 0.5, 1, 2, 3, 4, 8, 16, 32)
"""Grids as multiples of the SMs."""
SHARED: Final = (32768, 73728, 112640, 204800)
"""Dynamic shared memory a block, where it has any, bytes."""
SHARED_SHARE: Final = 0.5
"""Share of kernels that have any."""
LONG_US: Final = (10.0, 2000.0)
SHORT_US: Final = (4.0, 80.0)
"""Durations alone that are aimed at, from and to."""
PILOTS: Final = (8, 40)
"""Iterations of two launches that an iteration's time is read off."""
LEAST_ITERATION_US: Final = 1e-3
MOST_ITERS: Final = 100_000

Count = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[int, Meta(ge=0)]


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """A synthetic kernel: what each of its threads does, and how many there are (``work.cu``)."""

    kind: Literal["compute", "memory", "mixed"]
    grid: Count
    """Blocks of the grid."""
    block: Annotated[int, Meta(ge=1, le=1024)]
    """Threads of each block."""
    smem: NotNegative
    """Dynamic shared memory a block, bytes."""
    iters: Count
    fma: NotNegative
    """Turns an iteration of one multiply-add on each of four chains."""
    load: NotNegative
    """Loads of 16 bytes an iteration."""

    def work(self, regs: int) -> dict[str, object]:
        """The fields of its row: all of its own, registers and known work a block."""
        threads_iters = self.block * self.iters
        return msgspec.structs.asdict(self) | {
            "regs": regs,
            "flop_per_block": threads_iters * self.fma * CHAINS * FLOP_PER_FMA,
            "dram_bytes_per_block": threads_iters * self.load * BYTES_PER_LOAD,
        }


class Named(Spec, frozen=True, kw_only=True):
    """A kernel of a library, as another recording has it."""

    id: str


def generator(seed: int, *what: str | int) -> np.random.Generator:
    """Draws for one thing of a recording: they depend on nothing else that is drawn."""
    return np.random.default_rng([seed, *(zlib.crc32(str(part).encode()) for part in what)])


def draw(
    kernel: str,
    seed: int,
    sms: int,
    most_shared: int,
    duration_us: tuple[float, float],
    measure: Callable[[Spec], float],
) -> Spec:
    """A kernel of the library: its shape is drawn, and its iterations are those that take as long as was drawn.

    A large grid may take longer with a single iteration.

    Args:
        kernel: its id, a letter and a number; kinds take turns.
        seed: of the recording.
        sms: of the GPU.
        most_shared: dynamic shared memory that a block can have there, bytes.
        duration_us: range that its duration is drawn from, log-uniform.
        measure: duration of a kernel alone, us.
    """
    rng = generator(seed, "kernel", kernel)
    kind = KINDS[int(kernel[1:]) % len(KINDS)]
    fma, load = LOOPS[kind]
    grids = sorted({*GRIDS, *(max(1, round(waves * sms)) for waves in WAVES)})
    shared = [size for size in SHARED if size <= most_shared]
    pilot = Spec(
        kind=kind,  # type: ignore[arg-type]
        grid=int(rng.choice(grids)),
        block=int(rng.choice(BLOCKS)),
        smem=int(rng.choice(shared)) if shared and rng.random() < SHARED_SHARE else 0,
        iters=PILOTS[0],
        fma=fma,
        load=load,
    )
    wanted_us = float(np.exp(rng.uniform(*np.log(duration_us))))
    fewer, more = PILOTS
    short_us, long_us = (measure(msgspec.structs.replace(pilot, iters=iters)) for iters in PILOTS)
    each_us = max((long_us - short_us) / (more - fewer), LEAST_ITERATION_US)
    iters = fewer + round((wanted_us - short_us) / each_us)
    return msgspec.structs.replace(pilot, iters=min(max(1, iters), MOST_ITERS))


def sweep(sms: int, most_shared: int) -> list[Spec]:
    """Nine kernels, each with a grid from one block to 64 a SM in quarters of a wave."""
    few = [1, 7, 13, 19]
    quarters = [max(1, round(sms * n / 4)) for n in range(1, 43)]
    grids = sorted({*few, *quarters, 16 * sms, 32 * sms, 64 * sms})
    shapes = [(256, 0), (1024, 0), (256, min(102_400, most_shared))]
    iters = {"compute": 400, "memory": 40, "mixed": 100}
    return [
        Spec(kind=kind, grid=grid, block=block, smem=smem, iters=iters[kind], fma=fma, load=load)  # type: ignore[arg-type]
        for kind, (fma, load) in LOOPS.items()
        for block, smem in shapes
        for grid in grids
    ]


Blocks = NDArray[np.int64]
"""(blocks, 3) of one launch: start and end, ns since the release of all streams, and the SM."""


@dataclass(frozen=True, slots=True)
class BlockFigures:
    """The figures of one launch; times in us since the release."""

    start_us: float
    """Start of the first block."""
    end_us: float
    """End of the last block."""
    block_us: float
    """Mean residency of a block."""
    block_us_p95: float
    last_start_us: float
    sms: float
    """The number of SMs that had a block."""

    @property
    def duration_us(self) -> float:
        return self.end_us - self.start_us


NAMES = tuple(BlockFigures.__dataclass_fields__)


def figures(blocks: Blocks) -> BlockFigures:
    """The figures of one launch in one repetition."""
    start, end, sm = blocks.T
    resident = end - start
    return BlockFigures(
        start_us=start.min() / 1e3,
        end_us=end.max() / 1e3,
        block_us=resident.mean() / 1e3,
        block_us_p95=float(np.percentile(resident, 95)) / 1e3,
        last_start_us=start.max() / 1e3,
        sms=float(len(np.unique(sm))),
    )


def medians(repetitions: Sequence[BlockFigures]) -> dict[str, float]:
    """Median of every figure of one launch over its repetitions, us with three decimals."""
    return {name: _rounded(np.median([getattr(one, name) for one in repetitions])) for name in NAMES}


def measured(repetitions: Sequence[Sequence[BlockFigures]]) -> dict[str, Any]:
    """The fields ``measured`` and ``end_min_max_us`` of a scenario's row.

    Args:
        repetitions: figures of every launch, in each of them.
    """
    by_launch = list(zip(*repetitions, strict=True))
    ends = [[one.end_us for one in launch] for launch in by_launch]
    return {
        "measured": [medians(launch) for launch in by_launch],
        "end_min_max_us": [[_rounded(min(each)), _rounded(max(each))] for each in ends],
    }


def solo(repetitions: Sequence[BlockFigures]) -> dict[str, float]:
    """The field ``solo`` of a kernel's row: medians over its repetitions."""
    found = medians(repetitions)
    duration_us = _rounded(np.median([one.duration_us for one in repetitions]))
    return {"duration_us": duration_us, **{name: found[name] for name in ("block_us", "block_us_p95", "sms")}}


def _rounded(value_us: Any) -> float:
    return round(float(value_us), 3)


FIRST_US: Final = 20.0
"""Delay of a pair's first kernel."""
OVERLAPS: Final = (0.0, 0.25, 0.5)
"""Share of the first kernel's duration alone after which the second one of a pair comes."""
URGENT: Final = -5
URGENT_SHARE: Final = 1 / 3
"""Share of pairs and sequences with priorities."""
PRIORITIES: Final = (0, -1, URGENT)
"""Priorities of the streams of a mix that has any; every other mix has none."""
MIX_STREAMS: Final = (2, 8)
MIX_LAUNCHES: Final = (1, 4)
"""Launches of a stream of a mix, from and to."""
MIX_DELAYS_US: Final = (20.0, 620.0)
SEQUENCE_STREAMS: Final = (2, 5)
SEQUENCE_LAUNCHES: Final = (15, 50)
SEQUENCE_KERNELS: Final = 6
"""Kernels that a stream of a sequence repeats."""
SEQUENCE_DELAYS_US: Final = (20.0, 320.0)


def pair(number: int, seed: int, kernels: Mapping[str, float]) -> list[ValidatedLaunch]:
    """Two kernels on two streams; the second comes with the first or while it runs, a third of them with priority.

    Args:
        number: of the scenario.
        seed: of the recording.
        kernels: durations alone (us) by id.
    """
    rng = generator(seed, "pair", number)
    first, second = (str(name) for name in rng.choice(list(kernels), 2))
    later_us = round(FIRST_US + float(rng.choice(OVERLAPS)) * kernels[first], 1)
    urgency = URGENT if rng.random() < URGENT_SHARE else 0
    return [
        ValidatedLaunch(stream=0, priority=0, delay_us=FIRST_US, kernel=first),
        ValidatedLaunch(stream=1, priority=urgency, delay_us=later_us, kernel=second),
    ]


def mix(number: int, seed: int, kernels: Sequence[str]) -> list[ValidatedLaunch]:
    """Two to eight streams of one to four kernels each; ``kernels``: ids to draw from."""
    rng = generator(seed, "mix", number)
    urgent = rng.random() < 0.5
    launches = []
    for stream in range(rng.integers(*MIX_STREAMS, endpoint=True)):
        priority = int(rng.choice(PRIORITIES)) if urgent else 0
        names = rng.choice(list(kernels), rng.integers(*MIX_LAUNCHES, endpoint=True)).tolist()
        delay_us = round(float(rng.uniform(*MIX_DELAYS_US)), 1)
        launches += _stream(stream, priority, delay_us, names)
    return launches


def sequence(number: int, seed: int, kernels: Sequence[str]) -> list[ValidatedLaunch]:
    """Two to five streams that each repeat six short kernels in any order; ``kernels``: ids to draw from."""
    rng = generator(seed, "sequence", number)
    urgent = rng.random() < URGENT_SHARE
    launches = []
    for stream in range(rng.integers(*SEQUENCE_STREAMS, endpoint=True)):
        priority = int(rng.choice((0, URGENT))) if urgent else 0
        own = rng.choice(list(kernels), min(SEQUENCE_KERNELS, len(kernels)), replace=False)
        names = rng.choice(own, rng.integers(*SEQUENCE_LAUNCHES, endpoint=True)).tolist()
        delay_us = round(float(rng.uniform(*SEQUENCE_DELAYS_US)), 1)
        launches += _stream(stream, priority, delay_us, names)
    return launches


def _stream(stream: int, priority: int, delay_us: float, names: Sequence[str]) -> list[ValidatedLaunch]:
    """Kernels that queue behind each other."""
    return [
        ValidatedLaunch(stream=stream, priority=priority, delay_us=None if place else delay_us, kernel=name)
        for place, name in enumerate(names)
    ]
