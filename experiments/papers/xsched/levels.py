"""How long a queue of equal kernels takes to be off the GPU once it is suspended, at XSched's three levels."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from gpusched_env.baselines.xsched import XSched
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import situation, tenant
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.view import PendingColumn, TenantColumn, View
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

Level = Literal[1, 2, 3]
GPU: Final = "v100-sxm"
KERNELS, BLOCKS, THREADS = 64, 64, 64
"""Of the artefact's loop: kernels before it synchronises, and what each is."""
THRESHOLD, BATCH = 8, 4
PAUSE_US: Final = 800.0
"""Suspensions come 0 to 1 of these after the queue was resumed, resumptions 1 to 2 after it is off the GPU."""
SUSPENSIONS: Final = 300
TIMING: Final = load_gpu(GPU).timing
RETURN_US: Final = TIMING.sync_latency_us
"""The call that suspends ends by a synchronisation."""
SIGNAL_US: Final = TIMING.launch_latency_us + TIMING.sync_latency_us
"""At level 3 it waits before until the flag in device memory is written."""


class Suspended(XSched):
    """XSched's queue, suspended and resumed at random times instead of by a policy."""

    def __init__(self, level: Level) -> None:
        super().__init__(threshold=THRESHOLD, batch=BATCH, level=level, interrupt="reset")
        self.latencies_us: list[float] = []

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Runs, and is suspended soon."""
        super().reset(knowledge, rng)
        self.waits_for = None
        self._urgent = [False]
        self._rng = rng
        self._changes_us = PAUSE_US
        """When it is suspended or resumed next; ``inf``: when its kernels are off the GPU."""
        self._suspended_us = math.inf

    def decide(self, view: View) -> Command:
        """As any queue of XSched."""
        if view.time_us >= self._changes_us:
            resumes = self._suspended_us < math.inf
            self._suspended_us = math.inf if resumes else view.time_us
            self._changes_us = view.time_us + self._rng.uniform(0.0, PAUSE_US) if resumes else math.inf
        if self._changes_us == math.inf and is_off(view):
            signal_us = SIGNAL_US if self._level == 3 else 0.0
            self.latencies_us.append(view.time_us - self._suspended_us + signal_us + RETURN_US)
            self._changes_us = view.time_us + self._rng.uniform(PAUSE_US, 2.0 * PAUSE_US)
        return super().decide(view)

    def _resumed(self, view: View) -> tuple[set[int], float]:
        return ({0} if self._suspended_us == math.inf else set()), self._changes_us


def is_off(view: View) -> bool:
    """Whether nothing runs, nor will: what is launched waits for a kernel that was killed, if there is anything."""
    launched = view.tenants.array[0, TenantColumn.KERNELS_LAUNCHED]
    return not launched or bool(view.pending.array[:, PendingColumn.PREEMPTED].any())


@dataclass(frozen=True, slots=True)
class PreemptionLevel:
    """Preemption latencies (us)."""

    avg: float
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class PreemptionRun:
    """Kernels of a length at a level."""

    level: Level
    kernel_us: float

    def run(self, device: str) -> PreemptionLevel:
        scheduler = Suspended(self.level)
        # In flight are so many kernels at most; pauses follow.
        horizon_us = SUSPENSIONS * (THRESHOLD * min(self.kernel_us, 4e3) + 3.0 * PAUSE_US)
        work = kernels(self.kernel_us)
        play(scheduler, situation([tenant(work.name)], GPU, horizon_us, {work.name: work}), 0, device=device)
        took = scheduler.latencies_us[:SUSPENSIONS]
        return PreemptionLevel(float(np.mean(took)), float(np.percentile(took, 50)), float(np.percentile(took, 99)))


@functools.cache
def kernels(kernel_us: float) -> Workload:
    """The loop: kernels that wait for a clock, and a synchronisation."""
    kernel = Kernel(
        name="sleep", grid=(BLOCKS, 1, 1), block=(THREADS, 1, 1), registers=32, duration_us=kernel_us, kind="latency"
    )
    launch = Op(OpKind.KERNEL, 2.5, 0, kernel_us)
    return Workload(
        name=f"sleep_{kernel_us:g}us",
        gpu=GPU,
        source="cuda/fig9/main/levels.cu of XSched's artefact",
        kernels=(kernel,),
        variants=(Variant(ops=(*[launch] * KERNELS, Op(OpKind.SYNC))),),
        iteration_us=(KERNELS * kernel_us,),
    )
