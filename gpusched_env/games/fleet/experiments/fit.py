"""Fitting the rate model to jobs that shared a GPU, and what it says of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.fleet.experiments.cells import (
    Client,
    Together,
    apart_cells,
    capped_cells,
    inference_cells,
    pair_cells,
    utilisation,
)
from gpusched_env.games.fleet.hardware.co_location import RateModel, activity, capped_speed, iteration_stretch
from gpusched_env.games.fleet.workload.generated import ITERATION_US

Floats = NDArray[np.float64]
Runs = Mapping[Together, list[float]]
EXPONENTS: Final = np.arange(-1.5, 2.01, 0.05)
KNEES: Final = np.arange(0.4, 1.001, 0.05)
CAP_EXPONENTS: Final = np.arange(0.3, 1.501, 0.05)
SLEEP_US: Final = 1e6
"""The longer sleep of Figure 6."""


def active(client: Client, device: str) -> float:
    """Its activity, as the rate model reckons with it."""
    if not client.training:
        return client.activity
    return activity(utilisation(client.workload, device), client.sleep, 1.0)


def predicted(cell: Together, model: RateModel, device: str) -> list[float]:
    """What the model says that :meth:`~gpusched_env.games.fleet.experiments.cells.Together.run` finds."""
    share = cell.training_share / 100.0
    found = []
    for row, client in enumerate(cell.clients):
        others = [(other, active(other, device)) for i, other in enumerate(cell.clients) if i != row]
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
    beside = np.array([active(cell.clients[1], device) for cell in pairs])
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
        apart=_slope(np.array([active(cell.clients[1], device) for cell in apart_cells()]), np.array(apart)),
    )


def _slope(x: Floats, y: Floats) -> float:
    """Through the origin, at least 0."""
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


def _kernel_speed(cell: Together, stretch: float, device: str) -> float:
    """Of the kernels of a program alone: its host's part of an iteration stays as it is."""
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


def errors(runs: Runs, model: RateModel, cells: list[Together], device: str) -> tuple[Floats, Floats]:
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
