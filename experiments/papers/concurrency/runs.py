"""The paper's experiments as runs, and its networks beside their own training on a real GPU."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np

from gpusched_env.episodes.session import Episode
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import (
    AT_WORK,
    WAITING,
    RequestFigures,
    finished_kernels,
    measurements,
    requests_of,
    situation,
    tenant,
    turnarounds_us,
    work_rate,
)
from gpusched_env.experiments.papers.concurrency.hosts import (
    AT_WORK_MOST,
    BOUND_US,
    RECORDED,
    SWEPT_US,
    WAITING_MOST,
    with_host_times,
    workloads,
)
from gpusched_env.hardware.specs import Contention
from gpusched_env.hardware.timing import save_us, state_bytes
from gpusched_env.scenarios.building import build_problem, load_workload
from gpusched_env.scenarios.problem import Problem
from gpusched_env.workload.workload import OpKind

FOLDER, GPU = "h200", "h200-sxm"
"""Measurements, and the GPU that they were made on."""
SCHEDULERS: Final = {
    "time slicing": "time-slicing",
    "streams": "pass-through",
    "priority streams": "priority-streams",
}
"""Schedulers by the recorded mode."""
LAUNCHERS: Final = ("eager", "compiled")
NETWORKS: Final = {"vgg19": "VGG-19", "densenet201": "DenseNet-201", "resnet152": "ResNet-152"}
SHARED_HORIZON_US, SHARED_STEPS_ALONE = 600_000.0, 4
"""Horizon of a simulation of both, in which every training makes four steps or more; and steps of training alone."""
REQUESTS_ALONE = 50
Row = Mapping[str, Any]


@functools.cache
def shared_rows() -> dict[tuple[str, str, str], Row]:
    """What was recorded without an error, by network, launcher and mode; the last of each."""
    rows = measurements("sharing.jsonl", FOLDER)
    return {(row["inference"], row["form"], row["what"]): row for row in rows if "error" not in row}


def mean_us(row: Row, task: str) -> float:
    """Mean time of a task of a row: ``inference``, ``training``, ``alone_training``; NaN if it never ended."""
    value = row[f"{task}_us"]["mean_us"]
    return math.nan if value is None else float(value)


@dataclass(frozen=True, slots=True)
class SharedSlowdown:
    """Mean time of requests and of training steps, each over that alone."""

    turnaround: float
    training: float


@dataclass(frozen=True, slots=True)
class SharedRun:
    """Inference beside training of the same network."""

    network: str
    """The network's name, one of :data:`NETWORKS`."""
    launcher: str
    """How kernels are launched, one of :data:`LAUNCHERS`."""
    mode: str
    """The recorded mode, one of :data:`SCHEDULERS`."""

    def run(self, device: str) -> SharedSlowdown:
        rows = shared_rows()
        alone = rows[self.network, self.launcher, "alone"]
        names = f"{self.network}_fp32_infer_b1", f"{self.network}_fp32_train_b{alone['batch']}"
        given = {names[1]: with_host_times(load_workload(names[1]), training_hosts(self.launcher))}
        tenants = [
            tenant(names[0], iteration_us=mean_us(alone, "inference")),
            tenant(names[1], priority=1),
        ]
        at_work, waiting = (0.0, 0.0) if self.mode == "time slicing" else host_shares(self.network, self.launcher)
        hosts = {"host_contention": at_work, "waiting_contention": waiting}
        both = situation(tenants, GPU, SHARED_HORIZON_US, given, **hosts)
        together_us = _means_us(play(SCHEDULERS[self.mode], both, seed=0, device=device))
        alone_us = []
        for each, jobs in zip(tenants, (REQUESTS_ALONE, SHARED_STEPS_ALONE), strict=True):
            only = situation([{**each, "jobs": jobs + 1}], GPU, workloads=given)
            alone_us += _means_us(play("pass-through", only, seed=0, device=device))
        return SharedSlowdown(*(together / apart for together, apart in zip(together_us, alone_us, strict=True)))

    def recorded(self) -> SharedSlowdown:
        """The slowdown that was recorded on the GPU."""
        rows = shared_rows()
        alone, together = (rows[self.network, self.launcher, what] for what in ("alone", self.mode))
        return SharedSlowdown(*(mean_us(together, task) / mean_us(alone, task) for task in ("inference", "training")))


def _means_us(episode: Episode) -> list[float]:
    """Mean turnarounds of each tenant's jobs after the first (cold) one; NaN where there is none."""
    return [float(np.mean(took)) if len(took) else math.nan for took in turnarounds_us(episode, skip=1)]


def training_hosts(launcher: str) -> float:
    """Factor on the host times of a recorded training: 1 where Python launches, as in the recording.

    A training is bound by the GPU, so that its length does not tell how fast its host is. The small training of
    ``hosts only`` is bound by its host.
    """
    if launcher == "eager":
        return 1.0
    rows = shared_rows()
    ratios = [
        mean_us(rows[name, launcher, "hosts only"], "alone_training")
        / mean_us(rows[name, "eager", "hosts only"], "alone_training")
        for name in NETWORKS
    ]
    return float(np.median(ratios))


