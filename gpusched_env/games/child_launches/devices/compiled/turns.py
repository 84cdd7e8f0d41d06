"""Turns of a warp: its lanes come to their next requests, launch children or do the work themselves.

Warps that stall in a launch call are in a binary heap, by time, then by the order in which they began.
"""

from __future__ import annotations

from gpusched_env.compiling import called
from gpusched_env.games.child_launches import monitors
from gpusched_env.games.child_launches.device import NO_LIMIT
from gpusched_env.games.child_launches.devices.compiled.queues import enqueue_children, join_launch, new_grid, warps_end
from gpusched_env.games.child_launches.devices.compiled.sms import begin_phase
from gpusched_env.games.child_launches.hardware.warp_machine import cycles_to_ps


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


@called
def next_turn(state, warps):
    """Take a warp to its next phase or end; ``True``: a request waits for a decision first."""
    row = state.warps[warps]
    while row.first_thread >= 0:
        row.turn += 1
        if not _meet_requests(state, warps):
            break
        if state.core[0].calls > 0:
            _show_next(state)
            return True
        if _go_on(state, warps):
            return False
    warps_end(state, warps)
    return False


@called
def answer(state, spawn):
    """The decision on the present request; ``True``: there is another one."""
    core, rules, totals = state.core[0], state.rules[0], state.totals[0]
    warps, request = core.asking, state.request[0].request
    row = state.warps[warps]
    if spawn:
        room = _room(state)
        if room == 0 and rules.fails:
            totals.refused += 1
            spawn = False
        else:
            row.spilled += room == 0
            _spawn(state, warps, request)
    if not spawn:
        _serialise(state, row, request)
    core.position += 1
    if core.position < core.calls:
        _show_next(state)
        return True
    core.asking = -1
    if _go_on(state, warps):
        return False
    return next_turn(state, warps)


@called
def stall_over(state, warps):
    """A launch call is over; ``True``: a request waits for a decision."""
    enqueue_children(state, warps)
    if _serial_loop(state, warps):
        return False
    return next_turn(state, warps)


@called
def _request_of(state, row, lane):
    """The request of a lane in this turn, or -1."""
    thread = row.first_thread + lane
    request = state.first_request[thread] + row.turn
    return request if request < state.first_request[thread + 1] else -1


@called
def _meet_requests(state, warps):
    """Look at all lanes' requests of this turn; ``False``: there are none."""
    core, row, threshold = state.core[0], state.warps[warps], state.rules[0].threshold
    any_made = False
    core.asking = -1
    core.lane = -1
    core.calls = 0
    core.position = 0
    core.largest_work = 0
    row.spilled = 0
    for lane in range(row.lanes):
        request = _request_of(state, row, lane)
        if request < 0:
            continue
        any_made = True
        if state.work[request] > threshold:
            core.asking = warps
            core.calls += 1
            core.largest_work = max(core.largest_work, state.work[request])
        else:
            _serialise(state, row, request)
    return any_made


@called
def _show_next(state):
    """Write down the next request that is asked about."""
    core, shown = state.core[0], state.request[0]
    row = state.warps[core.asking]
    request = -1
    while request < 0 or state.work[request] <= state.rules[0].threshold:
        core.lane += 1
        request = _request_of(state, row, core.lane)
    kernel, host = state.kernels[core.kernel], state.grids[core.kernel_grid]
    state.totals[0].decisions += 1
    monitors.advance(state.monitor[0], core.now_ps, state.rules[0].window_ps)
    shown.now_ps = core.now_ps
    shown.request = request
    shown.kernel = core.kernel
    shown.nesting = state.grids[state.blocks[row.block].grid].nesting
    shown.work = state.work[request]
    shown.items = state.items[request]
    shown.blocks = (shown.items + kernel.child_threads - 1) // kernel.child_threads
    shown.calls = core.calls
    shown.position = core.position
    shown.spawned = row.spawned
    shown.serial_work = row.serial_most
    shown.largest_work = core.largest_work
    shown.waiting = core.children
    shown.queues = core.in_use
    shown.resident_blocks = state.totals[0].resident_blocks
    shown.resident_warps = core.live_warps
    shown.parent_blocks = host.blocks - host.handed_out
    shown.room = _room(state)


@called
def _room(state):
    """Launches until the pool is full."""
    pool = state.rules[0].pool
    return pool if pool == NO_LIMIT else max(0, pool - state.core[0].children)


@called
def _spawn(state, warps, request):
    core, row = state.core[0], state.warps[warps]
    blocks = state.request[0].blocks
    number = new_grid(
        state, state.first_child[request], state.iterations[request], state.items[request], blocks, row.block, request
    )
    if state.rules[0].aggregated and row.spawned > 0:
        join_launch(state, state.spawned[warps, 0], state.spawned[warps, row.spawned - 1], number)
    state.spawned[warps, row.spawned] = number
    row.spawned += 1
    state.monitor[0].inside += blocks
    core.children += 1
    state.totals[0].spawned += 1
    block = state.blocks[row.block]
    block.children += 1
    state.grids[block.grid].children += 1


@called
def _serialise(state, row, request):
    row.serial_most = max(row.serial_most, state.work[request])
    row.serial_total += state.work[request]


@called
def _go_on(state, warps):
    """Everything is decided: the launch call, or the loop; ``False``: there is neither."""
    return _stall(state, warps) or _serial_loop(state, warps)


@called
def _stall(state, warps):
    """The launch call; ``False`` if there is none, or it takes no time and is over."""
    rules, row = state.rules[0], state.warps[warps]
    if row.spawned == 0:
        return False
    calls = 1 if rules.aggregated else row.spawned
    cycles = rules.per_call_cycles + rules.per_child_cycles * calls + rules.spill_cycles * row.spilled
    state.totals[0].spilled += row.spilled
    stall_ps = cycles_to_ps(cycles, rules.ps_per_cycle)
    if stall_ps > 0:
        push_stall(state, state.core[0].now_ps + stall_ps, warps)
        return True
    enqueue_children(state, warps)
    return False


@called
def _serial_loop(state, warps):
    """Lanes that launched nothing do the work of this turn; ``False``: there are none."""
    rules, row = state.rules[0], state.warps[warps]
    most, total = row.serial_most, row.serial_total
    row.serial_most = 0
    row.serial_total = 0
    if most == 0:
        return False
    begin_phase(
        state,
        warps,
        most * rules.iteration_cycles,
        total * rules.parent_lines,
        most * rules.iteration_issue_cycles,
    )
    return True
