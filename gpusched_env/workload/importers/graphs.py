"""CUDA graphs of a recording: from the times of their nodes to which node waits for which.

Profilers record when and in which stream each node ran, not the edges. Launches with the same nodes are one graph.
Nodes of a stream are a branch, one after another. Edges between branches are inferred from all launches of the graph:

* The first node of a branch waits for the node that ended last before it started.
* A later node that starts late (:data:`JOIN_GAP_US`) waits for the last node of each other branch that ended while its
  own branch was idle.

An edge that never held a node up leaves no trace and is missing; what follows the graph waits for all of its nodes.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from gpusched_env.workload.importers.ordering import CLOCK_US, Action
from gpusched_env.workload.importers.recording import DeviceEvent

JOIN_GAP_US = 1.0
"""A node that waits for its own branch alone follows within less (0.5 to 0.8 us on an H200)."""


@dataclass(slots=True)
class Node:
    """A node of a graph."""

    event: DeviceEvent
    """Of the first launch."""
    duration_us: float
    """Mean over the launches."""
    after: tuple[int, ...]
    """Earlier nodes that it waits for."""


def graphs_of(launches: Sequence[Action]) -> tuple[list[list[Node]], dict[Action, int]]:
    """The distinct graphs among ``launches``, in order of first launch, and which one each launch is of."""
    alike: dict[tuple[object, ...], list[Action]] = {}
    for action in launches:
        alike.setdefault(_identity(action), []).append(action)
    rows = {action: row for row, actions in enumerate(alike.values()) for action in actions}
    return [_nodes(actions) for actions in alike.values()], rows


def _branches(action: Action) -> list[list[DeviceEvent]]:
    """Nodes by stream, that of the launch first."""
    branches: dict[int, list[DeviceEvent]] = {}
    for event in action.events:
        branches.setdefault(event.stream, []).append(event)
    return [branches[stream] for stream in sorted(branches, key=lambda stream: (stream != action.stream, stream))]


def _identity(action: Action) -> tuple[object, ...]:
    return tuple(tuple((e.kind, e.name, e.shape, e.bytes) for e in branch) for branch in _branches(action))


def _nodes(actions: Sequence[Action]) -> list[Node]:
    runs = [_branches(action) for action in actions]
    places = [(b, i) for b, branch in enumerate(runs[0]) for i in range(len(branch))]
    places.sort(key=lambda place: (runs[0][place[0]][place[1]].start_us, runs[0][place[0]][place[1]].end_us))
    numbers = {place: number for number, place in enumerate(places)}
    ends = sorted((runs[0][b][i].end_us, b, i) for b, i in places)
    found = []
    for number, (b, i) in enumerate(places):
        waits = [(b, i - 1), *_joined(runs, b, i)] if i > 0 else _forked(runs, ends, b)
        found.append(
            Node(
                event=runs[0][b][i],
                duration_us=statistics.fmean(run[b][i].duration_us for run in runs),
                # Only earlier nodes: one that never takes any time could otherwise wait for its like.
                after=tuple(sorted(numbers[place] for place in waits if numbers[place] < number)),
            )
        )
    return found


def _forked(
    runs: Sequence[list[list[DeviceEvent]]], ends: Sequence[tuple[float, int, int]], b: int
) -> list[tuple[int, int]]:
    """The node that the first one of branch ``b`` waits for; ``ends`` are those of all nodes, in order."""
    starts = [run[b][0].start_us for run in runs]
    for place in range(bisect_right(ends, (starts[0] + CLOCK_US, math.inf)) - 1, -1, -1):
        _, other, n = ends[place]
        if other != b and all(run[other][n].end_us <= s + CLOCK_US for run, s in zip(runs, starts, strict=True)):
            return [(other, n)]
    return []


def _joined(runs: Sequence[list[list[DeviceEvent]]], b: int, i: int) -> list[tuple[int, int]]:
    """Nodes of other branches that a later node ``i`` of branch ``b`` waits for."""
    starts = [run[b][i].start_us for run in runs]
    idle_from = [run[b][i - 1].end_us for run in runs]
    if statistics.median(s - e for s, e in zip(starts, idle_from, strict=True)) <= JOIN_GAP_US:
        return []
    found = []
    for other, branch in enumerate(runs[0]):
        # Nodes of a branch end in order.
        last = bisect_right(branch, starts[0] + CLOCK_US, key=lambda node: node.end_us) - 1 if other != b else -1
        first = bisect_right(branch, idle_from[0], key=lambda node: node.end_us)
        for n in range(last, first - 1, -1):
            if all(
                since < run[other][n].end_us <= start + CLOCK_US
                for run, since, start in zip(runs, idle_from, starts, strict=True)
            ):
                found.append((other, n))
                break
    return found
