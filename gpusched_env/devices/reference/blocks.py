"""Progress of resident blocks: rates are constant between events, so every step is exact."""

from __future__ import annotations

import numpy as np
from numba import njit

from gpusched_env.devices.reference.dispatcher import dispatch_all, dispatch_to, overlap
from gpusched_env.hardware.contention import NO_LEVEL, block_time_us, fair_level, issue_stretch, served_traffic, throttle

DONE = 1e-9
"""A block with less than this share of its work left has ended (absorbs rounding of products)."""


@njit(cache=True)
def step(now, full, jumping, gpu, order, sms, rows, grids, queue, state, finished, dispatched, started, ended):
    """Advance to ``now``: progress, block ends, dispatch, new rates, next event.

    Args:
        now: simulated time (us), not before ``state.now``; no block may end earlier than that.
        full: whether grids or partitions changed since the last step, so that any SM may get blocks.
        jumping: whether steady states may be jumped over (see :func:`jump`).
        finished, dispatched, started: output lists of grid slots; their lengths go to ``state``.
        ended: output rows ``(sm, grid, blocks, since_us)`` of residencies that ended.
    """
    state.finished = 0
    state.dispatched = 0
    state.started = 0
    state.ended_rows = 0
    progress(now, gpu, sms, rows, grids, state)
    for rank in range(gpu.sms):
        sm = order[rank]
        r = 0
        while r < sms[sm].rows:
            if rows[sm, r].left > DONE:
                r += 1
                continue
            end_row(rank, sm, r, gpu, order, sms, rows, grids, queue, state, finished, dispatched, started, ended)
    if full:
        dispatch_all(gpu, order, sms, rows, grids, queue, state, started, dispatched)
    set_rates(gpu, sms, rows, grids, state)
    if jumping:
        jump(gpu, sms, rows, grids, queue, state)


@njit(cache=True)
def progress(now, gpu, sms, rows, grids, state):
    """Carry all rows to ``now`` and give waves that have not begun back to their grids."""
    dt = now - state.now
    state.now = now
    for sm in range(gpu.sms):
        for r in range(sms[sm].rows):
            row = rows[sm, r]
            row.left -= row.rate * dt
            if row.left > 1.0 + DONE:
                waves = int(np.ceil(row.left - DONE)) - 1
                row.left -= waves
                grids[row.grid].waiting += waves * row.blocks


@njit(cache=True)
def end_row(rank, sm, r, gpu, order, sms, rows, grids, queue, state, finished, dispatched, started, ended):
    """End the blocks of one row, one at a time; the dispatcher runs after each."""
    slot = rows[sm, r].grid
    count = rows[sm, r].blocks
    ended[state.ended_rows, 0] = sm
    ended[state.ended_rows, 1] = slot
    ended[state.ended_rows, 2] = count
    ended[state.ended_rows, 3] = rows[sm, r].since_us
    state.ended_rows += 1
    last = sms[sm].rows - 1
    for i in range(r, last):
        rows[sm, i] = rows[sm, i + 1]
    sms[sm].rows = last
    grid = grids[slot]
    for _ in range(count):
        release(grid, sms[sm], state)
        if state.queue > 0 and dispatch_to(gpu, rank, sm, sms, rows, grids, queue, state, started, dispatched):
            dispatch_all(gpu, order, sms, rows, grids, queue, state, started, dispatched)
    if grid.resident == 0 and (grid.waiting == 0 or grid.queued == 0):
        finished[state.finished] = slot
        state.finished += 1


@njit(cache=True)
def release(grid, sm, state):
    """Free what one block of ``grid`` holds on ``sm``."""
    sm.threads -= grid.block.threads
    sm.warps -= grid.block.warps
    sm.blocks -= 1
    sm.registers -= grid.block.registers
    sm.shared -= grid.block.shared_bytes
    sm.dirty = 1
    grid.resident -= 1
    state.resident_threads -= grid.block.threads
    if sm.blocks == 0:
        state.busy_sms -= 1


