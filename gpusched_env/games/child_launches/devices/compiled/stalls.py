"""Warps that stall in a launch call: a binary heap by time, then by the order in which they began."""

from __future__ import annotations

from gpusched_env.compiling import called


@called
def push_stall(state, end_ps, warps):
    """``warps`` stalls until ``end_ps``."""
    core, heap = state.core[0], state.stall_ends
    at = core.stalls
    core.stalls += 1
    core.serial += 1
    serial = core.serial
    while at > 0:
        above = (at - 1) // 2
        if heap[above, 0] <= end_ps:
            break
        heap[at, 0], heap[at, 1], heap[at, 2] = heap[above, 0], heap[above, 1], heap[above, 2]
        at = above
    heap[at, 0], heap[at, 1], heap[at, 2] = end_ps, serial, warps


@called
def pop_stall(state):
    """The warp whose stall ends first; it is taken out."""
    core, heap = state.core[0], state.stall_ends
    first = heap[0, 2]
    core.stalls -= 1
    last = core.stalls
    end_ps, serial, warps = heap[last, 0], heap[last, 1], heap[last, 2]
    at = 0
    while 2 * at + 1 < last:
        below = 2 * at + 1
        if below + 1 < last and _before(heap, below + 1, below):
            below += 1
        if not (heap[below, 0] < end_ps or (heap[below, 0] == end_ps and heap[below, 1] < serial)):
            break
        heap[at, 0], heap[at, 1], heap[at, 2] = heap[below, 0], heap[below, 1], heap[below, 2]
        at = below
    heap[at, 0], heap[at, 1], heap[at, 2] = end_ps, serial, warps
    return first


@called
def _before(heap, one, other):
    return heap[one, 0] < heap[other, 0] or (heap[one, 0] == heap[other, 0] and heap[one, 1] < heap[other, 1])
