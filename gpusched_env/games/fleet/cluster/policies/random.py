"""Random: any node that a pod fits on, with equal chances (``random_score.go``). A pod that shares a GPU gets any with
room."""

from __future__ import annotations

from typing import Any, Final

from gpusched_env.compiling import procedure

EQUAL: Final = 0
"""The score of all nodes."""


@procedure
def drawn_node(scores: Any, draw: float) -> int:
    """One of the nodes that a pod fits on; -1: there is none.

    Args:
        scores: (nodes,) at least 0 where it fits.
        draw: 0 to below 1.
    """
    fitting = 0
    for node in range(len(scores)):
        if scores[node] >= EQUAL:
            fitting += 1
    ahead = int(draw * fitting)
    for node in range(len(scores)):
        if scores[node] >= EQUAL:
            if ahead == 0:
                return node
            ahead -= 1
    return -1
