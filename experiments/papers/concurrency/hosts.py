"""How fast the paper's hosts were, and how threads of one process slow each other."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import (
    AT_WORK,
    RECORDED_ON,
    WAITING,
    measurements,
    situation,
    tenant,
    turnarounds_us,
)
from gpusched_env.scenarios.building import load_workload
from gpusched_env.workload.carry_over import with_scaled_durations
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Workload

BLOCKS_WORK_LONGER = re.compile(
    r"batch_norm_(backward|collect)|wgrad|reduce|gammabeta|embedding_backward", re.IGNORECASE
)
"""Kernels that reduce over the batch: their grid follows the channels or weights, each block loops over the samples."""
BATCH_LEAVES_ALONE = re.compile(r"multi_tensor_apply|fillfunctor", re.IGNORECASE)
"""Kernels over the parameters (optimiser, zeroed gradients): the batch size is nothing to them."""
FEWEST_BLOCKS = 8
"""Smaller grids work on scalars and small vectors, not on the batch."""


def at_batch(workload: Workload, factor: int) -> Workload:
    """A training step of ``workload`` with ``factor`` times the batch.

    Kernels over samples get ``factor`` times the blocks, kernels that reduce over the batch blocks that take
    ``factor`` times as long, kernels over parameters stay; either way the duration grows by ``factor``.
    """
    kernels = tuple(_grown(kernel, factor) for kernel in workload.kernels)
    grows = (new is not old for new, old in zip(kernels, workload.kernels, strict=True))
    return msgspec.structs.replace(
        workload,
        name=f"{workload.name}_x{factor}",
        source=f"{workload.source}; extrapolated to {factor} times the batch",
        kernels=kernels,
        **with_scaled_durations(workload, [factor if grown else 1.0 for grown in grows]),
    )


def _grown(kernel: Kernel, factor: int) -> Kernel:
    if BATCH_LEAVES_ALONE.search(kernel.name) or kernel.blocks < FEWEST_BLOCKS:
        return kernel
    x, y, z = kernel.grid
    return msgspec.structs.replace(
        kernel,
        grid=kernel.grid if BLOCKS_WORK_LONGER.search(kernel.name) else (x * factor, y, z),
        duration_us=kernel.duration_us * factor,
        dram_bytes=None if kernel.dram_bytes is None else kernel.dram_bytes * factor,
    )


REQUESTS, ADDED_S, SLICED = 5000, 90.0, 1.18
"""Requests one after the other; by how much longer ResNet-50's training took under time slicing, and their turnaround
over that alone (notes on the paper's text and slides)."""
BOUND_US = ADDED_S * 1e6 / (REQUESTS * SLICED)
"""A request alone took at least 15.3 ms: if the training stood still all the while. It is the host speed of the
judged setting, and not fitted."""
LEAST_ADDED_S = 50.0
"""Least that any of the notes says of time slicing, for some network: at least 8.5 ms."""
RECORDED = 0.0
"""Stands in place of a time of a request alone: hosts as they were recorded."""
SWEPT_US = (RECORDED, LEAST_ADDED_S * 1e6 / (REQUESTS * SLICED), BOUND_US, 2.0 * BOUND_US, 4.0 * BOUND_US)
"""Times of a ResNet-50 request alone."""

AT_WORK_MOST, WAITING_MOST = 0.95, 0.48
"""The largest recorded, DenseNet-201's 1.95; waiting taken to be half of it, as for ResNet-50."""


def with_host_times(workload: Workload, factor: float) -> Workload:
    """A workload whose host times are ``factor`` times as long; of one host thread."""
    variants = tuple(
        msgspec.structs.replace(
            variant, ops=tuple(msgspec.structs.replace(op, host_us=op.host_us * factor) for op in variant.ops)
        )
        for variant in workload.variants
    )
    return msgspec.structs.replace(workload, variants=variants)


@functools.cache
def host_factor(inference: str, gpu: str, alone_us: float) -> float:
    """The factor on host times with which a request of a recorded ``inference`` alone takes ``alone_us`` on ``gpu``."""
    if alone_us == RECORDED:
        return 1.0
    recorded, slower = (
        situation([tenant(inference, iteration_us=us)], gpu).programs[0].variants for us in (None, alone_us)
    )
    host_us, recorded_us = (sum(op.host_us for job in jobs for op in job) for jobs in (slower, recorded))
    return host_us / recorded_us


def workloads(inference: str, training: str, gpu: str, batch: int, alone_us: float) -> Mapping[str, Any]:
    """Both, the training at ``batch`` times the batch, with hosts of the speed that ``alone_us`` says."""
    factor = host_factor(inference, gpu, alone_us)
    found = {inference: load_workload(inference), training: at_batch(load_workload(training), batch)}
    return {name: with_host_times(workload, factor) for name, workload in found.items()}


NETWORKS = (("resnet50", 256), ("resnet50", 32), ("alexnet", 256), ("vgg16", 256))
"""Inference beside ResNet-50 training at this batch; the first is what the waiting host's share is set by."""
TRAINING, TRAINING_BATCH = "resnet50_train_b32", 32
ANSWERED = 150
HOSTS = {
    "apart": (0.0, 0.0),
    "at work": (AT_WORK, 0.0),
    "at work and waiting": (AT_WORK, WAITING),
}
"""Shares by which hosts slow each other: at work, and waiting for the GPU."""


@dataclass(frozen=True, slots=True)
class Slowdown:
    """Mean turnaround under priority streams over that alone."""

    simulated: float
    recorded: float


@dataclass(frozen=True, slots=True)
class OneProcess:
    """Inference and training that are launched kernel by kernel by two threads, under priority streams."""

    network: str
    batch: int
    hosts: str
    """How hosts slow each other, one of :data:`HOSTS`."""

    def run(self, device: str) -> Slowdown:
        rows = [
            row
            for row in measurements("sharing_modes.jsonl")
            if (row["inference"], row["batch"], row["form"]) == (self.network, self.batch, "eager")
        ]
        alone, together = (next(r for r in rows if r["what"] == what) for what in ("alone", "priority streams"))
        name, grown = f"{self.network}_fp32_infer_b1", self.batch // TRAINING_BATCH
        given = workloads(name, TRAINING, RECORDED_ON, grown, RECORDED)
        tenants = [
            tenant(name, jobs=ANSWERED + 1, iteration_us=alone["inference_us"]["mean_us"]),
            tenant(TRAINING, priority=1),
        ]
        if grown == 1:
            tenants[1]["iteration_us"] = alone["training_us"]["mean_us"]
        at_work, waiting = HOSTS[self.hosts]
        took = []
        for some in (tenants, tenants[:1]):
            problem = situation(some, RECORDED_ON, workloads=given, host_contention=at_work, waiting_contention=waiting)
            episode = play("priority-streams", problem, seed=0, device=device)
            took.append(float(np.mean(turnarounds_us(episode, skip=1)[0])))
        recorded = together["inference_us"]["mean_us"] / alone["inference_us"]["mean_us"]
        return Slowdown(took[0] / took[1], recorded)


def one_process_cells() -> list[OneProcess]:
    """Every network, with hosts apart, and slowing each other."""
    return [OneProcess(*network, hosts) for network in NETWORKS for hosts in HOSTS]
