"""What is simulated: mixes of models on an MI50 under the paper's schedulers, and under one without its masks."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from gpusched_env.episodes.session import Episode
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import tenant
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import build_problem, load_workload
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.vector_units import by_vector_units
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

GPU: Final = "mi50"
BASELINE, MODEL_WISE, PREALLOC, IOCTL, ECLIP = "baseline", "model-wise", "KW-Prealloc", "KW-IOCTL", "ECLIP"
OWN = "own streams"
"""No part of the paper: each worker has a stream of its own, none has a mask."""
SCHEDULERS: Final = {
    BASELINE: "default-stream", OWN: "pass-through", MODEL_WISE: "model-wise", PREALLOC: "kernel-wise",
    IOCTL: "kernel-wise-ioctl", ECLIP: "eclip",
}  # fmt: skip
RECORDED: Final = {
    "albert": ("bert_infer_b1_s128", 304), "densenet201": ("mobilenetv3_infer_b1", 711),
    "vgg19": ("vgg16_fp32_infer_b1", 62), "alexnet": ("alexnet_fp32_infer_b1", 34),
    "resnet152": ("resnet101_fp32_infer_b1", 517), "resnext101": ("resnet101_fp32_infer_b1", 440),
    "shufflenet": ("mobilenetv3_infer_b1", 288),
}  # fmt: skip
"""What stands in for each model, and the kernels of a request that the paper's Table I implies."""
MIXES: Final = {
    1: ("albert", "albert", "densenet201"), 2: ("albert", "densenet201"), 3: ("albert", "densenet201", "vgg19"),
    4: ("alexnet", "resnet152", "vgg19"), 5: ("resnext101", "shufflenet"), 6: ("densenet201", "densenet201"),
    7: ("alexnet", "alexnet", "alexnet"),
}  # fmt: skip
"""The paper's Table I; its "resnet15" has the kernels of a ResNet-152."""
HORIZON_US = 400_000.0
HOST_US = 5.0
"""Of a worker's host for each launch: the paper's load is the most that is served, so that the GPU is the limit."""
BARRIER_US = load_gpu(GPU).timing.event_latency_us
CHANGES = 14


@dataclass(frozen=True, slots=True)
class Served:
    """Of a mix; by worker where it is a tuple."""

    jobs: tuple[int, ...]
    throughput_per_s: tuple[float, ...]
    p95_us: tuple[float, ...]
    switches: tuple[float, ...]
    """Changes of the hardware queue, or calls for a mask, in a request."""
    energy_j: float
    end_us: float
    jobs_per_j: float

    @property
    def total_per_s(self) -> float:
        """Requests a second of all workers."""
        return sum(self.throughput_per_s)

    @property
    def power_w(self) -> float:
        return self.energy_j / (self.end_us * 1e-6)


@dataclass(frozen=True, slots=True)
class Mixed:
    """A mix under a scheduler."""

    mix: int
    scheduler: str
    host_us: float | None = HOST_US
    """``None``: hosts as recorded."""
    barrier_us: float = BARRIER_US
    changes: int = CHANGES

    def run(self, device: str) -> Served:
        name = SCHEDULERS[self.scheduler] + (f"(changes={self.changes})" if self.scheduler == ECLIP else "")
        episode = play(name, problem(self.mix, self.host_us, self.barrier_us), 0, device=device, record="kernels")
        metrics = episode.metrics
        return Served(
            jobs=tuple(tenant.completed for tenant in metrics.tenants),
            throughput_per_s=tuple(tenant.throughput_per_s for tenant in metrics.tenants),
            p95_us=tuple(tenant.turnaround_p95_us for tenant in metrics.tenants),
            switches=tuple(_switches(episode, self.scheduler)),
            energy_j=metrics.energy_j,
            end_us=metrics.end_us,
            jobs_per_j=metrics.jobs_per_j,
        )


@functools.lru_cache(maxsize=32)
def problem(mix: int, host_us: float | None, barrier_us: float) -> Problem:
    """The workers of a mix, each a closed loop of one model's requests."""
    gpu = load_gpu(GPU)
    gpu = msgspec.structs.replace(gpu, timing=msgspec.structs.replace(gpu.timing, event_latency_us=barrier_us))
    workloads = {model: scaled(*RECORDED[model]) for model in MIXES[mix]}
    hosts = {} if host_us is None else {"host_us": host_us}
    scenario = make_scenario(
        {
            "name": "ECLIP", "gpu": GPU, "horizon_us": HORIZON_US, "variation": False,
            "tenants": [tenant(model, **{"name": f"{model} {w}"}, **hosts) for w, model in enumerate(MIXES[mix], 1)],
        }
    )  # fmt: skip
    return build_problem(scenario, gpu=gpu, workloads=workloads)


def scaled(name: str, kernels: int) -> Workload:
    """A recorded workload with so many kernels a request: each comes as often as any other, one more or less, and where
    it was; or only every so many of them come."""
    workload = load_workload(name)
    ops = workload.variants[0].ops
    launches = [place for place, op in enumerate(ops) if op.kind is OpKind.KERNEL]
    times = np.bincount(np.arange(kernels) * len(launches) // kernels, minlength=len(launches))
    often = dict(zip(launches, times.tolist(), strict=True))
    found: list[Op] = [op for place, op in enumerate(ops) for _ in range(often.get(place, 1))]
    iteration_us = workload.iteration_us[0] * kernels / len(launches)
    scaled = msgspec.structs.replace(workload, variants=(Variant(ops=tuple(found)),), iteration_us=(iteration_us,))
    return by_vector_units(scaled)


def _switches(episode: Episode, scheduler: str) -> Iterator[float]:
    """By worker, switches of a request, mean of those between the first and the last one; of IOCTL one a kernel."""
    kernels = episode.timeline.kernels.dict()
    for worker in range(len(episode.problem.programs)):
        mine = kernels["tenant"] == worker
        mine &= (kernels["job"] > 0) & (kernels["job"] < kernels["job"][mine].max())
        order = np.argsort(kernels["id"][mine])
        streams, jobs = (kernels[name][mine][order] for name in ("stream", "job"))
        changes = np.count_nonzero((np.diff(streams) != 0) & (np.diff(jobs) == 0))
        yield float(len(jobs) if scheduler == IOCTL else changes) / max(1, len(np.unique(jobs)))
