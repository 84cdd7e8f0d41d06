"""SMs: their clocks and the phases of warps on them."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.games.child_launches.hardware.warp_machine import clock_now, demand, stretch, time_of

NEVER = 1 << 62


@called
def begin_phase(state, warps, cycles, lines, issue_cycles):
    """A phase that takes ``cycles`` alone begins."""
    row = state.warps[warps]
    at = state.blocks[row.block].sm
    sm = state.sms[at]
    row.lines = demand(lines, cycles)
    row.issue = demand(issue_cycles, cycles)
    add_demand(state, sm, row, row.count)
    target = clock_now(sm.clock, sm.since_ps, sm.rate, state.core[0].now_ps) + cycles
    place = sm.running
    while place > 0 and state.targets[at, place - 1] > target:
        state.targets[at, place] = state.targets[at, place - 1]
        state.running[at, place] = state.running[at, place - 1]
        place -= 1
    state.targets[at, place] = target
    state.running[at, place] = warps
    sm.running += 1


@inlined
def add_demand(state, sm, row, count):
    """Add the demand of ``count`` more warps like ``row`` (fewer, if negative)."""
    sm.lines += count * row.lines
    sm.issue += count * row.issue
    state.core[0].lines += count * row.lines


@called
def end_phase(state, at):
    """The phase on an SM that is due ends; gives its warps."""
    sm = state.sms[at]
    warps = state.running[at, 0]
    sm.running -= 1
    for place in range(sm.running):
        state.targets[at, place] = state.targets[at, place + 1]
        state.running[at, place] = state.running[at, place + 1]
    row = state.warps[warps]
    add_demand(state, sm, row, -row.count)
    return warps


@inlined
def due_sm(state):
    """The first SM with a phase that ends now, or -1."""
    now_ps = state.core[0].now_ps
    for at in range(state.sms.size):
        sm = state.sms[at]
        if sm.running > 0 and sm.since_ps == now_ps and state.targets[at, 0] <= sm.clock:
            return at
    return -1


@called
def next_phase_end(state):
    """Bring rates up to date; when the next phase ends."""
    core, rules = state.core[0], state.rules[0]
    first_ps = NEVER
    for at in range(state.sms.size):
        sm = state.sms[at]
        rate = 0.0
        if sm.running > 0:
            slower = stretch(core.lines, rules.gpu_lines, sm.lines, rules.sm_lines, sm.issue)
            rate = 1.0 / (rules.ps_per_cycle * slower)
        if rate != sm.rate:
            sm.clock = clock_now(sm.clock, sm.since_ps, sm.rate, core.now_ps)
            sm.since_ps = core.now_ps
            sm.rate = rate
        if sm.running > 0:
            sm.next_ps = time_of(state.targets[at, 0], sm.clock, sm.since_ps, rate, core.now_ps)
            first_ps = min(first_ps, sm.next_ps)
    return first_ps


@called
def arrive(state, now_ps):
    """Let clocks of SMs on which a phase ends at ``now_ps`` show its end."""
    for at in range(state.sms.size):
        sm = state.sms[at]
        if sm.running > 0 and sm.next_ps == now_ps:
            shown = clock_now(sm.clock, sm.since_ps, sm.rate, now_ps)
            sm.clock = max(shown, state.targets[at, 0])
            sm.since_ps = now_ps
