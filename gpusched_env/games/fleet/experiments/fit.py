"""The rate model fitted to jobs that share a GPU, which are simulated block by block; and what it says of others."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import situation, tenant, turnarounds_us
from gpusched_env.games.fleet.co_location import RateModel, activity, capped_speed, iteration_stretch
from gpusched_env.games.fleet.workload.jobs import ITERATION_US
from gpusched_env.scenarios.building import load_workload

INFERENCE: Final = ("resnet50_infer_b32", "vgg16_infer_b8", "bert_infer_b8_s128")
TRAINING: Final = ("resnet50_train_b32", "bert_train_b16_s128")
PAIRS: Final = tuple(zip(INFERENCE, (TRAINING[0], TRAINING[1], TRAINING[0]), strict=True))
ACTIVITIES: Final = (0.15, 0.4)
SLEEPS: Final = (0.0, 1.0, 3.0)
"""Sleeps of training, over an iteration alone."""
SHARES: Final = (100, 50, 20)
ALONE_SHARES: Final = (100, 70, 50, 35, 20, 10)
HORIZON_US: Final = 600_000.0
RANDOM_HOURS: Final = 20


@dataclass(frozen=True)
class ProgramOnGpu:
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
        """The tenant of the program; ``alone_us``: its batch or iteration alone."""
        pause_us = alone_us * (self.sleep if self.training else 1.0 / self.activity - 1.0)
        launch = {} if self.training else {"launch": "graph"}
        arrivals = {"kind": "closed-loop", "think_us": pause_us}
        name = f"{self.workload} ({priority})"
        return tenant(self.workload, name=name, priority=int(self.training), arrivals=arrivals, **launch)


@functools.cache
def alone_us(workload: str, device: str) -> float:
    """A batch or iteration alone on all SMs."""
    return SharedGpuCell((ProgramOnGpu(workload),)).run_with({workload: 0.0}, device)[0]


@functools.cache
def utilisation(workload: str, device: str) -> float:
    """The part of an iteration alone in which training has kernels on the GPU; 1: inference has nothing else."""
    if workload not in TRAINING:
        return 1.0
    recorded = load_workload(workload)
    busy_us = np.mean([sum(op.duration_us for op in variant.ops) for variant in recorded.variants])
    return min(1.0, float(busy_us) / alone_us(workload, device))


@dataclass(frozen=True)
class SharedGpuCell:
    """Programs on one GPU under MPS."""

    clients: tuple[ProgramOnGpu, ...]
    training_share: int = 100
    inference_share: int = 100
    """MPS percentages of training and of inference."""

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


def pair_cells() -> list[SharedGpuCell]:
    """Inference beside training that sleeps or has a smaller share."""
    return [
        SharedGpuCell((ProgramOnGpu(asked, activity), ProgramOnGpu(trained, sleep=sleep)), share)
        for asked, trained in PAIRS
        for activity in ACTIVITIES
        for sleep in SLEEPS
        for share in SHARES
        if share == SHARES[0] or sleep < SLEEPS[-1]
    ]


def inference_cells() -> list[SharedGpuCell]:
    """Cells of inference beside inference."""
    return [
        SharedGpuCell((ProgramOnGpu(INFERENCE[i], ACTIVITIES[0]), ProgramOnGpu(INFERENCE[(i + 1) % 3], activity)))
        for i in range(3)
        for activity in ACTIVITIES
    ]


def capped_cells() -> list[SharedGpuCell]:
    """Every program alone, with smaller shares."""
    return [
        SharedGpuCell((ProgramOnGpu(name),), share, share)
        for name in (*INFERENCE, *TRAINING)
        for share in ALONE_SHARES[1:]
    ]


def apart_cells() -> list[SharedGpuCell]:
    """Inference beside training, each on half of the SMs."""
    return [
        SharedGpuCell((ProgramOnGpu(asked, ACTIVITIES[1]), ProgramOnGpu(trained)), 50, 50) for asked, trained in PAIRS
    ]


def random_cells() -> list[SharedGpuCell]:
    """Two inference jobs and one or two that train, with sleeps and activities of their own; none is fitted to."""
    rng = np.random.default_rng(2024)
    found = []
    for _ in range(RANDOM_HOURS):
        asked = [ProgramOnGpu(str(rng.choice(INFERENCE)), round(float(rng.uniform(0.05, 0.3)), 3)) for _ in range(2)]
        trained = [
            ProgramOnGpu(TRAINING[i], sleep=round(float(rng.uniform(0.0, 3.0)), 3))
            for i in range(int(rng.integers(1, 3)))
        ]
        found.append(SharedGpuCell((*asked, *trained)))
    return found


Floats = NDArray[np.float64]
Runs = Mapping[SharedGpuCell, list[float]]
EXPONENTS: Final = np.arange(-1.5, 2.01, 0.05)
KNEES: Final = np.arange(0.4, 1.001, 0.05)
CAP_EXPONENTS: Final = np.arange(0.3, 1.501, 0.05)
SLEEP_US: Final = 1e6
"""The longer sleep of Figure 6."""


def activity_of(client: ProgramOnGpu, device: str) -> float:
    """The client's activity, as the rate model reckons with it."""
    if not client.training:
        return client.activity
    return activity(utilisation(client.workload, device), client.sleep, 1.0)


