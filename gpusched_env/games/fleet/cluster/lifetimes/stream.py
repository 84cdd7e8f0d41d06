"""Pods as they come to a cluster that is loaded: a recording whose arrivals are compressed, over and over.

Recorded arrivals are far below what the cluster could run. So times between arrivals are divided by a factor, and times
for which pods run stay as they are. The factor is such that what runs at a time, if nobody waits, is the wanted part
of the cluster, in that of GPUs, CPU and memory of which most is asked. When the recording is over it begins again.

The cluster has been running forever: pods that came before the start, and are not over by then, come at the start with
the rest of their time.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.cluster.lifetimes.recording import LifetimeRecording
from gpusched_env.games.fleet.cluster.problem import ClusterProblem, Node, PodKind

MOST_LOAD: Final = 10.0
MOST_COMING: Final = 5_000_000
"""Pods that come to a run, at most."""
MOST_HOURS: Final = 10_000.0
HOUR_MS: Final = 3_600_000
S_MS: Final = 1000


class JobStream(NamedTuple):
    """Pods in order of arrival."""

    kinds: NDArray[np.int64]
    """(pods,) the kind of each, in the workload of the recording."""
    arrives_ms: NDArray[np.int64]
    runs_ms: NDArray[np.int64]
    """(pods,) for how long it runs, once it is placed, at least 1."""
    draws: NDArray[np.float64]
    """(pods, 2) numbers from 0 to below 1, for policies that draw."""


def demand(problem: ClusterProblem, recording: LifetimeRecording) -> float:
    """The part of the cluster that would run at a time, as recorded, if nobody waited; of GPUs, CPU and memory that of
    which most is asked."""
    rows = np.array([_amounts(kind) for kind in recording.workload.kinds], float)[list(recording.workload.submitted)]
    has = np.array([(node.gpus * 1000, node.cpu_milli, node.memory_mib) for node in problem.nodes], float).sum(axis=0)
    first_s, last_s = recording.span_s
    return float(((recording.runs_s @ rows) / (last_s - first_s) / has).max())


def _amounts(kind: PodKind) -> tuple[int, int, int]:
    return kind.asked_milli, kind.cpu_milli, kind.memory_mib


def compressed(
    problem: ClusterProblem, recording: LifetimeRecording, load: float, hours: float, seed: int = 0
) -> JobStream:
    """The recording, compressed to a load.

    Args:
        problem: of the cluster, with the workload of the recording.
        recording: pods and their times.
        load: part of the cluster that pods ask for at a time, above 0 to 10.
        hours: for which pods come, above 0 to 10,000.
        seed: of what policies draw.

    Raises:
        InputError: a value is out of its range, a pod fits on no node, or too many pods would come.
    """
    name = recording.workload.name
    for what, value, most in (("load", load, MOST_LOAD), ("hours", hours, MOST_HOURS)):
        if not 0.0 < value <= most:
            raise InputError(f"{name}: {what} is {value:g}, must be above 0 and at most {most:g}")
    check_room(problem)
    first_s, last_s = recording.span_s
    factor = load / demand(problem, recording)
    period_ms, end_ms = (last_s - first_s) * S_MS / factor, hours * HOUR_MS
    at_ms, runs_ms = (recording.created_s - first_s) * S_MS / factor, recording.runs_s * S_MS
    first = np.floor((-runs_ms - at_ms) / period_ms).astype(np.int64) + 1
    last = np.ceil((end_ms - at_ms) / period_ms).astype(np.int64)
    copies = np.maximum(last - first, 0)
    if copies.sum() > MOST_COMING:
        raise InputError(
            f"{name}: {copies.sum()} pods would come in {hours:g} hours at a load of {load:g}, must be at most "
            f"{MOST_COMING}"
        )
    pod = np.repeat(np.arange(len(copies)), copies)
    number = np.arange(len(pod)) - np.repeat(np.cumsum(copies) - copies, copies) + first[pod]
    begins_ms = np.rint(at_ms[pod] + number * period_ms).astype(np.int64)
    order = np.lexsort((pod, begins_ms))
    pod, begins_ms = pod[order], begins_ms[order]
    left_ms = np.maximum(1, runs_ms[pod] + np.minimum(0, begins_ms))
    draws = np.random.default_rng(seed).random((len(pod), 2))
    return JobStream(np.array(recording.workload.submitted)[pod], np.maximum(0, begins_ms), left_ms, draws)


def check_room(problem: ClusterProblem) -> None:
    """Nothing happens if each kind of pod fits on a node that is empty.

    Raises:
        InputError: names what the pod that fits nowhere asks for.
    """
    nodes = set(problem.nodes)
    for kind in problem.workload.kinds:
        if not any(_has_room(node, kind) for node in nodes):
            raise InputError(
                f"{problem.workload.name}: a pod asks for {kind.cpu_milli} thousandths of a core, {kind.memory_mib} "
                f"MiB and {kind.gpus} GPUs {kind.models}; it fits on no node, and would wait forever"
            )


def _has_room(node: Node, kind: PodKind) -> bool:
    model = kind.gpus == 0 or not kind.allowed or node.model in kind.allowed
    return model and all(
        has >= asks
        for has, asks in zip(
            (node.cpu_milli, node.memory_mib, node.gpus), (kind.cpu_milli, kind.memory_mib, kind.gpus), strict=True
        )
    )
