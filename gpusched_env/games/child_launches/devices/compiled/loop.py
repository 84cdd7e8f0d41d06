"""The run, from request to request."""

from __future__ import annotations

from typing import Any, Final

from gpusched_env.compiling import cached, called
from gpusched_env.games.child_launches.devices.compiled.queues import dispatch, enqueue, new_grid, update_room
from gpusched_env.games.child_launches.devices.compiled.sms import NEVER, arrive, due_sm, end_phase, next_phase_end
from gpusched_env.games.child_launches.devices.compiled.stalls import pop_stall
from gpusched_env.games.child_launches.devices.compiled.turns import answer, next_turn, stall_over

DONE: Final = 0
ASKS: Final = 1
DEADLOCK: Final = 2


@called
def run_on(state: Any) -> int:
    """To the next request (:data:`ASKS`), the end or a deadlock."""
    core = state.core[0]
    while True:
        if core.finished:
            if core.kernel + 1 == state.kernels.size:
                return DONE
            _launch_kernel(state)
        if core.changed:
            core.changed = 0
            dispatch(state)
        at = due_sm(state)
        if at >= 0:
            if next_turn(state, end_phase(state, at)):
                return ASKS
        elif core.stalls > 0 and state.stall_ends[0, 0] <= core.now_ps:
            if stall_over(state, pop_stall(state)):
                return ASKS
        elif _head_is_ready(state):
            core.changed = 1
        elif not _go_on(state):
            return DEADLOCK


@called
def decide_and_run_on(state: Any, spawn: bool) -> int:
    """Answer the present request, then :func:`run_on`."""
    if answer(state, spawn):
        return ASKS
    return run_on(state)


@cached()
def begin(state):
    """From the beginning of the application."""
    return run_on(state)


@cached()
def proceed(state, spawn):
    """On from a request."""
    return decide_and_run_on(state, spawn)


@called
def _launch_kernel(state):
    core = state.core[0]
    core.kernel += 1
    core.finished = 0
    kernel = state.kernels[core.kernel]
    for at in range(state.sms.size):
        update_room(state, at)
    blocks = (kernel.threads + kernel.block_threads - 1) // kernel.block_threads
    core.kernel_grid = new_grid(state, kernel.first_thread, 0, kernel.threads, blocks, -1, -1)
    enqueue(state, core.kernel_grid)


@called
def _head_is_ready(state):
    """Whether the launch whose blocks are next becomes ready now."""
    core = state.core[0]
    if core.handing_first == core.handing_end:
        return False
    head = state.grids[state.handing[core.handing_first]]
    if head.ready or head.ready_ps > core.now_ps:
        return False
    head.ready = 1
    return True


@called
def _go_on(state):
    """To the time of the next event; ``False``: there is none."""
    core = state.core[0]
    next_ps = next_phase_end(state)
    if core.stalls > 0:
        next_ps = min(next_ps, state.stall_ends[0, 0])
    if core.handing_first < core.handing_end:
        head = state.grids[state.handing[core.handing_first]]
        if not head.ready:
            next_ps = min(next_ps, head.ready_ps)
    if next_ps == NEVER:
        return False
    state.totals[0].warp_ps += (next_ps - core.now_ps) * core.live_warps
    core.now_ps = next_ps
    arrive(state, next_ps)
    return True
