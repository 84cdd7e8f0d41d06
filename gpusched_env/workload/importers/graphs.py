"""CUDA graphs of a recording: from the times of their nodes to which node waits for which.

Profilers record when and in which stream each node ran, not the edges. Launches with the same nodes are one graph.
Nodes of a stream are a branch, one after another. Edges between branches are inferred from all launches of the graph:

* The first node of a branch waits for the node that ended last before it started.
* A later node that starts late (:data:`JOIN_GAP_US`) waits for the last node of each other branch that ended while its
  own branch was idle.

An edge that never held a node up leaves no trace and is missing; what follows the graph waits for all of its nodes.
"""

from __future__ import annotations

import statistics
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
    streams = sorted({event.stream for event in action.events}, key=lambda stream: (stream != action.stream, stream))
    return [[event for event in action.events if event.stream == stream] for stream in streams]


def _identity(action: Action) -> tuple[object, ...]:
    return tuple(tuple((e.kind, e.name, e.shape, e.bytes) for e in branch) for branch in _branches(action))


def _nodes(actions: Sequence[Action]) -> list[Node]:
    runs = [_branches(action) for action in actions]
    places = [(b, i) for b, branch in enumerate(runs[0]) for i in range(len(branch))]
    places.sort(key=lambda place: (runs[0][place[0]][place[1]].start_us, runs[0][place[0]][place[1]].end_us))
    numbers = {place: number for number, place in enumerate(places)}
    found = []
    for number, (b, i) in enumerate(places):
        own = [(b, i - 1)] if i > 0 else []
        # Only earlier nodes: one that never takes any time could otherwise wait for its like.
        waits = [place for place in (*own, *_joined(runs, b, i)) if numbers[place] < number]
        found.append(
            Node(
                event=runs[0][b][i],
                duration_us=statistics.fmean(run[b][i].duration_us for run in runs),
                after=tuple(sorted(numbers[place] for place in waits)),
            )
        )
    return found


def _joined(runs: Sequence[list[list[DeviceEvent]]], b: int, i: int) -> list[tuple[int, int]]:
    """Nodes of other branches that node ``i`` of branch ``b`` waits for."""
    starts = [run[b][i].start_us for run in runs]
    idle_from = [run[b][i - 1].end_us if i > 0 else float("-inf") for run in runs]
    if i > 0 and statistics.median(s - e for s, e in zip(starts, idle_from, strict=True)) <= JOIN_GAP_US:
        return []
    found = []
    for other, branch in enumerate(runs[0]):
        ended = [
            n
            for n in range(len(branch) if other != b else 0)
            if all(
                since < run[other][n].end_us <= start + CLOCK_US
                for run, since, start in zip(runs, idle_from, starts, strict=True)
            )
        ]
        found += [(other, n) for n in ended[-1:]]
    if i == 0:
        return sorted(found, key=lambda place: runs[0][place[0]][place[1]].end_us)[-1:]
    return found
