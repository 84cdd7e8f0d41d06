"""Launches on their way to the SMs: software queues, hardware queues, blocks that are handed out; and the ends of
warps, blocks, grids and launches.
"""

from __future__ import annotations

from gpusched_env.compiling import called
from gpusched_env.games.child_launches import monitors
from gpusched_env.games.child_launches.devices.compiled.sms import begin_phase
from gpusched_env.hardware.occupancy import WARP_THREADS
from gpusched_env.hardware.placement import fit


@called
def new_grid(state, first_thread, iterations, threads, blocks, block, request):
    """A launch, of the host (``block`` -1) or of a warp of a block; gives its number."""
    core = state.core[0]
    number = core.grids
    core.grids += 1
    parent = state.blocks[block].grid if block >= 0 else -1
    grid = state.grids[number]
    grid.first_thread = first_thread
    grid.iterations = iterations
    grid.threads = threads
    grid.blocks = blocks
    grid.nesting = state.grids[parent].nesting + 1 if parent >= 0 else 0
    grid.block = block
    grid.handed_out = 0
    grid.unended = blocks
    grid.children = 0
    grid.ready_ps = 0
    grid.ready = 0
    grid.next_in_queue = -1
    grid.leader = number
    grid.next_member = -1
    grid.handing = number
    grid.unended_members = 1
    grid.unfinished_members = 1
    grid.finished = 0
    launch = state.launches[number]
    launch.parent = parent
    launch.request = request
    launch.blocks = blocks
    launch.created_ps = core.now_ps
    launch.queued_ps = -1
    launch.started_ps = -1
    launch.ended_ps = -1
    launch.finished_ps = -1
    return number


@called
def join_launch(state, leader, last, number):
    """Grid ``number`` is launched together with ``leader``, behind ``last``."""
    state.grids[number].leader = leader
    state.grids[last].next_member = number
    state.grids[leader].unended_members += 1
    state.grids[leader].unfinished_members += 1


@called
def enqueue(state, number):
    """A launch waits for a hardware queue."""
    core = state.core[0]
    state.waiting[core.waiting_end] = number
    core.waiting_end += 1
    core.changed = 1


@called
def enqueue_children(state, warps):
    """Children of a warp whose launch call is over go into their software queues."""
    rules, row = state.rules[0], state.warps[warps]
    block = state.blocks[row.block]
    for place in range(1 if rules.aggregated and row.spawned > 0 else row.spawned):
        number = state.spawned[warps, place]
        before = block.last_child
        block.last_child = number
        if rules.queue_of_block and before >= 0 and state.grids[before].unfinished_members > 0:
            state.grids[before].next_in_queue = number
        else:
            enqueue(state, number)
    row.spawned = 0


@called
def dispatch(state):
    """Hardware queues are filled, then blocks handed out, of the host's kernel first, of children in order."""
    core, rules = state.core[0], state.rules[0]
    while core.waiting_first < core.waiting_end and core.in_use < rules.hardware_queues:
        _admit(state, state.waiting[core.waiting_first])
        core.waiting_first += 1
    _hand_out(state, core.kernel_grid)
    while core.handing_first < core.handing_end and _hand_out(state, state.handing[core.handing_first]):
        core.handing_first += 1


@called
def _hand_out(state, number):
    """Hand out blocks of a launch; ``False``: some are left, because it is not ready or no SM has room."""
    leader = state.grids[number]
    if not leader.ready:
        return False
    while leader.handing >= 0:
        grid = state.grids[leader.handing]
        while grid.handed_out < grid.blocks:
            at = _most_room(state, leader.handing)
            if at < 0:
                return False
            _place(state, leader.handing, at)
        leader.handing = grid.next_member
    return True


@called
def becomes_ready(state):
    """The launch that becomes ready next, or -1."""
    core = state.core[0]
    number = core.kernel_grid
    if state.grids[number].ready:
        if core.handing_first == core.handing_end:
            return -1
        number = state.handing[core.handing_first]
    return -1 if state.grids[number].ready else number


