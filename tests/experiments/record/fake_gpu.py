"""A GPU that needs none: kernels take a time of their own, one after the other in a stream and beside other streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpusched_env.experiments.record.gpu import StreamedKernel
from gpusched_env.experiments.record.library import Blocks, Spec

FLAG_NS, GAP_NS = 4000, 2000
"""From a raised flag to a start, and from a kernel to the next."""


def block_ns(spec: Spec) -> int:
    """Of a block: what an iteration costs, about as on an H100."""
    return 500 + round(spec.iters * (10 * spec.fma + 490 * spec.load))


class FakeGpu:
    """See :class:`gpusched_env.experiments.record.gpu.CupyRecorder`."""

    def __init__(self, sms: int = 132, most_shared: int = 232_448, fail_after: int | None = None) -> None:
        self.head: dict[str, Any] = {"gpu": "fake", "sms": sms, "cupy": "0", "cuda": 0, "driver": 0, "work_regs": 26}
        self.sms, self.most_shared, self.regs = sms, most_shared, 26
        self.runs: list[tuple[StreamedKernel, ...]] = []
        self.fail_after = fail_after
        """Runs after which someone interrupts."""

    def run(self, launches: Sequence[StreamedKernel]) -> list[Blocks]:
        if self.fail_after is not None and len(self.runs) >= self.fail_after:
            raise KeyboardInterrupt
        self.runs.append(tuple(launches))
        free: dict[int, int] = {}
        found = []
        for launch in launches:
            if launch.delay_us is not None:
                free[launch.stream] = round(1e3 * launch.delay_us) + FLAG_NS - GAP_NS
            start = free[launch.stream] + GAP_NS
            number = np.arange(launch.spec.grid)
            # Two blocks at a time on an SM.
            begins = start + number // (2 * self.sms) * block_ns(launch.spec)
            blocks = np.stack([begins, begins + block_ns(launch.spec), number % self.sms], axis=1)
            free[launch.stream] = int(blocks[:, 1].max())
            found.append(blocks)
        return found

    def event_gap_ns(self, spec: Spec) -> float:
        return 3700.0

    def host_us(self, spec: Spec, count: int) -> float:
        return 5.0

    def synchronised_us(self, spec: Spec) -> float:
        return 11.0
