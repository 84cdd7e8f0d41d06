"""The training of the rule of the queue: policy gradients on drawn streams; no recording is played.

The cost is what pods wait for: GPUs, in per cent of the cluster's. Each step is in units of its own stream's spread, so
that all streams count alike, whatever they are loaded with.
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.training.environments import DRAWN_SEEDS, SEEDS_EACH, TRAINING_SEED
from gpusched_env.games.fleet.agents.cluster.adam import change_by, rate_at
from gpusched_env.games.fleet.agents.cluster.order import TERMS, Ordered, Term
from gpusched_env.games.fleet.agents.cluster.order_gradient import advantages, gradient_of
from gpusched_env.games.fleet.cluster.fragmentation import typical_pods
from gpusched_env.games.fleet.cluster.lifetimes.queue import BIN_WAITING_MILLI, OVERTAKING, Live
from gpusched_env.games.fleet.cluster.lifetimes.run import new_live
from gpusched_env.games.fleet.cluster.lifetimes.stream import HOUR_MS, JobStream
from gpusched_env.games.fleet.cluster.problem import ClusterProblem
from gpusched_env.games.fleet.environment.cluster.streams import drawn_stream

BIN_MS: Final = HOUR_MS // 12
HOURS: Final = 8
MOST_PODS: Final = 25_000
"""Of a stream; longer ones are not played."""


@dataclass(frozen=True)
class OrderSettings:
    """Of a training."""

    steps: int = 1000
    seed: int = 0
    runs: int = 8
    """Of the same stream that a step plays."""
    learning_rate: float = 0.05
    """Of Adam at first; it falls linearly to a twentieth."""
    temperature: float = 0.5
    """Of the softmax by which choices are drawn."""
    discount: float = 0.96
    """Of what pods wait for, by five minutes: to a half in an hour and a half."""


def new_run(problem: ClusterProblem, stream: JobStream) -> Live:
    """A cluster to which nobody has come yet, with overtaking."""
    typical = typical_pods(problem.workload, problem.models)
    return new_live(problem, stream, typical, OVERTAKING, HOURS * HOUR_MS // BIN_MS, bin_ms=BIN_MS)


def train_order(
    settings: OrderSettings, on_step: Callable[[int, NDArray[np.float64], float], None]
) -> tuple[Ordered, int]:
    """The rule after a training, and the choices that were drawn for it.

    Args:
        settings: of the training.
        on_step: gets the number of steps that are done, the weights, and what pods waited for in the last one, in per
            cent of the GPUs.
    """
    weights, mean, square = (np.zeros(TERMS) for _ in range(3))
    choices = 0
    for step in range(settings.steps):
        dice = np.random.default_rng((TRAINING_SEED + SEEDS_EACH * settings.seed, step))
        stream_seed = int(dice.integers(*DRAWN_SEEDS))
        problem, stream = drawn_stream(stream_seed, HOURS)
        if len(stream.kinds) > MOST_PODS:
            continue
        begun, agent = new_run(problem, stream), Ordered(named(weights))
        runs, waited = [], []
        for _ in range(settings.runs):
            live = copy.deepcopy(begun)
            runs.append(agent.play_drawing(live, settings.temperature, dice.random(len(stream.kinds))))
            waited.append(live.queue.bins[:, BIN_WAITING_MILLI] / BIN_MS / problem.capacity_milli * 100.0)
        choices += sum(int(one.count[0]) for one in runs)
        gradient = gradient_of(runs, advantages(np.array(waited), settings.discount), BIN_MS)
        weights += change_by(gradient, mean, square, step + 1, rate_at(settings.learning_rate, step / settings.steps))
        on_step(step + 1, weights, statistics.fmean(float(one.mean()) for one in waited))
    return Ordered(named(weights)), choices


def named(weights: NDArray[np.float64]) -> dict[str, float]:
    """Weights by term."""
    return {term.name: float(weights[term]) for term in Term}
