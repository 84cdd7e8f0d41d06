"""Streams to learn on, drawn by a seed: the nodes and pods of a drawn problem, with times, compressed to a load.

The ranges hold those of the blocks of the published recording that were looked at. In these the logarithm of a pod's
run time has standard deviations of 1.5 to 2.2 between kinds and of 1.1 to 1.5 within one, around 5 to 17 minutes; times
between arrivals have coefficients of variation of 1.1 to 2.1; and one pod in four asks for what the one before asks.

* Nodes and kinds of pods are those of :func:`~gpusched_env.games.fleet.environment.cluster.drawn.drawn_problem`.
* 150 to 600 pods (log-uniform) of the workload come in two days, in a random order; one in four is of the kind of the
  one before. Times between arrivals are of a gamma distribution of shape 0.25 to 1.
* A kind's run time is log-normal around a median that is log-normal around 12 minutes, with the standard deviations
  above, from 10 seconds to two days.
* The load is 0.7 to 1.1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from gpusched_env.games.fleet.cluster.lifetimes.recording import DAY_S, LifetimeRecording
from gpusched_env.games.fleet.cluster.lifetimes.stream import JobStream, compressed
from gpusched_env.games.fleet.cluster.problem import ClusterProblem, Workload
from gpusched_env.games.fleet.environment.cluster.drawn import drawn_problem

PODS: Final = (150, 600)
SPAN_S: Final = 2 * DAY_S
SHAPES: Final = (0.25, 1.0)
MEDIAN_S: Final = 720.0
BETWEEN: Final = (1.5, 2.2)
WITHIN: Final = (1.1, 1.5)
RUNS_S: Final = (10, SPAN_S)
ALIKE: Final = 0.25
LOADS: Final = (0.7, 1.1)


def drawn_recording(seed: int) -> tuple[ClusterProblem, LifetimeRecording]:
    """The cluster and the recording of a seed."""
    problem, rng = drawn_problem(seed), np.random.default_rng((seed, 71))
    known = problem.workload
    count = round(float(np.exp(rng.uniform(*np.log(PODS)))))
    kinds = rng.choice(np.array(known.submitted), count)
    alike = rng.random(count) < ALIKE
    for pod in range(1, count):
        if alike[pod]:
            kinds[pod] = kinds[pod - 1]
    if not any(known.kinds[kind].gpus for kind in kinds):
        kinds[0] = next(place for place, kind in enumerate(known.kinds) if kind.gpus)
    pods = [known.kinds[kind] for kind in kinds]
    medians = rng.normal(np.log(MEDIAN_S), rng.uniform(*BETWEEN), len(known.kinds))
    runs = np.exp(medians[kinds] + rng.uniform(*WITHIN) * rng.normal(size=count))
    gaps = np.cumsum(rng.gamma(rng.uniform(*SHAPES), size=count))
    workload = Workload.of_pods(known.name, pods)
    recording = LifetimeRecording(
        workload,
        created_s=np.floor(gaps / gaps[-1] * (SPAN_S - 1)).astype(np.int64),
        runs_s=np.clip(runs, *RUNS_S).astype(np.int64),
        span_s=(0, SPAN_S),
    )
    return replace(problem, workload=workload), recording


def drawn_stream(seed: int, hours: float) -> tuple[ClusterProblem, JobStream]:
    """The cluster and the stream of a seed."""
    problem, recording = drawn_recording(seed)
    load = np.random.default_rng((seed, 72)).uniform(*LOADS)
    return problem, compressed(problem, recording, load, hours, seed)
