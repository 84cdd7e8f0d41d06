"""Ends of warps, blocks, grids and launches."""

from __future__ import annotations

from gpusched_env.compiling import called
from gpusched_env.games.child_launches import monitors
from gpusched_env.games.child_launches.devices.compiled.queues import enqueue, occupy


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
