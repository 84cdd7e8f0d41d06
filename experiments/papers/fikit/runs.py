"""The paper's experiments as runs: modes of sharing as schedulers, the measurement stage, and pairs of services under
them.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.episodes.session import run_episode
from gpusched_env.experiments.lib.names import new_device
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import RECORDED_ON, situation, tenant, turnarounds_us, work_rate
from gpusched_env.scenarios.adapting import with_profile_error, with_profiles
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.profile_error import ProfileError, Profiles
from gpusched_env.scheduling.contract import Device
from gpusched_env.workload.tenant import ClosedLoop
from gpusched_env.workload.workload import OpKind


def measure_profiles(problem: Problem, device: Device, runs: int, seed: int = 0) -> Profiles:
    """Run each tenant alone on ``device``, ``runs`` times without a pause, and average what it did.

    Kernels that did not occur in these runs (another branch of a network, say) stay NaN. The last kernel of a
    run has no gap after it.
    """
    durations: list[list[float]] = [[] for _ in problem.kernels]
    gaps: list[list[float]] = [[] for _ in problem.kernels]
    for place in range(len(problem.programs)):
        episode = run_episode(PassThrough(), alone(problem, place, runs), device, seed, record="kernels")
        table = episode.timeline.kernels.dict()
        order = np.argsort(table["id"])
        columns = (table[name][order].tolist() for name in ("job", "identity", "started_us", "ended_us"))
        before: tuple[float, int, float] | None = None
        for job, identity, started_us, ended_us in zip(*columns, strict=True):
            durations[int(identity)].append(ended_us - started_us)
            if before is not None and before[0] == job:
                gaps[before[1]].append(max(0.0, started_us - before[2]))
            before = (job, int(identity), ended_us)
    return Profiles(duration_us=_means(durations), gap_us=_means(gaps))


def alone(problem: Problem, tenant: int, jobs: int) -> Problem:
    """The problem of one tenant that runs ``jobs`` jobs one after the other, with the GPU to itself."""
    program = problem.programs[tenant]
    changed = msgspec.structs.replace(program.tenant, arrivals=ClosedLoop(), jobs=jobs)
    lone = dataclasses.replace(program, tenant=changed, replay=None)
    scenario = msgspec.structs.replace(problem.scenario, tenants=(changed,), horizon_us=math.inf, workload_sets=None)
    return dataclasses.replace(problem, scenario=scenario, programs=(lone,))


def _means(samples: list[list[float]]) -> NDArray[np.float64]:
    return np.array([sum(s) / len(s) if s else math.nan for s in samples], np.float64)


GPU = "rtx-3090"
"""Stands in for the paper's, which is not known."""
EPSILON_US = 100.0
"""Gaps that FIKIT leaves idle between processes: the paper's threshold as it is remembered, not known for certain. A
switch there and back costs more than most gaps are long. Under MPS, where there is none, it is the scheduler's
default."""
COST_US = 1.0
"""Host time that FIKIT's interception adds to a decision. It is not stated, only that its overhead is below 5 %."""

DEFAULT, EXCLUSIVE, FIKIT, UNDER_MPS = "default sharing", "exclusive", "FIKIT", "FIKIT under MPS"
AS_PROCESSES = f"contexts=per-tenant,interception_us={COST_US}"
"""Arguments of a FIKIT whose services are processes that the GPU switches between."""
SHARED = f"contexts=shared,interception_us={COST_US}"
"""Arguments of a FIKIT whose services share a context."""
CONTINUOUS = {
    DEFAULT: "time-slicing",
    EXCLUSIVE: "exclusive",
    FIKIT: f"fikit({AS_PROCESSES},epsilon_us={EPSILON_US})",
    UNDER_MPS: f"fikit({SHARED})",
}
"""Both services without a pause: schedulers by the paper's name of a mode. In exclusive mode jobs take turns in order
of arrival, whatever their priority."""

NEVER_US = 1e9
"""A threshold that no gap reaches."""


class SharingMode(NamedTuple):
    """The setting in which FIKIT is judged, and its mechanisms switched off there, one at a time: modes."""

    gpu: str
    fikit: str
    nothing_filled: str
    """The threshold lies above every gap; the less urgent wait while anybody more urgent has a job."""
    one_queue: str
    """No priorities: the oldest job holds the GPU, whosever it is. Gaps are filled."""

    @property
    def text(self) -> str:
        """The setting in words, for tables."""
        return f"{self.gpu}, {'MPS' if self.fikit == UNDER_MPS else 'processes'}"


PROCESSES = SharingMode(GPU, FIKIT, "FIKIT, nothing filled", "FIKIT, one queue")
"""The setting as the paper is remembered: services are processes. Nearly every gap is shorter than the threshold."""
MPS = SharingMode(RECORDED_ON, UNDER_MPS, "FIKIT under MPS, nothing filled", "FIKIT under MPS, one queue")
"""The recordings as they are, with a threshold below the gaps: here gaps are filled."""
SETTINGS = (PROCESSES, MPS)
IN_TURN = (EXCLUSIVE, PROCESSES.one_queue, MPS.one_queue)
"""Modes in which jobs wait for whole jobs of others."""
NO_SCHEDULER = "MPS alone"
"""What remains of FIKIT under MPS without FIKIT; of processes that is default sharing."""
CONTROLS = {
    PROCESSES.nothing_filled: f"fikit({AS_PROCESSES},epsilon_us={NEVER_US})",
    PROCESSES.one_queue: f"fikit({AS_PROCESSES},epsilon_us={EPSILON_US},queues=1)",
    MPS.nothing_filled: f"fikit({SHARED},epsilon_us={NEVER_US})",
    MPS.one_queue: f"fikit({SHARED},queues=1)",
    NO_SCHEDULER: "mps",
}

