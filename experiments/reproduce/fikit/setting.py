"""FIKIT against default sharing: which networks, GPU, modes of sharing and arrivals.

The paper runs pairs of services of torchvision networks (detection, segmentation, classification), one of high and
one of low priority, on a GPU that it does not name, and reports ranges. Here every ordered pair of the eleven
recorded networks of these kinds takes part. Host times, gaps and synchronisations are those of the recordings;
kernels are carried over to the GPU, an RTX 3090: the GPU of that time whose time slice and context switch, which
make up default sharing, were measured under such work (Gilman and Walls, 2021). Every service is a process with
a context of its own, FIKIT's too. Beside it stands the GPU of the recordings, with nothing carried over.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import Any

import msgspec

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.scenarios.problem import Problem, build_problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.scheduling.scheduler import Scheduler

GPU = "rtx-3090"
RECORDED_ON = "h100-sxm"
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
SLICES_US = (1000.0, 4000.0)
"""Time slices besides the GPU's own 2 ms; Gilman and Walls also speak of 4 ms."""

MEASURED_US = 20_000.0
"""A high-priority service runs as many jobs as take this long alone, at least one (long jobs repeat themselves)."""
LOAD = 0.1
"""Of intermittent high-priority requests: the share of the time that they would take alone. Not stated."""
CYCLES = 1
"""Of such a request and the pause around it, that a low-priority service is watched for."""
EPSILON_US = 100.0
"""Gaps between processes that FIKIT leaves idle: a switch there and back costs more than most of them are long. The
paper's threshold is not known for certain."""

DEFAULT, EXCLUSIVE, FIKIT, UNDER_MPS = "default sharing", "exclusive", "FIKIT", "FIKIT under MPS"
CONTINUOUS: dict[str, tuple[str, dict[str, Any]]] = {
    DEFAULT: ("time-slicing", {}),
    EXCLUSIVE: ("exclusive", {}),
    FIKIT: ("fikit", {"contexts": "per-tenant", "epsilon_us": EPSILON_US}),
    UNDER_MPS: ("fikit", {"contexts": "shared"}),
}
"""Both services without a pause: schedulers and options by the paper's name of a mode. In exclusive mode jobs take
turns in order of arrival, whatever their priority."""
DEFAULT_NOW_AND_THEN, FIKIT_NOW_AND_THEN = "default sharing, intermittent", "FIKIT, intermittent"
INTERMITTENT = {DEFAULT_NOW_AND_THEN: CONTINUOUS[DEFAULT], FIKIT_NOW_AND_THEN: CONTINUOUS[FIKIT]}
"""Preemptive sharing: the low-priority service runs without a pause, high-priority requests come now and then."""
ALONE, FIKIT_ALONE, MEASURED = "alone", "FIKIT alone", "measurement stage"
BY_ITSELF: dict[str, tuple[str, dict[str, Any]]] = {
    ALONE: ("pass-through", {}),
    FIKIT_ALONE: CONTINUOUS[FIKIT],
    MEASURED: ("fifo", {}),
}
"""One service: without a scheduler; through FIKIT's interception; one kernel at a time, as while it is measured."""
SLOWER_US = (2.0, 5.0, 10.0)
"""Costs of interception besides the default: it is not stated, only what it may amount to."""
INTERCEPTED = {cost_us: f"FIKIT alone, {cost_us:g} us" for cost_us in SLOWER_US}
SLOWER = {mode: ("fikit", {"interception_us": cost_us}) for cost_us, mode in INTERCEPTED.items()}
MODES = {**CONTINUOUS, **INTERMITTENT, **BY_ITSELF, **SLOWER}


@dataclass(frozen=True, slots=True)
class Cell:
    """One run."""

    gpu: str
    high: str
    """Of :data:`NETWORKS`."""
    low: str | None
    """The same; ``None``: by itself."""
    mode: str
    slice_us: float | None = None
    """Instead of the GPU's own time slice."""


def all_cells(networks: tuple[str, ...] = tuple(NETWORKS), slices_us: tuple[float, ...] = SLICES_US) -> list[Cell]:
    """Every run: all pairs on both GPUs, networks by themselves, and other time slices."""
    by_itself = itertools.product((GPU, RECORDED_ON), networks, (*BY_ITSELF, *SLOWER))
    cells = [Cell(gpu, network, None, mode) for gpu, network, mode in by_itself]
    for high, low in itertools.permutations(networks, 2):
        cells += [Cell(GPU, high, low, mode) for mode in (*CONTINUOUS, *INTERMITTENT)]
        cells += [Cell(GPU, high, low, DEFAULT, slice_us) for slice_us in slices_us]
        cells += [Cell(RECORDED_ON, high, low, mode) for mode in (DEFAULT, FIKIT, UNDER_MPS)]
    return cells


def problem_of(cell: Cell) -> Problem:
    """The problem of a run; tenants are ``high`` and ``low``, or ``high`` by itself."""
    high = _tenant("high", cell.high)
    high_us = _alone_us(cell.gpu, cell.high)
    # In exclusive mode the first job finds the GPU free, the others wait for a whole job of the other service.
    high["jobs"] = math.ceil(MEASURED_US / high_us) + (cell.mode == EXCLUSIVE)
    tenants = [high]
    if cell.low is not None:
        low = _tenant("low", cell.low)
        low["priority"] = 0 if cell.mode == EXCLUSIVE else 1
        tenants.append(low)
        if cell.mode in INTERMITTENT:
            think_us = high_us * (1.0 / LOAD - 1.0)
            high["arrivals"] = {"kind": "closed-loop", "think_us": think_us, "start_us": 0.5 * think_us}
            high["jobs"] = None
            low["jobs"] = math.ceil(CYCLES * high_us / LOAD / _alone_us(cell.gpu, cell.low))
    problem = _problem(cell.gpu, tenants)
    if cell.slice_us is None:
        return problem
    timing = msgspec.structs.replace(problem.gpu.timing, slice_us=cell.slice_us)
    return dataclasses.replace(problem, gpu=msgspec.structs.replace(problem.gpu, timing=timing))


def scheduler_of(cell: Cell) -> Scheduler:
    """The scheduler that is the run's mode."""
    name, options = MODES[cell.mode]
    return make_scheduler(name, **options)


def _tenant(role: str, network: str) -> dict[str, Any]:
    closed = {"kind": "closed-loop"}
    return {"name": role, "workload": NETWORKS[network], "arrivals": closed, "priority": 0, "jobs": None}


def _problem(gpu: str, tenants: list[dict[str, Any]]) -> Problem:
    scenario = {"name": "fikit", "summary": "a pair of services", "gpu": gpu}
    return build_problem(make_scenario({**scenario, "tenants": tenants, "horizon_us": math.inf}))


def _alone_us(gpu: str, network: str) -> float:
    return _problem(gpu, [_tenant("high", network)]).programs[0].alone_us
