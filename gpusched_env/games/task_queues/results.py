"""Whether what was computed is right: for every run, whatever the form."""

from __future__ import annotations

import numpy as np

from gpusched_env.games.task_queues.applications import UNREACHED, Data
from gpusched_env.games.task_queues.problem import TaskProblem
from gpusched_env.workload.graphs import levels

ROUNDING = 1e-9
"""Of ranks, per unit."""


def fault_of(problem: TaskProblem, data: Data) -> str:
    """What is wrong with the results of a finished application; empty: nothing.

    A search has the depths of one that goes level by level. A ranking has no residual of ``epsilon`` or more, and ranks
    and residuals keep the balance that they began with; what one of several GPUs has not sent is such a residual, too.
    A colouring gives neighbours different colours.
    """
    graph = problem.graph
    if problem.application == "bfs":
        level = levels(graph, problem.source)
        wrong = np.flatnonzero(np.where(level < 0, UNREACHED, level) != data.level)
        return f"depth of vertex {wrong[0]} is {data.level[wrong[0]]}, not {level[wrong[0]]}" if len(wrong) else ""
    if problem.application == "colouring":
        same = np.flatnonzero(data.level[graph.origin] == data.level[graph.neighbour])
        if len(same):
            edge = same[0]
            ends = graph.origin[edge], graph.neighbour[edge]
            return f"vertices {ends[0]} and {ends[1]} have colour {data.level[ends[0]]}"
        return "" if (data.level >= 0).all() else f"vertex {int(np.argmin(data.level))} has no colour"
    handed = problem.damping * data.rank / np.maximum(graph.degree, 1)
    received = np.bincount(graph.neighbour, handed[graph.origin], len(graph.degree))
    kept = np.vstack([data.residual, data.kept.reshape(-1, len(graph.degree))])
    balance = np.abs(1.0 - problem.damping + received - data.rank - kept.sum(0))
    worst = int(np.argmax(balance / np.maximum(data.rank, 1.0)))
    if balance[worst] > ROUNDING * max(float(data.rank[worst]), 1.0):
        return f"rank of vertex {worst} is {data.rank[worst]}, out of balance by {balance[worst]}"
    largest = int(np.argmax(kept.max(0)))
    left = float(kept[:, largest].max())
    return f"residual of vertex {largest} is {left}, not below {problem.epsilon}" if left >= problem.epsilon else ""