@njit(cache=True)
def set_rates(gpu, sms, rows, grids, state):
    """Progress rates under the present residency, and the time of the next block end."""
    demands = np.empty(gpu.sms)
    total = 0.0
    # Many SMs hold the same: one power function serves all that meet the same demand.
    known_demand = -1.0
    stretch = 1.0
    for s in range(gpu.sms):
        if sms[s].dirty == 1:
            demand, mean = issue_demand(sms[s], rows[s], grids)
            if demand != known_demand:
                known_demand = demand
                stretch = issue_stretch(demand, gpu.issue_norm)
            issue_times(mean, stretch, sms[s], rows[s], grids)
        demands[s] = sms[s].demand
        total += demands[s]
    state.traffic = 0.0
    level = NO_LEVEL
    if total > 0.0:
        served = served_traffic(total, gpu.dram_bytes_per_us, gpu.dram_norm)
        level = min(fair_level(demands, np.ones(gpu.sms), served), gpu.sm_dram_bytes_per_us)
    state.next_us = np.inf
    for s in range(gpu.sms):
        sm = sms[s]
        if sm.rows == 0:
            sm.dirty = 0
            continue
        slow = throttle(demands[s], level)
        changed = sm.dirty == 1 or slow != sm.throttle
        sm.throttle = slow
        sm.dirty = 0
        state.traffic += demands[s] * slow
        for r in range(sm.rows):
            row = rows[s, r]
            if changed:
                grid = grids[row.grid]
                if grid.frozen == 1:
                    row.rate = 0.0
                elif grid.block.dram_bytes > 0.0:
                    row.rate = slow / row.time_us
                else:
                    row.rate = 1.0 / row.time_us
            if row.rate > 0.0:
                state.next_us = min(state.next_us, state.now + row.left / row.rate)


@njit(cache=True)
def issue_demand(sm, rows, grids):
    """Summed issue fraction of the residents of one SM, and its demand-weighted mean."""
    demand = 0.0
    squared = 0.0
    for r in range(sm.rows):
        grid = grids[rows[r].grid]
        if grid.frozen == 0:
            fraction = grid.block.issue_us / grid.block.latency_us
            demand += rows[r].blocks * fraction
            squared += rows[r].blocks * fraction * fraction
    return demand, squared / demand if demand > 0.0 else 0.0


@njit(cache=True)
def issue_times(mean, stretch, sm, rows, grids):
    """Block durations on one SM from issue-slot sharing, and the SM's DRAM demand at that pace."""
    sm.demand = 0.0
    for r in range(sm.rows):
        grid = grids[rows[r].grid]
        fraction = grid.block.issue_us / grid.block.latency_us
        rows[r].time_us = block_time_us(grid.block.latency_us, fraction, mean, stretch)
        if grid.frozen == 0:
            sm.demand += rows[r].blocks * grid.block.dram_bytes / rows[r].time_us


@njit(cache=True)
def jump(gpu, sms, rows, grids, queue, state):
    """Let rows of the head grid run several waves in one event, as far as its waiting blocks surely last.

    While a grid waits at the head of the queue, every slot that its blocks free is taken by its next
    blocks, so nothing changes from wave to wave. Rows get whole waves in advance; what is left over
    is dispatched block by block. Any other event gives unbegun waves back first (:func:`progress`).
    """
    if state.queue == 0:
        return
    slot = queue[0]
    grid = grids[slot]
    if grid.saved > 0:
        return
    for position in range(1, state.queue):
        if not overlap(grid, grids[queue[position]], gpu.sms):
            return
    resident = 0
    consumption = 0.0
    for s in range(gpu.sms):
        for r in range(sms[s].rows):
            if rows[s, r].grid == slot:
                resident += rows[s, r].blocks
                consumption += rows[s, r].blocks * rows[s, r].rate
    spare = grid.waiting - 2 * resident
    if spare <= resident or consumption <= 0.0:
        return
    until = spare / consumption
    state.next_us = np.inf
    for s in range(gpu.sms):
        for r in range(sms[s].rows):
            row = rows[s, r]
            if row.grid == slot and row.rate > 0.0:
                # Waves that begin within ``until``: the first when the present block ends.
                waves = int(np.floor(until * row.rate - row.left)) + 1
                if waves > 0:
                    row.left += waves
                    grid.waiting -= waves * row.blocks
            if row.rate > 0.0:
                state.next_us = min(state.next_us, state.now + row.left / row.rate)


@njit(cache=True)
def evict(slot, gpu, sms, rows, grids, state):
    """Take all resident blocks of a grid off the SMs.

    Returns:
        the number of blocks and the sum of their remaining work (in blocks).
    """
    blocks = 0
    work = 0.0
    grid = grids[slot]
    for s in range(gpu.sms):
        r = 0
        while r < sms[s].rows:
            if rows[s, r].grid != slot:
                r += 1
                continue
            count = rows[s, r].blocks
            blocks += count
            work += count * rows[s, r].left
            last = sms[s].rows - 1
            for i in range(r, last):
                rows[s, i] = rows[s, i + 1]
            sms[s].rows = last
            for _ in range(count):
                release(grid, sms[s], state)
    return blocks, work


@njit(cache=True)
def waiting_blocks(slot, now, gpu, sms, rows, grids, state):
    """Blocks of a grid not handed out at ``now``, waves jumped over included."""
    waiting = grids[slot].waiting
    if grids[slot].queued == 0:
        return waiting
    for s in range(gpu.sms):
        for r in range(sms[s].rows):
            row = rows[s, r]
            if row.grid == slot:
                left = row.left - row.rate * (now - state.now)
                if left > 1.0 + DONE:
                    waiting += (int(np.ceil(left - DONE)) - 1) * row.blocks
    return waiting
