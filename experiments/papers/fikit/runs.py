"""The paper's experiments as runs: pairs of services under modes of sharing, and FIKIT told or set otherwise."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.baselines.profiles import measure_profiles
from gpusched_env.experiments.lib.names import new_device
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import RECORDED_ON, situation, tenant, turnarounds_us
from gpusched_env.experiments.lib.requests import work_rate
from gpusched_env.experiments.papers.fikit.modes import (
    BY_ITSELF,
    CASES,
    DEFAULT,
    EXCLUSIVE,
    GPU,
    IN_TURN,
    INTERMITTENT,
    LOADS,
    MEASURED_IN,
    MODES,
    MPS,
    NO_SCHEDULER,
    RUNS,
    SETTINGS,
    SHARED_NOW_AND_THEN,
    SLICES,
    SWEEP,
    UNDER_MPS,
    now_and_then,
)
from gpusched_env.scenarios.adapting import with_profile_error, with_profiles
from gpusched_env.scenarios.problem import Problem
from gpusched_env.workload.workload import OpKind

NETWORKS: dict[str, str] = {
    "AlexNet": "alexnet_fp32_infer_b1",
    "VGG-16": "vgg16_fp32_infer_b1",
    "ResNet-50": "resnet50_fp32_infer_b1",
    "ResNet-101": "resnet101_fp32_infer_b1",
    "FCN-50": "fcn_resnet50_infer_b1",
    "FCN-101": "fcn_resnet101_infer_b1",
    "Faster R-CNN": "fasterrcnn_resnet50_fpn_infer_b1",
    "Mask R-CNN": "maskrcnn_resnet50_fpn_infer_b1",
    "RetinaNet": "retinanet_resnet50_fpn_infer_b1",
    "FCOS": "fcos_resnet50_fpn_infer_b1",
    "SSD300": "ssd300_vgg16_infer_b1",
}
"""Recorded workloads: classification, segmentation, detection."""
SET_APART = ("Mask R-CNN", "RetinaNet", "SSD300")
"""Networks whose pairs are also shown apart. RetinaNet and SSD300 are not of the families that the paper is remembered
to use. Mask R-CNN pastes box after box, waiting for the GPU at each, and was recorded with random weights, which find
as many boxes as there may be: 1,322 waits a request."""
MEASURED_US = 20_000.0
"""A high-priority service runs as many jobs as take this long alone, at least one (long jobs repeat themselves)."""
CO_RUNNERS = (1, 2, 3)
"""Low-priority services beside the high-priority one, all of the same network. The abstract speaks of several services
that share a GPU, and does not say how many."""
ENDS = (1, 3)
"""Of them, with how many FIKIT is also run with nothing filled, and nothing of it under MPS."""
TRIED = (("RetinaNet", "FCN-50"), ("FCOS", "ResNet-50"), ("Faster R-CNN", "FCN-101"), ("ResNet-101", "ResNet-50"))
"""Pairs for wrong profiles and thresholds, on the recordings as they are, where gaps are filled most: services without
a pause, of which the low-priority one lives on the gaps alone; chosen for gaps in the first and launches that fit into
them."""


@dataclass(frozen=True, slots=True)
class FikitOutcome:
    """Of one run."""

    high_us: float
    """Mean job completion time (turnaround) of the high-priority service; NaN if no job completed."""
    low_us: float
    """The same of the low-priority services; NaN without one."""
    low_share: float
    """Profiled device time of the low-priority services' finished kernels over the length of the run."""


