"""A run of a cluster whose pods come and go: a policy, or a function of one's own, places them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import native
from gpusched_env.errors import IllegalCommand, InputError
from gpusched_env.games.fleet.cluster.fragmentation import POPULARITY, TypicalPods, measure_nodes, typical_pods
from gpusched_env.games.fleet.cluster.gpus import fits
from gpusched_env.games.fleet.cluster.lifetimes.queue import (
    BIN_FRAGMENTED,
    BIN_USED,
    BIN_WAITING,
    BIN_WAITING_MILLI,
    NOBODY,
    OVERTAKING,
    Live,
    QueueState,
    begin_pod,
    empty_queue,
    next_pod,
)
from gpusched_env.games.fleet.cluster.lifetimes.stream import HOUR_MS, JobStream
from gpusched_env.games.fleet.cluster.placing import choose_gpus, choose_node, no_scores
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.cluster.problem import ClusterProblem
from gpusched_env.games.fleet.cluster.state import ClusterState, PodTable, empty_cluster, pod_table

BIN_MS: Final = HOUR_MS // 4
"""Length of a bin of the curves."""
S_MS: Final = 1000.0

ScoreNodes = Callable[[ClusterState, PodTable, TypicalPods, int], NDArray[np.float64]]
"""A function of one's own: from what is free, what kinds of pods ask for, the typical pods and a pod's kind to the
score of each node, (nodes,). It leaves all these as they are. The largest of the nodes with room is taken, the first of
equal ones; NaN: none of these. A pod that shares a GPU gets the one that FGD has for it there."""


@runtime_checkable
class QueuePlayer(Protocol):
    """What chooses who goes, too."""

    def play(self, live: Live) -> None:
        """Let pods come and go until time is over."""
        ...


class QueueRun(NamedTuple):
    """A run, with its curves by quarter of an hour."""

    problem: ClusterProblem
    stream: JobStream
    queue: QueueState
    state: ClusterState
    """At the end."""

    def _percent(self, column: int) -> NDArray[np.float64]:
        """(bins,) per cent of the cluster's GPUs."""
        found: NDArray[np.float64] = self.queue.bins[:, column] / BIN_MS / self.problem.capacity_milli * 100.0
        return found

    @property
    def used(self) -> NDArray[np.float64]:
        """(bins,) per cent of the GPUs that are in use."""
        return self._percent(BIN_USED)

    @property
    def fragmented(self) -> NDArray[np.float64]:
        """(bins,) per cent of the GPUs that are fragmented."""
        return self._percent(BIN_FRAGMENTED)

    @property
    def waited_for(self) -> NDArray[np.float64]:
        """(bins,) GPUs that pods wait for, per cent of the cluster's GPUs."""
        return self._percent(BIN_WAITING_MILLI)

    @property
    def waiting(self) -> NDArray[np.float64]:
        """(bins,) pods that wait."""
        found: NDArray[np.float64] = self.queue.bins[:, BIN_WAITING] / BIN_MS
        return found

    @property
    def end_ms(self) -> int:
        """When the run ended."""
        return len(self.queue.bins) * BIN_MS

    def came(self, from_bin: int) -> NDArray[np.int64]:
        """The pods that came since a bin began."""
        first, last = np.searchsorted(self.stream.arrives_ms, (from_bin * BIN_MS, self.end_ms))
        return np.arange(first, last)

    def waits_s(self, from_bin: int) -> NDArray[np.float64]:
        """How long pods waited that came since a bin began; of those that still wait, until now."""
        came, end_ms = self.came(from_bin), self.end_ms
        begins_ms = self.queue.begins_ms[came]
        found: NDArray[np.float64] = (np.where(begins_ms < 0, end_ms, begins_ms) - self.stream.arrives_ms[came]) / S_MS
        return found


