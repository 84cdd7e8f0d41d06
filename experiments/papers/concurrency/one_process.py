"""How well the host model gives what was recorded of two threads of one process on an H100."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import RECORDED_ON, measurements, situation, tenant, turnarounds_us
from gpusched_env.experiments.papers.concurrency.hosts import AT_WORK, RECORDED, WAITING, workloads

NETWORKS = (("resnet50", 256), ("resnet50", 32), ("alexnet", 256), ("vgg16", 256))
"""Inference beside ResNet-50 training at this batch; the first is what the waiting host's share is set by."""
TRAINING, TRAINING_BATCH = "resnet50_train_b32", 32
ANSWERED = 150
HOSTS = {
    "apart": (0.0, 0.0),
    "at work": (AT_WORK, 0.0),
    "at work and waiting": (AT_WORK, WAITING),
}
"""By which hosts slow each other."""


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
    """Of :data:`HOSTS`."""

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
