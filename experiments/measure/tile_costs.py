"""What a post, a wait and the wait kernel cost: the same code as in the pairs, and nothing to wait for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from gpusched_env.experiments.measure.gpu import Took
from gpusched_env.experiments.measure.tile_kernels import GIVE_UP_US, Kernels, OnGpu
from gpusched_env.experiments.measure.tile_rows import Case, CostTime, times
from gpusched_env.experiments.measure.tile_tables import STREAM

WAVES: Final = 20
STEPS: Final = 24
"""Tiles of a row of the producer, which a block waits for one after the other."""
SHORTER: Final = 100
"""Blocks are so much shorter than a V100's: what they do besides is of no interest."""
QUEUED: Final = 8
"""Wait kernels one behind the other."""


def costs(kernels: Kernels, sms: int) -> Iterator[CostTime]:
    """Of a block on each SM, wave after wave: by how much posting and waiting lengthen it."""
    waiting = OnGpu(kernels, _case((WAVES, STEPS), (WAVES, sms), sms), sms)
    posting = OnGpu(kernels, _case((WAVES, sms), (WAVES, sms), sms), sms)
    yield _cost("post", posting.one("producer", "row"), posting.one("producer", STREAM), WAVES)
    yield _cost("wait", waiting.one("consumer", "tile"), waiting.one("consumer", STREAM), WAVES * STEPS)
    yield _cost("wait-kernel", _queued(kernels, QUEUED + 1), _queued(kernels, 1), QUEUED)


def _case(producer: tuple[int, int], consumer: tuple[int, int], sms: int) -> Case:
    return Case(work="spin", tokens=1536, producer=producer, consumer=consumer, sms=sms, per_sm=1, shorter=SHORTER)


def _queued(kernels: Kernels, count: int) -> Took:
    """Wait kernels that have nothing to wait for."""
    flag, gave_up = kernels.zeros(1), kernels.zeros(1)
    arguments = (flag, np.int32(0), np.int32(GIVE_UP_US), gave_up)

    def work() -> None:
        for _ in range(count):
            kernels.by_name["wait_kernel"]((1,), (1,), arguments)

    return kernels.gpu.took(work)


def _cost(of: str, took: Took, without: Took, turns: int) -> CostTime:
    each = {name: round(max(0.0, us - without.median_us) / turns, 4) for name, us in times(took).items()}
    return CostTime(of=of, **each)