def run_queue(
    problem: ClusterProblem,
    stream: JobStream,
    policy: Policy | ScoreNodes | QueuePlayer,
    hours: float,
    rule: int = OVERTAKING,
    seed: int = 0,
    popularity: float = POPULARITY,
) -> QueueRun:
    """Let pods come and go.

    Args:
        problem: nodes, and the workload whose kinds the stream has.
        stream: the pods.
        policy: that places them, a function that scores nodes, or who chooses among those that wait as well.
        hours: how long, at least a quarter; what is left of a quarter does not count.
        rule: of the queue, :data:`~gpusched_env.games.fleet.cluster.lifetimes.queue.OVERTAKING` or ``IN_ORDER``.
        seed: of the order of nodes, in which the first of equally good ones is taken.
        popularity: share of the pods that typical ones are, by which fragmentation is measured.

    Raises:
        InputError: the time is shorter than a quarter of an hour.
        IllegalCommand: a function gives no score to any node that has room, or not one a node.
    """
    bins = int(hours * HOUR_MS / BIN_MS)
    if bins < 1:
        raise InputError(f"{problem.workload.name}: a run of {hours:g} hours, must be at least a quarter of an hour")
    typical = typical_pods(problem.workload, problem.models, popularity)
    live = new_live(problem, stream, typical, rule, bins, seed)
    if isinstance(policy, Policy):
        play_policy(int(policy), live)
    elif isinstance(policy, QueuePlayer):
        policy.play(live)
    else:
        _play_asked(policy, live)
    return QueueRun(problem, stream, live.queue, live.state)


def new_live(
    problem: ClusterProblem,
    stream: JobStream,
    typical: TypicalPods,
    rule: int,
    bins: int,
    seed: int = 0,
    bin_ms: int = BIN_MS,
) -> Live:
    """An empty cluster to which nobody has come yet, for so many bins."""
    kinds, nodes = len(problem.workload.kinds), len(problem.nodes)
    state = empty_cluster(problem, np.random.default_rng(seed).permutation(nodes))
    measure_nodes(state, typical)
    pods = pod_table(problem.workload.kinds, problem.models)
    queue = empty_queue(stream, kinds, rule, bin_ms, bins)
    return Live(state, pods, typical, no_scores(kinds, nodes), stream, queue)


@native()
def play_policy(policy: int, live: Any) -> None:
    """A policy places pods until time is over."""
    state, pods, typical = live.state, live.pods, live.typical
    while True:
        pod = next_pod(live)
        if pod == NOBODY:
            return
        kind, draws = live.stream.kinds[pod], live.stream.draws[pod]
        node = choose_node(policy, state, pods, typical, live.kept, kind, draws[0])
        begin_pod(live, pod, node, choose_gpus(policy, state, pods, typical, node, kind, draws[1]))


@native()
def to_next_pod(live: Any, room: Any) -> int:
    """Go on to the next pod that is to be placed (:func:`~gpusched_env.games.fleet.cluster.lifetimes.queue.next_pod`).

    ``room``, (nodes,), gets whether it fits.
    """
    pod = next_pod(live)
    if pod != NOBODY:
        for node in range(len(room)):
            room[node] = fits(live.state, live.pods, node, live.stream.kinds[pod])
    return pod


@native()
def begin_on(live: Any, pod: int, node: int) -> None:
    """Place a pod on a node that has room for it, and on the GPUs that FGD has for it there."""
    mask = choose_gpus(Policy.FGD, live.state, live.pods, live.typical, node, live.stream.kinds[pod], 0.0)
    begin_pod(live, pod, node, mask)


def _play_asked(score: ScoreNodes, live: Live) -> None:
    """A function places pods until time is over."""
    room = np.zeros(len(live.state.gpus), np.bool_)
    while (pod := to_next_pod(live, room)) != NOBODY:
        scores = np.asarray(score(live.state, live.pods, live.typical, int(live.stream.kinds[pod])), float)
        if scores.shape != room.shape:
            raise IllegalCommand(f"scores have the shape {scores.shape}, must have one a node, {room.shape}")
        scores = np.where(room & ~np.isnan(scores), scores, -np.inf)
        node = int(scores.argmax())
        if not room[node]:
            raise IllegalCommand(f"no node with room for pod {pod} has a score; at least one of {room.sum()} must")
        begin_on(live, pod, node)