@dataclass(frozen=True, slots=True)
class FikitRun:
    """One run."""

    gpu: str
    high: str
    """Of :data:`NETWORKS`."""
    low: str | None
    """The same; ``None``: by itself."""
    mode: str
    """Of :data:`MODES`."""
    lows: int = 1
    """Low-priority services of the network ``low``."""

    def run(self, device: str) -> FikitOutcome:
        problem = self.problem()
        if self.mode == MEASURED_IN:
            problem = with_profiles(problem, measure_profiles(problem, new_device(device), RUNS))
        elif self.mode in CASES:
            problem = with_profile_error(problem, CASES[self.mode])
        episode = play(MODES[self.mode], problem, seed=0, device=device, record="kernels")
        high, low = turnarounds_us(episode, skip=int(self.mode in IN_TURN))[0], turnarounds_us(episode)[1:]
        shares = [work_rate(episode, row) for row in range(1, len(problem.programs))]
        return FikitOutcome(_mean(high), _mean(*low), sum(shares))

    def problem(self) -> Problem:
        """Tenants are ``high`` and as many ``low`` ones, or ``high`` by itself."""
        exclusive, high_us = self.mode == EXCLUSIVE, _alone_us(self.gpu, self.high)
        # Of jobs in turn the first finds the GPU free; the others wait for whole jobs of the other services. In one
        # queue every job waits the same, so that one says as much as several.
        jobs = 2 if self.mode in (setting.one_queue for setting in SETTINGS) else math.ceil(MEASURED_US / high_us)
        tenants = [tenant(NETWORKS[self.high], name="high", jobs=jobs + exclusive)]
        if self.low is not None:
            names = ["low", *(f"low {i}" for i in range(2, self.lows + 1))]
            tenants += [tenant(NETWORKS[self.low], name=name, priority=int(not exclusive)) for name in names]
        if self.low is not None and self.mode in INTERMITTENT:
            think_us = high_us * (1.0 / INTERMITTENT[self.mode] - 1.0)
            arrivals = {"kind": "closed-loop", "think_us": think_us, "start_us": 0.5 * think_us}
            tenants[0] |= {"arrivals": arrivals, "jobs": None}
            # Watched for one request and the pause around it at the lowest load, for several at others.
            tenants[1]["jobs"] = math.ceil(high_us / min(LOADS) / _alone_us(self.gpu, self.low))
        problem = situation(tenants, self.gpu)
        if self.mode not in SLICES:
            return problem
        timing = msgspec.structs.replace(problem.gpu.timing, slice_us=SLICES[self.mode])
        return dataclasses.replace(problem, gpu=msgspec.structs.replace(problem.gpu, timing=timing))

    def job(self) -> dict[str, float]:
        """Launches and synchronisations of a high-priority job, and how long its kernels take (us)."""
        variants = self.problem().programs[0].variants
        kernels = [[op for op in job if op.kind is OpKind.KERNEL] for job in variants]
        return {
            "kernels": len(kernels[0]),
            "waits": sum(op.kind is OpKind.SYNC for op in variants[0]),
            "busy_us": sum(op.device_us for ops in kernels for op in ops) / len(kernels),
        }


def all_cells(networks: tuple[str, ...] = tuple(NETWORKS)) -> list[FikitRun]:
    """Every run of networks: by themselves; all pairs in both settings in the modes that claims are made of; those of
    the paper's families in the others too; and what is tried on some pairs."""
    by_itself = itertools.product((GPU, RECORDED_ON), networks, (None,), BY_ITSELF)
    cells = [FikitRun(*each) for each in by_itself]
    for pair in itertools.permutations(networks, 2):
        further = () if set(pair) & set(SET_APART) else (EXCLUSIVE, *SLICES)
        cells += [FikitRun(GPU, *pair, mode) for mode in (UNDER_MPS, *further)]
        for setting in SETTINGS:
            modes = (DEFAULT, setting.fikit, setting.one_queue)
            cells += [FikitRun(setting.gpu, *pair, mode, lows) for lows in CO_RUNNERS for mode in modes]
            cells += [FikitRun(setting.gpu, *pair, setting.nothing_filled, lows) for lows in ENDS]
        cells += [FikitRun(MPS.gpu, *pair, NO_SCHEDULER, lows) for lows in ENDS]
        for setting, loads in SHARED_NOW_AND_THEN.items():
            modes = (DEFAULT, setting.fikit, setting.nothing_filled)
            cells += [FikitRun(setting.gpu, *pair, now_and_then(mode, load)) for load in loads for mode in modes]
    tried = [pair for pair in TRIED if set(pair) <= set(networks)]
    return [*cells, *(FikitRun(RECORDED_ON, *pair, mode) for pair in tried for mode in (*CASES, *SWEEP.values()))]


def _mean(*values: NDArray[np.float64]) -> float:
    """Over all of them; NaN if there are none."""
    found = np.concatenate([np.zeros(0), *values])
    return float(found.mean()) if len(found) else math.nan


@functools.cache
def _alone_us(gpu: str, network: str) -> float:
    return situation([tenant(NETWORKS[network])], gpu).programs[0].alone_us