@called
def _admit(state, number):
    core, rules = state.core[0], state.rules[0]
    grid = state.grids[number]
    core.in_use += 1
    ready_ps = core.now_ps + rules.dispatch_ps
    if grid.nesting > 0:
        ready_ps = max(ready_ps, core.ready_ps + rules.interval_ps)
    core.ready_ps = ready_ps
    grid.ready_ps = ready_ps
    grid.ready = ready_ps <= core.now_ps
    member = number
    while member >= 0:
        state.launches[member].queued_ps = core.now_ps
        core.children -= state.grids[member].nesting > 0
        member = state.grids[member].next_member
    if grid.nesting > 0:
        state.handing[core.handing_end] = number
        core.handing_end += 1


@called
def _shape(state, child):
    """Threads, warps, registers and shared memory of blocks of the present kernel or of its children."""
    kernel = state.kernels[state.core[0].kernel]
    if child:
        return kernel.child_threads, kernel.child_warps, kernel.child_registers, kernel.child_shared
    return kernel.block_threads, kernel.block_warps, kernel.block_registers, kernel.block_shared


@called
def update_room(state, at):
    """What an SM can still take has changed."""
    sm = state.sms[at]
    for child in range(2):
        threads, warps, registers, shared = _shape(state, child)
        state.room[child, at] = fit(
            sm.threads, sm.warps, sm.blocks, sm.registers, sm.shared, threads, warps, registers, shared
        )


@called
def _most_room(state, number):
    """The SM that holds most blocks of a grid, the first of equal ones; -1: none."""
    room = state.room[1 if state.grids[number].nesting > 0 else 0]
    best, found = 0, -1
    for at in range(room.size):
        if room[at] > best:
            best, found = room[at], at
    return found


@called
def occupy(state, grid, at, sign):
    """A block of ``grid`` takes its room on an SM, or gives it back (``sign`` -1)."""
    threads, warps, registers, shared = _shape(state, grid.nesting > 0)
    sm = state.sms[at]
    sm.threads -= sign * threads
    sm.warps -= sign * warps
    sm.blocks -= sign
    sm.registers -= sign * registers
    sm.shared -= sign * shared
    update_room(state, at)


@called
def _place(state, number, at):
    core, totals, grid = state.core[0], state.totals[0], state.grids[number]
    occupy(state, grid, at, 1)
    if grid.handed_out == 0:
        state.launches[number].started_ps = core.now_ps
    size = _shape(state, grid.nesting > 0)[0]
    first = grid.handed_out * size
    end = min(first + size, grid.threads)
    grid.handed_out += 1
    core.free_blocks -= 1
    slot = state.free_blocks[core.free_blocks]
    block = state.blocks[slot]
    block.grid = number
    block.sm = at
    block.started_ps = core.now_ps
    block.warps = (end - first + WARP_THREADS - 1) // WARP_THREADS
    block.children = 0
    block.last_child = -1
    core.live_warps += block.warps
    totals.resident_blocks += 1
    totals.peak_blocks = max(totals.peak_blocks, totals.resident_blocks)
    if grid.nesting > 0:
        monitors.block_started(state.monitor[0], core.now_ps, state.rules[0].window_ps)
    for start in range(first, end, WARP_THREADS):
        if _is_first_alike(state, grid, first, start, end):
            _begin(state, slot, grid, start, end)


@called
def _work_before(state, grid, start, end):
    """Lanes of a warp, most and total iterations of them before their requests, and the number of these."""
    lanes = min(WARP_THREADS, end - start)
    if grid.first_thread < 0:
        return lanes, grid.iterations, grid.iterations * lanes, 0
    thread = grid.first_thread + start
    most, total = 0, 0
    for lane in range(thread, thread + lanes):
        most = max(most, state.base[lane])
        total += state.base[lane]
    return lanes, most, total, state.first_request[thread + lanes] - state.first_request[thread]


@called
def _is_first_alike(state, grid, first, start, end):
    """Whether no warp of the block before this one goes through its only phase together with it."""
    if grid.first_thread < 0:
        # All but the last warp are full; that may be, too.
        return start == first or (end - start < WARP_THREADS)
    _, most, total, requests = _work_before(state, grid, start, end)
    if requests > 0:
        return True
    for other in range(first, start, WARP_THREADS):
        _, other_most, other_total, other_requests = _work_before(state, grid, other, end)
        if other_requests == 0 and other_most == most and other_total == total:
            return False
    return True