def host_shares(network: str, launcher: str) -> tuple[float, float]:
    """Shares by which the other thread lengthens host times while it is at work, and while it waits for the GPU.

    At work: recorded beside a training that hardly uses the GPU. Waiting: as much less as for ResNet-50.
    """
    rows = shared_rows()
    alone, hosts = (mean_us(rows[network, launcher, what], "inference") for what in ("alone", "hosts only"))
    at_work = max(0.0, hosts / alone - 1.0)
    return at_work, at_work * WAITING / AT_WORK


def shared_cells() -> list[SharedRun]:
    """All that was recorded in full."""
    rows = shared_rows()
    return [
        SharedRun(network, launcher, mode)
        for network in NETWORKS
        for launcher in LAUNCHERS
        for mode in SCHEDULERS
        if all((network, launcher, what) in rows for what in ("alone", "hosts only", mode))
    ]


GPUS = {"rtx-3090": 4, "h100-sxm": 12}
"""Factors by which a recorded training batch grows until memory is full (24 and 80 GB): ResNet-50 from 32 to 128
samples on an RTX 3090, where it spends 59 % of its time in kernels of more than 1 ms (published: 57 %)."""
FULL = {"rtx-3090": 1, "h100-sxm": 5}
"""The same of trainings that were recorded at the largest power of two that fits into 24 GB: they take 13 to 14 GB
(``memory_bytes`` of ``sharing.jsonl``)."""


@dataclass(frozen=True, slots=True)
class NetworkPair:
    """Inference beside training."""

    inference: str
    training: str
    growth: Mapping[str, int] = field(default_factory=lambda: GPUS)
    """The factor by which the training's batch grows, by GPU."""
    shares: tuple[float, float] = (AT_WORK, WAITING)
    """Shares by which threads of one process slow each other's hosts: at work, and waiting for the GPU."""


def _own(network: str, batch: int) -> NetworkPair:
    names = f"{network}_fp32_infer_b1", f"{network}_fp32_train_b{batch}"
    return NetworkPair(*names, FULL, host_shares(network, "eager"))


PAIRS: dict[str, NetworkPair] = {
    "ResNet-50": NetworkPair("resnet50_fp32_infer_b1", "resnet50_train_b32"),
    "ResNet-152": _own("resnet152", 64),
    "VGG-19": _own("vgg19", 128),
    "DenseNet-201": _own("densenet201", 64),
    "AlexNet": NetworkPair("alexnet_fp32_infer_b1", "resnet50_train_b32"),
    "BERT": NetworkPair("bert_infer_b1_s128", "bert_train_b16_s128"),
}
"""Pairs by the name of the inference network."""
ARRIVALS = ("sequential", "poisson")
SERVER_LOAD = 0.5
"""Load of random arrivals: requests a second times the time of a request alone."""
KEEP_OPEN_US = 40.0
"""Gaps shorter than the paper's estimate of a save are kept open."""
RESERVED = 0.25
"""Share of the SMs that are kept open for requests: 20 of an RTX 3090's 82."""
REQUESTS = 50
"""Requests of each run in the judged setting, after a first (cold) one."""
SEEDS = (0, 1, 2)
"""Seeds of the judged setting: which recorded iterations requests and training steps repeat."""
HORIZON_US = 200_000.0
"""Length of each run in the other settings, with one seed and the hosts of the recordings."""

ALONE = ("inference alone", "training alone")
PAPERS = ("rtx-3090", "ResNet-50", "sequential")
"""The paper's own setting: the one pair that is both its and recorded."""
STEPS_ALONE = 3
"""Training steps that are run to see how fast they are alone."""
MECHANISMS = {
    "priority streams": "priority-streams",
    "time slicing": "time-slicing",
    "MPS": "mps(share=100)",
    "MPS, half of the SMs": "mps(share=50)",
    "exclusive": "exclusive",
    "preemptive": "preemptive-priority(spread=false)",
    "preemptive, an SM a block": "preemptive-priority",
    "preemptive, SMs reserved": f"preemptive-priority(spread=false,reserved={RESERVED})",
    "preemptive, room kept open": f"preemptive-priority(keep_open_us={KEEP_OPEN_US})",
    "preemptive, at block ends": "preemptive-priority(mode=drain)",
}
"""Schedulers by the paper's name of a mechanism. Preemption saves the blocks on as many SMs as hold those of the kernel
that comes, or on as many as it would use on an empty GPU."""
SAVED, UNSLICED = "priority streams, blocks saved", "time slicing, slices of 1 s"
UNCONTENDED, WHOLE = "MPS, no contention", "preemptive, SMs reserved, whole kernels"
SWITCHED_OFF = {
    SAVED: "preemptive-priority(spread=false)",
    UNSLICED: "time-slicing(slice_us=1000000)",
    UNCONTENDED: "mps(share=100)",
    WHOLE: f"preemptive-priority(fine=false,spread=false,reserved={RESERVED})",
}
"""Schedulers of controls, in which one mechanism is switched off. Without contention blocks run as if alone on the
GPU."""
APART, MOST = "priority streams, hosts apart", "priority streams, DenseNet-201's hosts"
ONE_PROCESS = ("priority streams", SAVED)
"""Mechanisms with both tasks as threads of one process, whose hosts slow each other: priority streams need that, and do
in :data:`MOST` as much as the largest recorded shares say. Elsewhere they are processes."""
NO_CONTENTION = Contention(issue=False, oldest_first=False, light_wait=False, dram=False)
SWEPT = ("priority streams", "time slicing", "MPS", "preemptive", APART, MOST)
"""Mechanisms that run at every host speed."""
PREEMPT = 1
"""Code of a preemption in the timeline's decisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures(RequestFigures):
    """The figures of one run: the inference's requests, and the training. NaN where there is no such tenant."""

    utilisation: float
    """Share of the SM-time with a resident block."""
    preemptions: float = math.nan
    """Preemptions per request."""
    training_rate: float = math.nan
    """Profiled device time of the training's completed kernels over the length of the run."""
    training_stretch: float = math.nan
    """Time from start to end of the training's kernels that were never preempted, over their profiled durations."""
    full_save_us: float = math.nan
    """Time to save a kernel of the training with all blocks that the GPU holds of it: the mean over its work."""