def predicted(cell: SharedGpuCell, model: RateModel, device: str) -> list[float]:
    """What the model says that :meth:`~gpusched_env.games.fleet.experiments.fit.SharedGpuCell.run` finds."""
    share = cell.training_share / 100.0
    found = []
    for row, client in enumerate(cell.clients):
        others = [(other, activity_of(other, device)) for i, other in enumerate(cell.clients) if i != row]
        if client.training:
            toll = 1.0 + model.training_by_others * sum(a for _, a in others)
            kernels = toll / capped_speed(share, model.cap_knee, model.cap_exponent)
            found.append(iteration_stretch(utilisation(client.workload, device), kernels, client.sleep, 1.0))
        else:
            by_training = model.inference_by_training * share**model.exponent
            tolls = [(by_training if other.training else model.inference_by_inference) * a for other, a in others]
            found.append(1.0 + sum(tolls))
    return found


def fit(runs: Runs, device: str) -> RateModel:
    """Least squares, one effect after another: the cap, then each stretch."""
    knee, cap_exponent = _cap(runs, device)
    pairs = pair_cells()
    shares = np.array([cell.training_share / 100.0 for cell in pairs])
    beside = np.array([activity_of(cell.clients[1], device) for cell in pairs])
    excess = np.array([runs[cell][0] - 1.0 for cell in pairs])
    scales = [_slope(beside * shares**exponent, excess) for exponent in EXPONENTS]
    left = [
        float(((excess - scale * beside * shares**exponent) ** 2).sum())
        for scale, exponent in zip(scales, EXPONENTS, strict=True)
    ]
    best = int(np.argmin(left))
    apart = [(runs[cell][0] * capped_speed(0.5, knee, cap_exponent) - 1.0) for cell in apart_cells()]
    together = inference_cells()
    return RateModel(
        inference_by_inference=_slope(
            np.array([cell.clients[1].activity for cell in together]),
            np.array([runs[cell][0] - 1.0 for cell in together]),
        ),
        inference_by_training=scales[best],
        exponent=round(float(EXPONENTS[best]), 2),
        training_by_others=_by_others(runs, device),
        cap_knee=knee,
        cap_exponent=cap_exponent,
        apart=_slope(np.array([activity_of(cell.clients[1], device) for cell in apart_cells()]), np.array(apart)),
    )


def _slope(x: Floats, y: Floats) -> float:
    """The slope of a line through the origin, at least 0."""
    return round(max(0.0, float(x @ y) / float(x @ x)), 4)


def _cap(runs: Runs, device: str) -> tuple[float, float]:
    """Knee and exponent with the least squared error of the logarithm of speeds."""
    shares = np.array([cell.training_share / 100.0 for cell in capped_cells()])
    speeds = np.array([_kernel_speed(cell, runs[cell][0], device) for cell in capped_cells()])
    best = min(
        (
            float(((np.log(np.minimum(1.0, shares / knee)) * exponent - np.log(speeds)) ** 2).sum()),
            round(float(knee), 2),
            round(float(exponent), 2),
        )
        for knee in KNEES
        for exponent in CAP_EXPONENTS
    )
    return best[1], best[2]


def _kernel_speed(cell: SharedGpuCell, stretch: float, device: str) -> float:
    """The speed of the kernels of a program alone: its host's part of an iteration stays as it is."""
    busy = utilisation(cell.clients[0].workload, device)
    return min(1.0, busy / max(busy, stretch - (1.0 - busy)))


def _by_others(runs: Runs, device: str) -> float:
    activities, excess = [], []
    for cell in (cell for cell in pair_cells() if cell.training_share == 100):
        asked, trained = cell.clients
        busy = utilisation(trained.workload, device)
        kernels = (runs[cell][1] - trained.sleep - (1.0 - busy)) / busy
        activities.append(asked.activity)
        excess.append(kernels - 1.0)
    return _slope(np.array(activities), np.array(excess))


def errors(runs: Runs, model: RateModel, cells: list[SharedGpuCell], device: str) -> tuple[Floats, Floats]:
    """Relative errors of batches and of iterations, each of one job of one cell."""
    found: tuple[list[float], list[float]] = ([], [])
    for cell in cells:
        for client, said, seen in zip(cell.clients, predicted(cell, model, device), runs[cell], strict=True):
            found[client.training].append(said / seen - 1.0)
    return np.array(found[0]), np.array(found[1])


def with_published(model: RateModel, latency_ms: Mapping[str, Sequence[float]]) -> RateModel:
    """The model with what training does to batches as published.

    Args:
        model: the rest of it.
        latency_ms: by training's MPS percentage, of a batch beside training that sleeps for 0 and 1 s (GPUColo, Fig. 6)

    A training job that is all kernels has an activity of 1 without sleep, and with 1 s of it that of its iterations,
    0.4 to 0.8 s long. So each percentage gives the latency without training and what it adds.
    """
    asleep = activity(1.0, SLEEP_US, sum(ITERATION_US) / 2.0)
    shares = np.array([float(percent) / 100.0 for percent in latency_ms])
    awake_ms, asleep_ms = np.array(list(latency_ms.values())).T
    added_ms = (awake_ms - asleep_ms) / (1.0 - asleep)
    tolls = added_ms / (awake_ms - added_ms)
    exponent, at_all = np.polyfit(np.log(shares), np.log(tolls), 1)
    return model._replace(inference_by_training=round(float(np.exp(at_all)), 4), exponent=round(float(exponent), 2))