LOADS = (0.1, 0.3)
"""Loads of intermittent high-priority requests: shares of the time that they would take alone. Not stated."""
SHARED_NOW_AND_THEN = {PROCESSES: LOADS[:1], MPS: LOADS}
"""Loads by setting. Between processes hardly anything is filled at any."""


def now_and_then(mode: str, load: float) -> str:
    """The ``mode`` in which high-priority requests come now and then, at ``load``."""
    return f"{mode}, intermittent, {load:.0%}"


_NOW_AND_THEN = {
    now_and_then(mode, load): (load, mode)
    for setting, loads in SHARED_NOW_AND_THEN.items()
    for load in loads
    for mode in (DEFAULT, setting.fikit, setting.nothing_filled)
}
INTERMITTENT = {mode: load for mode, (load, _) in _NOW_AND_THEN.items()}
"""Preemptive sharing: the low-priority service runs without a pause, high-priority requests come now and then. Loads by
mode."""
SLICES = {f"{DEFAULT}, slice of {slice_us / 1e3:g} ms": slice_us for slice_us in (1000.0, 4000.0)}
"""Time slices (us) besides the GPU's own 2 ms; Gilman and Walls also speak of 4 ms."""
ALONE, FIKIT_ALONE, MEASURED = "alone", "FIKIT alone", "measurement stage"
INTERCEPTED = {cost_us: f"FIKIT alone, {cost_us:g} us" for cost_us in (2.0, 5.0, 10.0)}
"""Costs of interception besides :data:`COST_US`."""
BY_ITSELF = {
    ALONE: "pass-through",
    FIKIT_ALONE: CONTINUOUS[FIKIT],
    MEASURED: "fifo",
    **{mode: f"fikit(interception_us={cost_us})" for cost_us, mode in INTERCEPTED.items()},
}
"""One service: without a scheduler; through FIKIT's interception; one kernel at a time, as while it is measured."""

RIGHT, MEASURED_IN, RUNS = "right profiles", "measured in 3 runs", 3
CASES = {
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
CONTEXTS, EPSILONS_US = ("shared", "per-tenant"), (3.0, 20.0, 50.0, 100.0, 200.0)
SWEEP = {of: f"FIKIT, {of[0]}, threshold {of[1]:g} us" for of in itertools.product(CONTEXTS, EPSILONS_US)}
"""Services under MPS or as processes, and thresholds of the gaps that are filled, with right profiles."""
MODES = {
    **CONTINUOUS,
    **CONTROLS,
    **{mode: ({**CONTINUOUS, **CONTROLS})[of] for mode, (_, of) in _NOW_AND_THEN.items()},
    **BY_ITSELF,
    **dict.fromkeys(SLICES, CONTINUOUS[DEFAULT]),
    **dict.fromkeys(CASES, CONTINUOUS[UNDER_MPS]),
    **{
        mode: f"fikit(contexts={contexts},epsilon_us={epsilon_us},interception_us={COST_US})"
        for (contexts, epsilon_us), mode in SWEEP.items()
    },
}


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
"""Numbers of them with which FIKIT is also run with nothing filled, and nothing of it under MPS."""
TRIED = (("RetinaNet", "FCN-50"), ("FCOS", "ResNet-50"), ("Faster R-CNN", "FCN-101"), ("ResNet-101", "ResNet-50"))
"""Pairs for wrong profiles and thresholds, on the recordings as they are, where gaps are filled most: services without
a pause, of which the low-priority one lives on the gaps alone; chosen for gaps in the first and launches that fit into
them."""


@dataclass(frozen=True, slots=True)
class FikitOutcome:
    """What one run comes to."""

    high_us: float
    """Mean job completion time (turnaround) of the high-priority service; NaN if no job completed."""
    low_us: float
    """The same of the low-priority services; NaN without one."""
    low_share: float
    """Profiled device time of the low-priority services' finished kernels over the length of the run."""


@dataclass(frozen=True, slots=True)
class FikitRun:
    """A run of a service beside others under a mode."""

    gpu: str
    high: str
    """The high-priority service, one of :data:`NETWORKS`."""
    low: str | None
    """The low-priority service, one of :data:`NETWORKS`; ``None``: the other is by itself."""
    mode: str
    """The mode's name, one of :data:`MODES`."""
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
    """The mean over all values; NaN if there are none."""
    found = np.concatenate([np.zeros(0), *values])
    return float(found.mean()) if len(found) else math.nan


@functools.cache
def _alone_us(gpu: str, network: str) -> float:
    return situation([tenant(NETWORKS[network])], gpu).programs[0].alone_us