@dataclass(frozen=True, slots=True)
class ConcurrencyRun:
    """A run of a pair under a mechanism."""

    gpu: str
    pair: str
    arrivals: str
    mechanism: str
    """One of :data:`MECHANISMS`, :data:`SWITCHED_OFF`, :data:`SWEPT` or :data:`ALONE`."""
    alone_us: float = RECORDED
    """How fast hosts are: the time of a request alone, or :data:`RECORDED`."""
    seed: int = 0
    jobs: int | None = None
    """The run ends when as many requests have been answered after the first; ``None``: at :data:`HORIZON_US`."""

    def run(self, device: str) -> RunFigures:
        known = {**MECHANISMS, **SWITCHED_OFF, **dict.fromkeys(ALONE, "pass-through")}
        scheduler = known.get(self.mechanism, "priority-streams")
        episode = play(scheduler, self.problem(), seed=self.seed, device=device, record="kernels")
        found: dict[str, Any] = {"utilisation": episode.costs.busy_sm_us / (episode.problem.gpu.sms * episode.end_us)}
        for row, each in enumerate(episode.problem.scenario.tenants):
            found |= (_requests if each.name == "inference" else _training)(episode, row)
        return RunFigures(**found)

    def problem(self) -> Problem:
        """Tenants are ``inference`` and ``training``, or one of them."""
        pair = PAIRS[self.pair]
        inference, training = pair.inference, pair.training
        given = workloads(inference, training, self.gpu, pair.growth[self.gpu], self.alone_us)
        horizon_us = HORIZON_US if self.jobs is None else math.inf
        jobs = None if self.jobs is None else self.jobs + 1
        tenants = [tenant(inference, name="inference", jobs=jobs), tenant(training, name="training", priority=1)]
        if self.mechanism in ALONE:
            tenants = [tenants[ALONE.index(self.mechanism)]]
        if self.jobs is not None and self.mechanism == ALONE[1]:
            tenants[0] |= {"jobs": STEPS_ALONE}
        at_work, waiting = pair.shares if self.mechanism in ONE_PROCESS else (0.0, 0.0)
        if self.mechanism == MOST:
            at_work, waiting = AT_WORK_MOST, WAITING_MOST
        hosts = {"host_contention": at_work, "waiting_contention": waiting}
        problem = situation(tenants, self.gpu, horizon_us, given, **hosts)
        if self.arrivals == "poisson" and self.mechanism != ALONE[1]:
            rate = SERVER_LOAD * 1e6 / problem.programs[0].alone_us
            tenants[0] |= {"arrivals": {"kind": "poisson", "rate_per_s": rate}}
            problem = situation(tenants, self.gpu, horizon_us, given, **hosts)
        if self.mechanism == UNCONTENDED:
            gpu = msgspec.structs.replace(problem.gpu, contention=NO_CONTENTION)
            return build_problem(problem.scenario, gpu=gpu, workloads=given)
        return problem


def judged_cells() -> list[ConcurrencyRun]:
    """The paper's own setting, at all host speeds; the judged one with every mechanism."""
    cells = []
    for alone_us, seed in itertools.product(SWEPT_US, SEEDS):
        mechanisms = [*MECHANISMS, APART, MOST, *SWITCHED_OFF] if alone_us == BOUND_US else SWEPT
        cells += [ConcurrencyRun(*PAPERS, each, alone_us, seed, REQUESTS) for each in (*ALONE, *mechanisms)]
    return cells


def all_cells(gpus: tuple[str, ...] = tuple(GPUS), pairs: tuple[str, ...] = tuple(PAIRS)) -> list[ConcurrencyRun]:
    """Runs of all settings but the paper's own; training alone does not depend on the arrivals, and runs once."""
    cells = []
    for where in itertools.product(gpus, pairs, ARRIVALS):
        if where != PAPERS:
            alone = ALONE if where[-1] == "sequential" else ALONE[:1]
            cells += [ConcurrencyRun(*where, each) for each in (*MECHANISMS, *alone)]
    return cells


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
