"""The motivating example of GPUColo: two inference and two training jobs that each use a GPU half of the time.

Kernels are generated: each fills the GPU once, so that kernels of different clients run in turn. A batch and an
iteration take as long on the GPU as elsewhere on the page, and their hosts as long again. Clients have equal priority,
as the paper speaks of none: here there is no small share behind which inference would wait. Nothing is fitted but the
pause of the conservative system, which the paper does not say: training alone would end with it as published.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpusched_env.baselines.colocated import Colocated, S
from gpusched_env.baselines.gpucolo import GpuColo
from gpusched_env.baselines.open_loop import OpenLoop
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import situation, tenant
from gpusched_env.experiments.papers.gpucolo.runs import BATCH_MS, GPU, STEP_MS
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

INFERENCE: Final = {"I1": (30.0, 56.0), "I2": (35.0, 61.0)}
"""Seconds alone, and the objective."""
TRAINING: Final = {"T1": 52.0, "T2": 52.0}
JOBS: Final = (*INFERENCE, *TRAINING)
PUBLISHED: Final = {
    "separate": (39.0, 46.0, 65.0, 65.0),
    "simple": (74.0, 84.0, 110.0, 112.0),
    "conservative": (50.0, 56.0, 208.0, 209.0),
    "slo-aware ideal": (56.0, 61.0, 96.0, 96.0),
    "gpucolo": (55.0, 60.0, 106.0, 106.0),
}
"""Seconds until each job ends; Separate has a GPU for inference and one for training, all others one in all."""
KERNELS: Final = 10
"""Of a batch or an iteration."""
HORIZON_S: Final = 400.0
HALVINGS: Final = 6


class Equal(Colocated):
    """A controller whose clients all have one priority."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """As it is, but for priorities."""
        super().reset(knowledge, rng)
        self._priorities = [0] * len(knowledge.tenants)


class EqualOpenLoop(Equal, OpenLoop):
    """Knobs that stand."""


class EqualGpuColo(Equal, GpuColo):
    """GPUColo."""


@dataclass(frozen=True, slots=True)
class Finish:
    """When each job ends, in seconds."""

    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A system of the example."""

    system: str

    def run(self, device: str) -> Finish:
        if self.system == "separate":
            parts = [_ends(EqualOpenLoop(), tuple(jobs), device) for jobs in (INFERENCE, TRAINING)]
            return Finish((*parts[0], *parts[1]))
        return Finish(_ends(_controller(self.system, device), JOBS, device))


def _controller(system: str, device: str) -> Colocated:
    if system == "conservative":
        alone_s, published_s = TRAINING["T1"], PUBLISHED[system][2]
        return EqualOpenLoop((published_s - alone_s) / _count(alone_s, STEP_MS))
    if system == "slo-aware ideal":
        return EqualOpenLoop(_least_pause_s(device))
    if system == "gpucolo":
        return EqualGpuColo(slope_ms=_slope_ms(device), first_share=100.0)
    return EqualOpenLoop()


def _least_pause_s(device: str) -> float:
    """The shortest standing pause, up to a second, with which all inference ends by its objective."""
    low_s, high_s = 0.0, 1.0
    for _ in range(HALVINGS):
        middle_s = (low_s + high_s) / 2.0
        ends = _ends(EqualOpenLoop(middle_s), JOBS, device)
        in_time = all(end_s <= goal_s for end_s, (_, goal_s) in zip(ends, INFERENCE.values(), strict=False))
        low_s, high_s = (low_s, middle_s) if in_time else (middle_s, high_s)
    return high_s


@functools.cache
def _slope_ms(device: str) -> float:
    """Milliseconds of latency a second of sleep and percent of share: of a profiling run at each end of the pause."""
    means = []
    for pause_s in (0.0, 1.0):
        jobs = play(EqualOpenLoop(pause_s), problem(JOBS), 0, device=device).timeline.jobs.dict()
        mine = jobs["tenant"] < len(INFERENCE)
        means.append(float((jobs["completed_us"] - jobs["arrived_us"])[mine].mean()) / 1e3)
    return (means[1] - means[0]) / 100.0


def _ends(controller: Colocated, names: tuple[str, ...], device: str) -> tuple[float, ...]:
    jobs = play(controller, problem(names), 0, device=device).timeline.jobs.dict()
    return tuple(float(jobs["completed_us"][jobs["tenant"] == row].max() / S) for row in range(len(names)))


def problem(names: tuple[str, ...]) -> Problem:
    """Some of the jobs on one GPU."""
    tenants = []
    for name in names:
        trains = name in TRAINING
        alone_s = TRAINING[name] if trains else INFERENCE[name][0]
        busy_ms = STEP_MS if trains else BATCH_MS
        count = _count(alone_s, busy_ms)
        arrivals = {"kind": "closed-loop", "think_us": 1e3 * busy_ms}
        fields = {"name": name, "launch": "graph", "jobs": count, "arrivals": arrivals, "priority": int(trains)}
        if not trains:
            fields["slo_us"] = INFERENCE[name][1] * S / count - 1e3 * busy_ms
        tenants.append(tenant("iteration" if trains else "batch", **fields))
    workloads = {"batch": filling("batch", BATCH_MS), "iteration": filling("iteration", STEP_MS)}
    return situation(tenants, GPU, HORIZON_S * S, workloads, commands=["launch", "partition", "throttle"])


def _count(alone_s: float, busy_ms: float) -> int:
    """Batches or iterations of a job: the host takes as long as the GPU."""
    return round(alone_s * 1e3 / (2.0 * busy_ms))


def filling(name: str, length_ms: float) -> Workload:
    """Equal kernels, one after the other, each of one wave that fills the GPU."""
    per_sm, sms, length_us = 6, 82, 1e3 * length_ms / KERNELS
    kernel = Kernel(
        name=name, grid=(per_sm * sms, 1, 1), block=(256, 1, 1), registers=40, duration_us=length_us, kind="mixed",
        issue_fraction=0.45, dram_bytes=0.3 * 936e3 * length_us,
    )  # fmt: skip
    ops = (Op(OpKind.KERNEL, 0.0, 0, length_us),) * KERNELS
    return Workload(
        format="gpusched-workload/1", name=name, gpu=GPU, source="generated", kernels=(kernel,),
        variants=(Variant(ops=(*ops, Op(OpKind.SYNC, 0.0, -1, 0.0))),), iteration_us=(1e3 * length_ms,),
    )  # fmt: skip
