"""One run of the paper's experiments, and the figures that its observations are about."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.lib.names import new_device
from gpusched_env.experiments.reproduce.concurrency.setting import ALONE, Cell, problem_of, scheduler_of
from gpusched_env.hardware.timing import save_us, state_bytes
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.session import Episode, run_episode
from gpusched_env.workload.workload import OpKind

SEED = 0
PREEMPT = 1
"""Code of a preemption in the timeline's decisions."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one run. NaN where the run does not define a figure (a tenant that it does not have)."""

    requests: int
    """Completed requests, the first (cold) one left out."""
    turnaround_us: float
    """Mean over them."""
    turnaround_p99_us: float
    variation: float
    """Standard deviation of the turnarounds over their mean."""
    waiting_us: float
    """Per request: time that its kernels were next in their stream before their first block started."""
    lengthening_us: float
    """Per request: time that its kernels ran longer than alone."""
    kernels: float
    """Per request."""
    training_rate: float
    """Profiled device time of the training's completed kernels over the length of the run."""
    training_stretch: float
    """Time from start to end of the training's kernels that were never preempted, over their profiled durations."""
    utilisation: float
    """Share of the SM-time with a resident block."""
    preemptions: float
    """Per request."""
    full_save_us: float
    """Time to save a kernel of the training with all blocks that the GPU holds of it: the mean over its work."""


@dataclass(frozen=True, slots=True)
class Simulate:
    """The task of worker processes."""

    horizon_us: float
    device: str

    def __call__(self, cell: Cell) -> Figures:
        problem = problem_of(cell, self.horizon_us)
        episode = run_episode(
            scheduler_of(cell),
            problem,
            new_device(self.device),
            SEED,
            record="kernels",
        )
        return figures(episode, cell)


def figures(episode: Episode, cell: Cell) -> Figures:
    """The figures of a run."""
    rows = {tenant.name: i for i, tenant in enumerate(episode.problem.scenario.tenants)}
    jobs = episode.timeline.jobs.dict()
    warm = (jobs["tenant"] == rows.get("inference", -1)) & (jobs["job"] > 0)
    took = jobs["completed_us"][warm] - jobs["arrived_us"][warm]
    requests = len(took)
    waiting, lengthening, kernels = _delays(episode, rows["inference"]) if requests else (math.nan,) * 3
    rate, stretch = _training(episode, rows["training"]) if "training" in rows else (math.nan, math.nan)
    preempted = int(np.count_nonzero(episode.timeline.decisions.column("command") == PREEMPT))
    return Figures(
        requests=requests,
        turnaround_us=float(took.mean()) if requests else math.nan,
        turnaround_p99_us=float(np.percentile(took, 99)) if requests else math.nan,
        variation=float(took.std() / took.mean()) if requests else math.nan,
        waiting_us=waiting,
        lengthening_us=lengthening,
        kernels=kernels,
        training_rate=rate,
        training_stretch=stretch,
        utilisation=episode.costs.busy_sm_us / (episode.problem.gpu.sms * episode.end_us),
        preemptions=preempted / requests if requests else math.nan,
        full_save_us=_full_save_us(episode.problem, rows["training"]) if cell.mechanism != ALONE[0] else math.nan,
    )


def _delays(episode: Episode, tenant: int) -> tuple[float, float, float]:
    """Waiting and lengthening of an urgent tenant's kernels, and their number, per completed request."""
    table, profiled_us = _kernels(episode, tenant)
    gap_us = episode.problem.gpu.timing.stream_gap_us
    reached_us = table["launched_us"] + episode.problem.gpu.timing.launch_latency_us
    after_us = np.concatenate(([-np.inf], table["ended_us"][:-1] + gap_us))
    waited = np.maximum(0.0, table["started_us"] - np.maximum(reached_us, after_us))
    longer = table["ended_us"] - table["started_us"] - profiled_us
    requests = len(np.unique(table["job"]))
    return float(waited.sum()) / requests, float(longer.sum()) / requests, len(waited) / requests


def _training(episode: Episode, tenant: int) -> tuple[float, float]:
    table, profiled_us = _kernels(episode, tenant)
    whole = table["preemptions"] == 0
    if not whole.any():
        return 0.0, math.nan
    spans = (table["ended_us"] - table["started_us"])[whole]
    return float(profiled_us.sum()) / episode.end_us, float(spans.sum() / profiled_us[whole].sum())


def _kernels(episode: Episode, tenant: int) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.float64]]:
    """Finished kernels of a tenant in order of issue, and their profiled durations."""
    table = episode.timeline.kernels.dict()
    own = np.flatnonzero(table["tenant"] == tenant)
    own = own[np.argsort(table["id"][own])]
    profiles = np.array([kernel.duration_us for kernel in episode.problem.kernels])
    table = {name: column[own] for name, column in table.items()}
    return table, profiles[table["identity"].astype(int)]


def _full_save_us(problem: Problem, tenant: int) -> float:
    """Mean time to save a kernel of the tenant, weighted by duration, if it is caught with all blocks that fit."""
    total = weight = 0.0
    for op in problem.programs[tenant].variants[0]:
        if op.kind is not OpKind.KERNEL:
            continue
        profile = problem.kernels[op.identity]
        blocks = min(profile.kernel.blocks, problem.gpu.sms * profile.footprint.blocks_per_sm)
        shape = profile.footprint
        bytes_ = state_bytes(shape.registers, shape.shared_bytes, blocks)
        total += op.device_us * save_us(bytes_, problem.gpu.dram_bytes_per_us)
        weight += op.device_us
    return total / weight
