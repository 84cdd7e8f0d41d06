"""The synthetic kernels of a recording: their parameters, and how new ones are drawn."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Annotated, Final, Literal

import msgspec
import numpy as np
from msgspec import Meta

KINDS: Final = ("compute", "memory", "mixed")
LOOPS: Final = {"compute": (16, 0), "memory": (0, 4), "mixed": (16, 1)}
"""Of each kind, turns of four multiply-adds and loads that an iteration has."""
CHAINS: Final = 4
FLOP_PER_FMA: Final = 2
BYTES_PER_LOAD: Final = 16
BLOCKS: Final = (64, 128, 256, 512, 1024)
"""Threads a block."""
GRIDS: Final = (4, 16, 100, 200, 800)
WAVES: Final = (0.25, 0.5, 1, 2, 3, 4, 8, 16, 32)
"""Grids as multiples of the SMs."""
SHARED: Final = (32768, 73728, 112640, 204800)
"""Dynamic shared memory a block, where it has any, bytes."""
SHARED_SHARE: Final = 0.5
"""Of kernels that have any."""
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
    """Blocks."""
    block: Annotated[int, Meta(ge=1, le=1024)]
    """Threads of each."""
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