@called
def _count_alike(state, grid, start, end):
    """Warps from this one on that go through their only phase together with it."""
    lanes, most, total, requests = _work_before(state, grid, start, end)
    if grid.first_thread < 0:
        return (end - start) // lanes
    if requests > 0:
        return 1
    count = 0
    for other in range(start, end, WARP_THREADS):
        _, other_most, other_total, other_requests = _work_before(state, grid, other, end)
        count += other_requests == 0 and other_most == most and other_total == total
    return count


@called
def _begin(state, slot, grid, start, end):
    """A warp's prologue, and the iterations that come before its requests."""
    core, rules = state.core[0], state.rules[0]
    lanes, most, total, _ = _work_before(state, grid, start, end)
    core.free_warps -= 1
    warps = state.free_warps[core.free_warps]
    row = state.warps[warps]
    row.block = slot
    row.first_thread = grid.first_thread + start if grid.first_thread >= 0 else -1
    row.lanes = lanes
    row.count = _count_alike(state, grid, start, end)
    row.turn = -1
    row.serial_most = 0
    row.serial_total = 0
    row.spawned = 0
    row.spilled = 0
    begin_phase(
        state,
        warps,
        rules.prologue_cycles + most * rules.iteration_cycles,
        rules.prologue_lines + total * (rules.child_lines if grid.nesting > 0 else rules.parent_lines),
        rules.prologue_issue_cycles + most * rules.iteration_issue_cycles,
    )


@called
def warps_end(state, warps):
    """A warp, or equal ones of a block, have nothing left to do."""
    core, row, rules = state.core[0], state.warps[warps], state.rules[0]
    slot = row.block
    block = state.blocks[slot]
    core.live_warps -= row.count
    if state.grids[block.grid].nesting > 0:
        residency_ps = core.now_ps - block.started_ps
        monitors.warps_ended(state.monitor[0], core.now_ps, rules.window_ps, residency_ps, row.count)
    block.warps -= row.count
    state.free_warps[core.free_warps] = warps
    core.free_warps += 1
    if block.warps == 0 and (block.children == 0 or not rules.waits):
        _block_ends(state, slot)


@called
def _block_ends(state, slot):
    number = state.blocks[slot].grid
    if _leave(state, slot):
        _finish(state, number)


@called
def _leave(state, slot):
    """A block gives its SM back; ``True``: so its grid has finished."""
    core, rules = state.core[0], state.rules[0]
    block = state.blocks[slot]
    number = block.grid
    grid = state.grids[number]
    occupy(state, grid, block.sm, -1)
    core.changed = 1
    state.totals[0].resident_blocks -= 1
    if grid.nesting > 0:
        monitors.block_ended(state.monitor[0], core.now_ps, rules.window_ps, core.now_ps - block.started_ps)
    state.free_blocks[core.free_blocks] = slot
    core.free_blocks += 1
    grid.unended -= 1
    if grid.unended > 0:
        return False
    state.launches[number].ended_ps = core.now_ps
    leader = state.grids[grid.leader]
    leader.unended_members -= 1
    if leader.unended_members == 0 and not rules.held_until_children:
        core.in_use -= 1
    return grid.children == 0


@called
def _finish(state, number):
    """A grid's blocks have ended and its children have finished; that may have been the last of its parent."""
    core, rules = state.core[0], state.rules[0]
    while True:
        grid = state.grids[number]
        grid.finished = 1
        state.launches[number].finished_ps = core.now_ps
        leader = state.grids[grid.leader]
        leader.unfinished_members -= 1
        if leader.unfinished_members == 0:
            if rules.held_until_children:
                core.in_use -= 1
                core.changed = 1
            if leader.next_in_queue >= 0:
                enqueue(state, leader.next_in_queue)
        parent = state.launches[number].parent
        if parent < 0:
            core.finished = 1
            return
        block = state.blocks[grid.block]
        block.children -= rules.waits
        state.grids[parent].children -= 1
        if rules.waits and block.children == 0 and block.warps == 0:
            done = _leave(state, grid.block)
        else:
            done = state.grids[parent].children == 0 and state.grids[parent].unended == 0
        if not done:
            return
        number = parent
