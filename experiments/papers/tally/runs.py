"""Requests beside a training on an A100, under the systems that Tally is compared with."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import situation, tenant, turnarounds_us, work_rate
from gpusched_env.scenarios.building import load_workload
from gpusched_env.workload.serving import Decode, Prefill
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

GPU: Final = "a100-pcie-40gb"
LOAD: Final = 0.5
TALLY, SLICING, TGS, MPS_PRIORITY, MPS = "Tally", "time slicing", "TGS", "MPS with priority", "MPS"
SYSTEMS: Final = {
    TALLY: "tally", SLICING: "time-slicing", TGS: "tgs", MPS_PRIORITY: "mps(client_priority=true)", MPS: "mps",
}  # fmt: skip
UNBOUNDED: Final = "Tally, no bound"
"""A best-effort kernel may take as long as it likes to give way."""
ALONE: Final = "alone"
TRAININGS: Final = ("resnet50_train_b32", "bert_train_b16_s128", "vgg19_fp32_train_b128", "resnet152_fp32_train_b64")
REQUESTS: Final = {"BERT": 600, "Llama": 24}
HOST_US: Final = 3.0
"""Host time of a launch in a runtime that only launches, a guess."""
PROMPT, TOKENS, CONTEXT = 128, 8, 256
"""Of a request to the language model: prompt, answer, and the context that its decodes were recorded with."""
WEIGHTS: Final = 6.74 / 1.24
"""Weights of Llama-2-7B over those of the recorded model: its kernels take so much longer."""


@functools.cache
def requests_of(service: str) -> Workload:
    """What a request launches."""
    if service == "BERT":
        return load_workload("bert_infer_b1_s128")
    recorded = load_workload("llama_1b")
    steps = {variant.step: variant.ops for variant in recorded.variants}
    one = steps[Decode(batch=1, context=CONTEXT)]
    launched = [op for op in (*steps[Prefill(tokens=PROMPT)], *one * (TOKENS - 1)) if op.kind is OpKind.KERNEL]
    ops = [msgspec.structs.replace(op, duration_us=WEIGHTS * op.duration_us) for op in launched]
    kernels = tuple(
        msgspec.structs.replace(kernel, duration_us=WEIGHTS * kernel.duration_us) for kernel in recorded.kernels
    )
    return msgspec.structs.replace(
        recorded,
        name="llama",
        kernels=kernels,
        variants=(Variant(ops=(*ops, Op(OpKind.SYNC))),),
        iteration_us=(sum(op.duration_us for op in ops),),
    )


@dataclass(frozen=True, slots=True)
class TallyOutcome:
    """The 99th percentile of the requests (us), and the training's work (time of its kernels alone) a unit of time."""

    p99_us: float = math.nan
    work: float = math.nan


@dataclass(frozen=True, slots=True)
class ServiceRun:
    """Requests at half of what the GPU serves, beside a training; ``None``: without it."""

    service: str
    training: str | None
    system: str

    def run(self, device: str) -> TallyOutcome:
        work = requests_of(self.service)
        alone = tenant(work.name, name="service", host_us=HOST_US)
        workloads = {work.name: work}
        alone_us = situation([alone], GPU, workloads=workloads, physics=2).programs[0].alone_us
        gaps_us = np.random.default_rng(0).exponential(alone_us / LOAD, REQUESTS[self.service])
        times_us = np.cumsum(gaps_us).tolist()
        served = {**alone, "arrivals": {"kind": "trace", "times_us": times_us}, "jobs": len(times_us)}
        trained = [] if self.training is None else [tenant(self.training, name="training", priority=1)]
        horizon_us = times_us[-1] + 20.0 * alone_us
        problem = situation([served, *trained], GPU, horizon_us, workloads, physics=2, variation=False)
        episode = play(scheduler(self.system), problem, 0, device=device, record="kernels")
        p99_us = float(np.percentile(turnarounds_us(episode)[0], 99))
        return TallyOutcome(p99_us, work_rate(episode, 1) if trained else math.nan)


@dataclass(frozen=True, slots=True)
class TrainingAlone:
    """A training by itself."""

    training: str
    iterations: int = 4

    def run(self, device: str) -> TallyOutcome:
        problem = situation([tenant(self.training, jobs=self.iterations)], GPU, physics=2, variation=False)
        return TallyOutcome(work=work_rate(play("pass-through", problem, 0, device=device, record="kernels"), 0))


def scheduler(system: str) -> str:
    """A system's scheduler; alone none is needed."""
    return "tally(turnaround_us=1e9)" if system == UNBOUNDED else SYSTEMS.get(system, "pass-through")
