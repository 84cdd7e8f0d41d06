"""The artefact's experiments as runs: two requests' loops on a GPU, and suspensions of a queue of equal kernels."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from gpusched_env.baselines.xsched import XSched
from gpusched_env.baselines.xsched_partition import XSchedPartition
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import situation, tenant, turnarounds_us
from gpusched_env.experiments.papers.xsched.network import Runtime, resnet152
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.workload.workload import Workload


class Board(NamedTuple):
    """How the artefact ran ResNet-152 on a board."""

    gpu: str
    alone_us: float
    """Median latency of a request alone, an input."""
    runtime: Runtime
    batch: int
    level: int
    """Of the background's queue under fixed priority."""
    gaps_us: tuple[float, float]
    """Least and most time between two requests of the foreground."""
    requests: int
    """Of the foreground that are simulated."""
    processes: bool
    """Whether the driver gives the GPU to one process at a time."""


BOARDS: Final = {
    "GV100": Board("v100-sxm", 6487.0, "engine", 1, 2, (17_000.0, 48_000.0), 300, processes=True),
    "MI50": Board("mi50", 29_140.0, "eager", 8, 1, (1e6 / 7, 1e6 / 7), 100, processes=False),
}
HOST_US: Final = 2.5
"""Host time of a launch: what the V100's specification says of a call."""
FOREGROUND, BACKGROUND = 0, 1
NATIVE, XSCHED = "native", "XSched"
ALONE = "alone"
SHARES: Final = (3.0, 1.0)
HORIZON_US: Final = 3e6


@functools.cache
def network(board: str) -> Workload:
    """A board's requests."""
    of = BOARDS[board]
    return resnet152(of.gpu, of.alone_us, of.runtime, of.batch, HOST_US)


def scheduler(board: str, kind: type[XSched], **options: Any) -> XSched:
    """One of XSched's policies, over processes where the board's driver switches between them."""
    made = kind(**options)
    if BOARDS[board].processes:
        made.set_up = SetUp(contexts="per-tenant", commands=("preempt",))
    return made


def native(board: str) -> str:
    """Both processes as the driver runs them."""
    return "time-slicing" if BOARDS[board].processes else "pass-through"


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies of the foreground's requests (us)."""

    p50_us: float
    p99_us: float


@dataclass(frozen=True, slots=True)
class LatencyRun:
    """A foreground at a fifth of its capacity, alone or beside one that never pauses."""

    board: str
    mode: str
    level: int = 0
    """Of the background's queue; 0: the artefact's on this board."""

    def run(self, device: str) -> Latency:
        of = BOARDS[self.board]
        rng = np.random.default_rng(0)
        times_us = np.cumsum(rng.uniform(*of.gaps_us, of.requests))
        fore = tenant(
            network(self.board).name, name="foreground", arrivals={"kind": "trace", "times_us": times_us.tolist()},
            jobs=of.requests,
        )  # fmt: skip
        back = tenant(network(self.board).name, name="background", priority=1)
        tenants = [fore] if self.mode == ALONE else [fore, back]
        problem = situation(
            tenants, of.gpu, float(times_us[-1]) + 2.0 * of.alone_us, {network(self.board).name: network(self.board)},
            physics=2,
        )  # fmt: skip
        level = self.level or of.level
        made = scheduler(self.board, XSched, threshold=16, batch=8, urgent_threshold=64, level=level, interrupt="reset")
        episode = play(made if self.mode == XSCHED else native(self.board), problem, 0, device=device)
        took = turnarounds_us(episode)[FOREGROUND]
        return Latency(float(np.percentile(took, 50)), float(np.percentile(took, 99)))


@dataclass(frozen=True, slots=True)
class Throughput:
    """Completed requests a second of each loop."""

    per_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ThroughputRun:
    """Two loops without a pause, or one."""

    board: str
    mode: str

    def run(self, device: str) -> Throughput:
        of = BOARDS[self.board]
        tenants = [
            tenant(network(self.board).name, name=f"share {share:g}", weight=share)
            for share in (SHARES[:1] if self.mode == ALONE else SHARES)
        ]
        workloads = {network(self.board).name: network(self.board)}
        problem = situation(tenants, of.gpu, HORIZON_US, workloads, physics=2)
        made = scheduler(self.board, XSchedPartition, threshold=16, batch=8)
        episode = play(made if self.mode == XSCHED else native(self.board), problem, 0, device=device)
        return Throughput(tuple(each.throughput_per_s for each in episode.metrics.tenants))
