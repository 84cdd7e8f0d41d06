"""The paper's experiments as runs: networks, GPUs, arrivals and mechanisms, and what is measured of each."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusched_env.experiments.lib.larger_batch import at_batch
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import situation, tenant
from gpusched_env.experiments.lib.requests import Requests, finished_kernels, requests_of, work_rate
from gpusched_env.hardware.timing import save_us, state_bytes
from gpusched_env.scenarios.problem import Problem, load_workload
from gpusched_env.scheduling.session import Episode
from gpusched_env.workload.workload import OpKind

GPUS = {"rtx-3090": 4, "h100-sxm": 12}
"""By how much a recorded training batch grows until memory is full (24 and 80 GB): ResNet-50 from 32 to 128 samples
on an RTX 3090, where it spends 59 % of its time in kernels of more than 1 ms (published: 57 %)."""
PAIRS: dict[str, tuple[str, str]] = {
    "ResNet-50": ("resnet50_fp32_infer_b1", "resnet50_train_b32"),
    "ResNet-101": ("resnet101_fp32_infer_b1", "resnet50_train_b32"),
    "VGG-16": ("vgg16_fp32_infer_b1", "resnet50_train_b32"),
    "AlexNet": ("alexnet_fp32_infer_b1", "resnet50_train_b32"),
    "BERT": ("bert_infer_b1_s128", "bert_train_b16_s128"),
}
"""Inference and training by the name of the inference network."""
ARRIVALS = ("sequential", "poisson")
SERVER_LOAD = 0.5
"""Of random arrivals: requests a second times the time of a request alone."""
KEEP_OPEN_US = 40.0
"""Gaps shorter than the paper's estimate of a save are kept open."""
HORIZON_US = 500_000.0
"""Of each run: about a hundred requests, and one and a half training steps at full batch."""

ALONE = ("inference alone", "training alone")
MECHANISMS = {
    "priority streams": "priority-streams",
    "time slicing": "time-slicing",
    "MPS": "mps(share=100)",
    "MPS, half of the SMs": "mps(share=50)",
    "exclusive": "exclusive",
    "preemptive": "preemptive-priority",
    "preemptive, room kept open": f"preemptive-priority(keep_open_us={KEEP_OPEN_US})",
    "preemptive, at block ends": "preemptive-priority(mode=drain)",
}
"""Schedulers by the paper's name of a mechanism."""
PREEMPT = 1
"""Code of a preemption in the timeline's decisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures(Requests):
    """Of one run: the inference's requests, and the training. NaN where there is no such tenant."""

    utilisation: float
    """Share of the SM-time with a resident block."""
    preemptions: float = math.nan
    """Per request."""
    training_rate: float = math.nan
    """Profiled device time of the training's completed kernels over the length of the run."""
    training_stretch: float = math.nan
    """Time from start to end of the training's kernels that were never preempted, over their profiled durations."""
    full_save_us: float = math.nan
    """Time to save a kernel of the training with all blocks that the GPU holds of it: the mean over its work."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One run."""

    gpu: str
    pair: str
    arrivals: str
    mechanism: str
    """Of :data:`MECHANISMS` or :data:`ALONE`."""

    def run(self, device: str, horizon_us: float = HORIZON_US) -> Figures:
        scheduler = MECHANISMS.get(self.mechanism, "pass-through")
        episode = play(scheduler, self.problem(horizon_us), seed=0, device=device, record="kernels")
        found: dict[str, Any] = {"utilisation": episode.costs.busy_sm_us / (episode.problem.gpu.sms * episode.end_us)}
        for row, each in enumerate(episode.problem.scenario.tenants):
            found |= (_requests if each.name == "inference" else _training)(episode, row)
        return Figures(**found)

    def problem(self, horizon_us: float = HORIZON_US) -> Problem:
        """Tenants are ``inference`` and ``training``, or one of them."""
        inference, training = PAIRS[self.pair]
        full_batch = {training: at_batch(load_workload(training), GPUS[self.gpu])}
        tenants = [tenant(inference, name="inference"), tenant(training, name="training", priority=1)]
        if self.mechanism in ALONE:
            tenants = [tenants[ALONE.index(self.mechanism)]]
        problem = situation(tenants, self.gpu, horizon_us, full_batch)
        if self.arrivals == "poisson" and self.mechanism != ALONE[1]:
            rate = SERVER_LOAD * 1e6 / problem.programs[0].alone_us
            tenants[0] |= {"arrivals": {"kind": "poisson", "rate_per_s": rate}}
            problem = situation(tenants, self.gpu, horizon_us, full_batch)
        return problem


def all_cells(gpus: tuple[str, ...] = tuple(GPUS), pairs: tuple[str, ...] = tuple(PAIRS)) -> list[Cell]:
    """Every run; training alone does not depend on the arrivals, and is among the sequential ones."""
    cells = itertools.starmap(Cell, itertools.product(gpus, pairs, ARRIVALS, (*MECHANISMS, *ALONE)))
    return [cell for cell in cells if cell.mechanism != ALONE[1] or cell.arrivals == "sequential"]


def _requests(episode: Episode, row: int) -> dict[str, Any]:
    found = requests_of(episode, row)
    preempted = np.count_nonzero(episode.timeline.decisions.column("command") == PREEMPT)
    return {**found, "preemptions": preempted / found["requests"]} if found else {}


def _training(episode: Episode, row: int) -> dict[str, Any]:
    kernels, problem = finished_kernels(episode, row), episode.problem
    whole = kernels[kernels.preemptions == 0]
    ops = [op for op in problem.programs[row].variants[0] if op.kind is OpKind.KERNEL]
    saves = []
    for profile in (problem.kernels[op.identity] for op in ops):
        shape = profile.footprint
        blocks = min(profile.kernel.blocks, problem.gpu.sms * shape.blocks_per_sm)
        saves.append(save_us(state_bytes(shape.registers, shape.shared_bytes, blocks), problem.gpu.dram_bytes_per_us))
    return {
        "training_rate": work_rate(episode, row) if len(whole) else 0.0,
        "training_stretch": float((whole.ended_us - whole.started_us).sum() / whole.profiled_us.sum())
        if len(whole)
        else math.nan,
        "full_save_us": float(np.average(saves, weights=[op.device_us for op in ops])),
    }
