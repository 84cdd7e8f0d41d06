"""The paper's experiments as runs: pairs of services under modes of sharing, and FIKIT told or set otherwise."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

import msgspec

from gpusched_env.baselines.profiles import measure_profiles
from gpusched_env.experiments.lib.names import new_device
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import (
    RECORDED_ON,
    finished_kernels,
    recorded_turns,
    situation,
    tenant,
    turnarounds_us,
)
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.profile_error import ProfileError

GPU = "rtx-3090"
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
CONTINUOUS = {
    DEFAULT: "time-slicing",
    EXCLUSIVE: "exclusive",
    FIKIT: f"fikit(contexts=per-tenant,epsilon_us={EPSILON_US})",
    UNDER_MPS: "fikit(contexts=shared)",
}
"""Both services without a pause: schedulers by the paper's name of a mode. In exclusive mode jobs take turns in order
of arrival, whatever their priority."""
DEFAULT_NOW_AND_THEN, FIKIT_NOW_AND_THEN = "default sharing, intermittent", "FIKIT, intermittent"
INTERMITTENT = {DEFAULT_NOW_AND_THEN: CONTINUOUS[DEFAULT], FIKIT_NOW_AND_THEN: CONTINUOUS[FIKIT]}
"""Preemptive sharing: the low-priority service runs without a pause, high-priority requests come now and then."""
SLICES = {f"{DEFAULT}, slice of {slice_us / 1e3:g} ms": slice_us for slice_us in (1000.0, 4000.0)}
"""Time slices (us) besides the GPU's own 2 ms; Gilman and Walls also speak of 4 ms."""
ALONE, FIKIT_ALONE, MEASURED = "alone", "FIKIT alone", "measurement stage"
INTERCEPTED = {f"FIKIT alone, {cost_us:g} us": cost_us for cost_us in (2.0, 5.0, 10.0)}
"""Costs of interception besides the default: it is not stated, only what it may amount to."""
BY_ITSELF = {
    ALONE: "pass-through",
    FIKIT_ALONE: CONTINUOUS[FIKIT],
    MEASURED: "fifo",
    **{mode: f"fikit(interception_us={cost_us})" for mode, cost_us in INTERCEPTED.items()},
}
"""One service: without a scheduler; through FIKIT's interception; one kernel at a time, as while it is measured."""

TRIED = (("RetinaNet", "FCN-50"), ("FCOS", "ResNet-50"), ("Faster R-CNN", "FCN-101"), ("ResNet-101", "ResNet-50"))
"""Pairs for what follows, on the recordings as they are, where gaps are filled most: services without a pause, of which
the low-priority one lives on the gaps alone; chosen for gaps in the first and launches that fit into them."""
RIGHT, MEASURED_IN, RUNS = "right profiles", "measured in 3 runs", 3
CASES: dict[str, ProfileError] = {
    RIGHT: ProfileError(),
    MEASURED_IN: ProfileError(),
    "durations doubled": ProfileError(durations=2.0),
    "durations halved": ProfileError(durations=0.5),
    "gaps doubled": ProfileError(gaps=2.0),
    "gaps halved": ProfileError(gaps=0.5),
    "each off by up to 2": ProfileError(scatter=2.0),
    "a tenth never measured": ProfileError(forget=0.1),
    "nothing measured": ProfileError(forget=1.0),
}
"""What is wrong with the profiles that FIKIT is told, under MPS."""
CONTEXTS, EPSILONS_US = ("shared", "per-tenant"), (20.0, 50.0, 100.0, 200.0)
SWEEP = {
    (contexts, epsilon_us): f"FIKIT, {contexts}, threshold {epsilon_us:g} us"
    for contexts, epsilon_us in itertools.product(CONTEXTS, EPSILONS_US)
}
"""Services under MPS or as processes, and thresholds of the gaps that are filled, with right profiles."""
MODES = {
    **CONTINUOUS,
    **INTERMITTENT,
    **BY_ITSELF,
    **dict.fromkeys(SLICES, CONTINUOUS[DEFAULT]),
    **dict.fromkeys(CASES, CONTINUOUS[UNDER_MPS]),
    **{mode: f"fikit(contexts={contexts},epsilon_us={epsilon_us})" for (contexts, epsilon_us), mode in SWEEP.items()},
}
TURNS, TURNS_US = "torchvision_time_slicing.jsonl", 60_000.0
"""Recorded pairs; the first network runs as many requests as take this long alone."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one run."""

    high_us: float
    """Mean job completion time (turnaround) of the high-priority service; NaN if no job completed."""
    low_us: float
    """The same of the low-priority service; NaN without one."""
    low_share: float
    """Profiled device time of the low-priority service's finished kernels over the length of the run."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One run."""

    gpu: str
    high: str
    """Of :data:`NETWORKS`."""
    low: str | None
    """The same; ``None``: by itself."""
    mode: str
    """Of :data:`MODES`."""

    def run(self, device: str) -> Outcome:
        problem = self.problem()
        if self.mode == MEASURED_IN:
            problem = problem.with_profiles(measure_profiles(problem, new_device(device), RUNS))
        elif self.mode in CASES:
            problem = problem.with_profile_error(CASES[self.mode])
        return outcome(MODES[self.mode], problem, device, skip=int(self.mode == EXCLUSIVE))

    def problem(self) -> Problem:
        """Tenants are ``high`` and ``low``, or ``high`` by itself."""
        high = _service("high", self.high)
        high_us = _alone_us(self.gpu, self.high)
        # In exclusive mode the first job finds the GPU free, the others wait for a whole job of the other service.
        high["jobs"] = math.ceil(MEASURED_US / high_us) + (self.mode == EXCLUSIVE)
        tenants = [high]
        if self.low is not None:
            low = _service("low", self.low, priority=0 if self.mode == EXCLUSIVE else 1)
            tenants.append(low)
            if self.mode in INTERMITTENT:
                think_us = high_us * (1.0 / LOAD - 1.0)
                high["arrivals"] = {"kind": "closed-loop", "think_us": think_us, "start_us": 0.5 * think_us}
                high["jobs"] = None
                low["jobs"] = math.ceil(CYCLES * high_us / LOAD / _alone_us(self.gpu, self.low))
        problem = situation(tenants, self.gpu)
        if self.mode not in SLICES:
            return problem
        timing = msgspec.structs.replace(problem.gpu.timing, slice_us=SLICES[self.mode])
        return dataclasses.replace(problem, gpu=msgspec.structs.replace(problem.gpu, timing=timing))


