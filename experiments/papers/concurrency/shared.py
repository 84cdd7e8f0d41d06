"""The paper's networks beside their own training on a real GPU, as recorded and as simulated.

Two processes take turns; two threads of one process have streams. Threads slow each other's hosts: by the lock of
Python's interpreter where Python launches kernels, hardly where compiled code does. What hosts cost each other is
recorded (``hosts only``) and goes into the simulation, and how fast each task is alone; everything else is predicted.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gpusched_env.episodes.session import Episode
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import measurements, situation, tenant, turnarounds_us
from gpusched_env.experiments.papers.concurrency.hosts import AT_WORK, WAITING, with_host_times
from gpusched_env.scenarios.building import load_workload

FOLDER, GPU = "h200", "h200-sxm"
"""Measurements, and the GPU that they were made on."""
SCHEDULERS: Final = {
    "time slicing": "time-slicing",
    "streams": "pass-through",
    "priority streams": "priority-streams",
}
"""By the recorded mode."""
LAUNCHERS: Final = ("eager", "compiled")
NETWORKS: Final = {"vgg19": "VGG-19", "densenet201": "DenseNet-201", "resnet152": "ResNet-152"}
HORIZON_US, STEPS_ALONE = 600_000.0, 4
"""Of a simulation of both, in which every training makes four steps or more; and steps of training alone."""
REQUESTS_ALONE = 50
Row = Mapping[str, Any]


@functools.cache
def shared_rows() -> dict[tuple[str, str, str], Row]:
    """What was recorded without an error, by network, launcher and mode; the last of each."""
    rows = measurements("sharing.jsonl", FOLDER)
    return {(row["inference"], row["form"], row["what"]): row for row in rows if "error" not in row}


def mean_us(row: Row, task: str) -> float:
    """Of a task of a row: ``inference``, ``training``, ``alone_training``; NaN if it never ended."""
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
    """Of :data:`NETWORKS`."""
    launcher: str
    """Of :data:`LAUNCHERS`."""
    mode: str
    """Of :data:`SCHEDULERS`."""

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
        both = situation(tenants, GPU, HORIZON_US, given, **hosts)
        together_us = _means_us(play(SCHEDULERS[self.mode], both, seed=0, device=device))
        alone_us = []
        for each, jobs in zip(tenants, (REQUESTS_ALONE, STEPS_ALONE), strict=True):
            only = situation([{**each, "jobs": jobs + 1}], GPU, workloads=given)
            alone_us += _means_us(play("pass-through", only, seed=0, device=device))
        return SharedSlowdown(*(together / apart for together, apart in zip(together_us, alone_us, strict=True)))

    def recorded(self) -> SharedSlowdown:
        """The same on the GPU."""
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
    """By what share the other thread lengthens host times while it is at work, and while it waits for the GPU.

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
