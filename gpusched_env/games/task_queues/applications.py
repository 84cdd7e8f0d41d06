"""What tasks do: steps of three graph algorithms on data that change while workers run.

Both devices call these functions at the simulated moment of each step. So what is done twice, because somebody else's
result came too late to be seen, follows from the order of events.

A task is a vertex plus 1; of a colouring, minus that stands for the check of the vertex.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import law, procedure

BFS: Final = 0
PAGERANK: Final = 1
COLOURING: Final = 2
UNREACHED: Final = 1 << 40
"""Depth of a vertex that the search has not come to."""


class Data(NamedTuple):
    """The graph, and what is computed."""

    first: NDArray[np.int64]
    """(vertices + 1,) where each vertex's neighbours start."""
    neighbour: NDArray[np.int32]
    """(edges,) the vertex that each edge leads to."""
    level: NDArray[np.int64]
    """(vertices,) depth, or colour (-1: none yet)."""
    waiting: NDArray[np.int64]
    """(vertices,) whether a task of a colouring will still look at the vertex (0 or 1)."""
    rank: NDArray[np.float64]
    residual: NDArray[np.float64]
    """(vertices,) what has not been handed on."""
    used: NDArray[np.int64]
    """(most neighbours + 2,) by colour: the last look that saw it; in the last place the number of looks."""
    home: NDArray[np.int64]
    """(vertices,) the GPU that owns each vertex, whose value counts; empty: there is one GPU."""
    kept: NDArray[np.float64]
    """(GPUs x vertices,) what each GPU keeps of all vertices: of a search, the depth that it last sent to the vertex's
    owner; of a ranking, what it has not yet sent to its residual."""


@procedure
def vertex_of(task: int) -> int:
    """The vertex of a task."""
    return abs(task) - 1


@procedure
def begin_task(kind: int, data: Data, damping: float, task: int) -> tuple[int, float]:
    """A worker takes a task: the depth that it has now, or what each neighbour gets of its residual."""
    vertex = vertex_of(task)
    if kind == BFS:
        return data.level[vertex], 0.0
    if kind == PAGERANK:
        taken = data.residual[vertex]
        data.residual[vertex] = 0.0
        data.rank[vertex] += taken
        return 0, damping * taken / max(1, data.first[vertex + 1] - data.first[vertex])
    return 0, 0.0


@law
def visit(kind: int, data: Data, epsilon: float, depth: int, share: float, neighbour: int) -> int:
    """An edge of a search or a ranking, as an atomic operation: the task to push, or 0."""
    if kind == BFS:
        if data.level[neighbour] > depth + 1:
            data.level[neighbour] = depth + 1
            return neighbour + 1
        return 0
    before = data.residual[neighbour]
    data.residual[neighbour] = before + share
    return neighbour + 1 if before < epsilon <= before + share else 0


@law
def value_to_send(kind: int, data: Data, epsilon: float, gpu: int, depth: int, share: float, neighbour: int) -> float:
    """An edge to a vertex of another GPU, in the memory of the edge's own: the value to send, or less than 0.

    A search sends each depth that is below what it sent before, a ranking what has come to epsilon.
    """
    place = gpu * data.home.size + neighbour
    if kind == BFS:
        if data.kept[place] > depth + 1:
            data.kept[place] = depth + 1
            return float(depth + 1)
        return -1.0
    together: float = data.kept[place] + share
    if together < epsilon:
        data.kept[place] = together
        return -1.0
    data.kept[place] = 0.0
    return together


@law
def receive(kind: int, data: Data, epsilon: float, value: float, vertex: int) -> int:
    """A value of another GPU arrives, as an atomic operation: the task to push, or 0."""
    return visit(kind, data, epsilon, int(value) - 1, value, vertex)


@procedure
def inspect_neighbours(data: Data, task: int) -> int:
    """What a colouring's task finds out before it writes: the smallest colour that no neighbour has; of a check,
    whether a lower neighbour has the same (0 or 1)."""
    vertex = vertex_of(task)
    if task < 0:
        for edge in range(data.first[vertex], data.first[vertex + 1]):
            other = data.neighbour[edge]
            if other < vertex and data.level[other] == data.level[vertex]:
                return 1
        data.waiting[vertex] = 0
        return 0
    count = data.used.size - 1
    stamp = data.used[count] + 1
    data.used[count] = stamp
    for edge in range(data.first[vertex], data.first[vertex + 1]):
        colour = data.level[data.neighbour[edge]]
        # A vertex has no more colours below its number of neighbours than these: higher ones do not matter.
        if 0 <= colour < count:
            data.used[colour] = stamp
    free = 0
    while data.used[free] == stamp:
        free += 1
    return free


@procedure
def write_colour(data: Data, task: int, looked: int) -> int:
    """A colouring's task writes what it found out: the task to push, or 0."""
    vertex = vertex_of(task)
    if task > 0:
        data.level[vertex] = looked
        return -task
    return vertex + 1 if looked else 0


@procedure
def requeue_conflict(data: Data, vertex: int, other: int) -> int:
    """A check without lower conflicts meets a higher neighbour of the same colour that has been checked before: the
    task to push, or 0."""
    if other > vertex and data.level[other] == data.level[vertex] and data.waiting[other] == 0:
        data.waiting[other] = 1
        return other + 1
    return 0
