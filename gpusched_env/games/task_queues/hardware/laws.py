"""Laws of queues of tasks in device memory, and of the workers that take from them.

A queue is a linear array with counters (Atos, ICPP 2022): ``start`` (up to where tasks are taken), ``alloc`` (up to
where room is reserved), ``count`` and ``top`` (how many entries are written, and the highest one that is), and ``end``
(up to where every entry is written). Workers read ahead: they take indices that nobody has written yet.

Devices: :mod:`gpusched_env.games.task_queues.devices`.
"""

from __future__ import annotations

import math
from typing import Final

from gpusched_env.compiling import law

SLOT_EDGES: Final = 32
"""A slot: a warp looks at so many edges at once, one a lane."""


@law
def served(free_ps: int, now_ps: int, work_ps: int) -> int:
    """When something that takes one after another is done with what comes now (ps).

    Atomic operations on one address go one after another, and so do bytes through the memory.

    Args:
        free_ps: when it is done with what came before.
        now_ps: the present.
        work_ps: how long it takes for this.
    """
    return max(free_ps, now_ps) + work_ps


@law
def moved_ps(edges: int, ps_per_edge: float) -> int:
    """How long the memory of the GPU takes for the bytes of ``edges`` edges, to the nearest picosecond."""
    return math.floor(edges * ps_per_edge + 0.5)


@law
def missed(state_bytes: float, l2_bytes: float) -> float:
    """Share (0 to 1) of scattered accesses to ``state_bytes`` of data that L2 does not have."""
    return max(0.0, 1.0 - l2_bytes / state_bytes)


@law
def readable(index: int, limit: int, end: int) -> int:
    """Written tasks of the segment from ``index`` up to ``limit``: not those at ``end`` and above."""
    return max(0, min(limit, end) - index)


@law
def published(end: int, count: int, top: int) -> int:
    """The new ``end``: everything is readable if all entries below the highest written one are written."""
    return max(end, top) if count == top else end


@law
def slots_of(edges: int) -> int:
    """Slots that hold ``edges`` edges."""
    return (edges + SLOT_EDGES - 1) // SLOT_EDGES


@law
def rounds_of(slots: int, warps: int) -> int:
    """Slots of each of a worker's ``warps``, which get contiguous ones; at least 1."""
    return max(1, (slots + warps - 1) // warps)


@law
def edges_in_round(edges: int, rounds: int, number: int) -> int:
    """How many of a step's ``edges`` its warps look at in round ``number`` of ``rounds``: slots ``number``,
    ``number + rounds``, and so on; only the last slot of all may be short."""
    slots = (edges + SLOT_EDGES - 1) // SLOT_EDGES
    own = (slots - number + rounds - 1) // rounds
    short = slots * SLOT_EDGES - edges
    return own * SLOT_EDGES - (short if (slots - 1) % rounds == number else 0)


@law
def polled_at(since_ps: int, poll_ps: int, now_ps: int) -> int:
    """The first poll at ``now_ps`` or later of a worker that polls every ``poll_ps`` and did at ``since_ps``."""
    return since_ps + max(1, (now_ps - since_ps + poll_ps - 1) // poll_ps) * poll_ps