@dataclass(frozen=True, slots=True)
class Sliced:
    """Two networks that take turns; slowdowns are times of a request over that alone, of the first and second."""

    networks: tuple[str, str]
    recorded: tuple[float, float]
    simulated: tuple[float, float]

    @property
    def errors(self) -> tuple[float, float]:
        """Relative, signed."""
        first, second = (s / r - 1.0 for s, r in zip(self.simulated, self.recorded, strict=True))
        return first, second


@dataclass(frozen=True, slots=True)
class Turns:
    """A pair that an H100 switched between, as processes: what default sharing, the base of speed-ups, is held against.

    Another host than that of the workloads ran them, so host times are scaled to each network's time alone.
    """

    workloads: tuple[str, ...]

    def run(self, device: str) -> Sliced:
        together_us, alone_us = zip(*recorded_turns(TURNS)[self.workloads], strict=True)
        tenants = [tenant(name, iteration_us=us) for name, us in zip(self.workloads, alone_us, strict=True)]
        tenants[0]["jobs"] = math.ceil(TURNS_US / alone_us[0])
        found = outcome(CONTINUOUS[DEFAULT], situation(tenants), device)
        first, second = (name for workload in self.workloads for name in NETWORKS if NETWORKS[name] == workload)
        return Sliced(
            networks=(first, second),
            recorded=(together_us[0] / alone_us[0], together_us[1] / alone_us[1]),
            simulated=(found.high_us / alone_us[0], found.low_us / alone_us[1]),
        )


def all_cells(networks: tuple[str, ...] = tuple(NETWORKS)) -> list[Cell]:
    """Every run of networks: by themselves, all pairs on both GPUs, and what is tried on some pairs."""
    by_itself = itertools.product((GPU, RECORDED_ON), networks, (None,), BY_ITSELF)
    cells = [Cell(*each) for each in by_itself]
    for pair in itertools.permutations(networks, 2):
        cells += [Cell(GPU, *pair, mode) for mode in (*CONTINUOUS, *INTERMITTENT, *SLICES)]
        cells += [Cell(RECORDED_ON, *pair, mode) for mode in (DEFAULT, FIKIT, UNDER_MPS)]
    tried = [pair for pair in TRIED if set(pair) <= set(networks)]
    return [*cells, *(Cell(RECORDED_ON, *pair, mode) for pair in tried for mode in (*CASES, *SWEEP.values()))]


def outcome(scheduler: str, problem: Problem, device: str, skip: int = 0) -> Outcome:
    """Run it; the first ``skip`` jobs of the high-priority service do not count."""
    episode = play(scheduler, problem, seed=0, device=device, record="kernels")
    high, low = turnarounds_us(episode, skip)[0], turnarounds_us(episode)[1:]
    filled_us = finished_kernels(episode, 1)["profiled_us"].sum()
    return Outcome(_mean(high), _mean(*low) if low else math.nan, float(filled_us) / episode.end_us)


def _mean(values: Any) -> float:
    return float(values.mean()) if len(values) else math.nan


def _service(role: str, network: str, **fields: Any) -> dict[str, Any]:
    return tenant(NETWORKS[network], name=role, jobs=None, **fields)


@functools.cache
def _alone_us(gpu: str, network: str) -> float:
    return situation([_service("high", network)], gpu).programs[0].alone_us
