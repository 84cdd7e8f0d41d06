"""Jobs that share a GPU, simulated block by block: what the rate model of a fleet is fitted to."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import situation, tenant, turnarounds_us
from gpusched_env.scenarios.building import load_workload

INFERENCE: Final = ("resnet50_infer_b32", "vgg16_infer_b8", "bert_infer_b8_s128")
TRAINING: Final = ("resnet50_train_b32", "bert_train_b16_s128")
PAIRS: Final = tuple(zip(INFERENCE, (TRAINING[0], TRAINING[1], TRAINING[0]), strict=True))
ACTIVITIES: Final = (0.15, 0.4)
SLEEPS: Final = (0.0, 1.0, 3.0)
"""Over an iteration alone."""
SHARES: Final = (100, 50, 20)
ALONE_SHARES: Final = (100, 70, 50, 35, 20, 10)
HORIZON_US: Final = 600_000.0
RANDOM_HOURS: Final = 20


@dataclass(frozen=True)
class Client:
    """A program on the GPU: batches of inference as CUDA graphs, or eager training."""

    workload: str
    activity: float = 1.0
    """Inference: the part of its time that it is on the GPU alone; it pauses for the rest."""
    sleep: float = 0.0
    """Training: after an iteration, over the length of one alone."""

    @property
    def training(self) -> bool:
        return self.workload in TRAINING

    def of(self, alone_us: float, priority: int) -> dict[str, Any]:
        """The tenant; ``alone_us``: its batch or iteration alone."""
        pause_us = alone_us * (self.sleep if self.training else 1.0 / self.activity - 1.0)
        launch = {} if self.training else {"launch": "graph"}
        arrivals = {"kind": "closed-loop", "think_us": pause_us}
        name = f"{self.workload} ({priority})"
        return tenant(self.workload, name=name, priority=int(self.training), arrivals=arrivals, **launch)


@functools.cache
def alone_us(workload: str, device: str) -> float:
    """A batch or iteration alone on all SMs."""
    return Together((Client(workload),)).run_with({workload: 0.0}, device)[0]


@functools.cache
def utilisation(workload: str, device: str) -> float:
    """Of training: the part of an iteration alone in which it has kernels on the GPU; 1: inference has nothing else."""
    if workload not in TRAINING:
        return 1.0
    recorded = load_workload(workload)
    busy_us = np.mean([sum(op.duration_us for op in variant.ops) for variant in recorded.variants])
    return min(1.0, float(busy_us) / alone_us(workload, device))


@dataclass(frozen=True)
class Together:
    """Programs on one GPU under MPS."""

    clients: tuple[Client, ...]
    training_share: int = 100
    inference_share: int = 100
    """MPS percentages."""

    def run(self, device: str) -> list[float]:
        """Mean time of a batch, or of an iteration and the sleep after it, of each, over that alone on all SMs."""
        alone = {client.workload: alone_us(client.workload, device) for client in self.clients}
        took = self.run_with(alone, device)
        pairs = zip(self.clients, took, strict=True)
        return [us / alone[client.workload] + (client.sleep if client.training else 0.0) for client, us in pairs]

    def run_with(self, alone: dict[str, float], device: str) -> list[float]:
        tenants = [client.of(alone[client.workload], row) for row, client in enumerate(self.clients)]
        both = f"mps(urgent_share={self.inference_share}, other_share={self.training_share})"
        # A client alone is the most urgent one, whatever it is.
        only_training = all(client.training for client in self.clients)
        scheduler = f"mps(urgent_share={self.training_share})" if only_training else both
        # Recorded host times vary more from iteration to iteration than neighbours change them.
        problem = situation(tenants, horizon_us=HORIZON_US, variation=False)
        episode = play(scheduler, problem, seed=0, device=device)
        return [float(took.mean()) for took in turnarounds_us(episode, skip=1)]


def pair_cells() -> list[Together]:
    """Inference beside training that sleeps or has a smaller share."""
    return [
        Together((Client(asked, activity), Client(trained, sleep=sleep)), share)
        for asked, trained in PAIRS
        for activity in ACTIVITIES
        for sleep in SLEEPS
        for share in SHARES
        if share == SHARES[0] or sleep < SLEEPS[-1]
    ]


def inference_cells() -> list[Together]:
    """Inference beside inference."""
    return [
        Together((Client(INFERENCE[i], ACTIVITIES[0]), Client(INFERENCE[(i + 1) % 3], activity)))
        for i in range(3)
        for activity in ACTIVITIES
    ]


def capped_cells() -> list[Together]:
    """Every program alone, with smaller shares."""
    return [Together((Client(name),), share, share) for name in (*INFERENCE, *TRAINING) for share in ALONE_SHARES[1:]]


def apart_cells() -> list[Together]:
    """Inference beside training, each on half of the SMs."""
    return [Together((Client(asked, ACTIVITIES[1]), Client(trained)), 50, 50) for asked, trained in PAIRS]


def random_cells() -> list[Together]:
    """Two inference jobs and one or two that train, with sleeps and activities of their own; none is fitted to."""
    rng = np.random.default_rng(2024)
    found = []
    for _ in range(RANDOM_HOURS):
        asked = [Client(str(rng.choice(INFERENCE)), round(float(rng.uniform(0.05, 0.3)), 3)) for _ in range(2)]
        trained = [
            Client(TRAINING[i], sleep=round(float(rng.uniform(0.0, 3.0)), 3)) for i in range(int(rng.integers(1, 3)))
        ]
        found.append(Together((*asked, *trained)))
    return found
