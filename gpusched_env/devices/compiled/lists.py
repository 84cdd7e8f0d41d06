"""Slots of launches and edges, and the lists that launches are in."""

from __future__ import annotations

from gpusched_env.devices.compiled.access import buckets, clients, edges, kernels, launches, ops
from gpusched_env.devices.compiled.jit import called, inlined
from gpusched_env.devices.compiled.layout import FREE, NONE
from gpusched_env.hardware.clock import NEVER


@called
def new_launch(w, op, tenant, job):
    """A slot for a launch of an operation; ids count up."""
    slot = w.free_launch
    launch = launches(w, slot)
    w.free_launch = launch.after
    w.free_launches -= 1
    launch.id = w.ids
    w.ids += 1
    launch.namesake = buckets(w, launch.id).value
    buckets(w, launch.id).value = slot
    launch.op = op
    launch.tenant = tenant
    launch.job = job
    launch.parent = NONE
    launch.parent_id = NONE
    launch.row = NONE
    launch.stream = NONE
    launch.priority = 0
    launch.upstream = 0
    launch.unlaunched = 0
    launch.edges_out = NONE
    launch.edges_out_last = NONE
    launch.edges_in = NONE
    launch.queue_slot = NONE
    launch.queue_id = NONE
    launch.behind = NONE
    launch.grid = NONE
    launch.blocks = NONE
    launch.saved = 0
    launch.saved_left = 1.0
    launch.preempting = 0
    launch.save_sms = 0
    launch.preemptions = 0
    launch.offspring = 0
    launch.done_blocks = 0
    launch.returned = 0
    launch.tile_slot = NONE
    launch.tile_id = NONE
    launch.issued_ps = w.now_ps
    launch.launched_ps = NEVER
    launch.ready_ps = 0
    launch.started_ps = NEVER
    launch.first_started_ps = NEVER
    launch.ran_ps = 0
    launch.restore_ps = 0
    launch.preempted_ps = -1
    return slot


@called
def free_launch(w, slot):
    """Give a slot back, with the edges to what its launch waited for."""
    launch = launches(w, slot)
    edge = launch.edges_in
    while edge != NONE:
        after = edges(w, edge).next_in
        edges(w, edge).next_in = w.free_edge
        w.free_edge = edge
        w.free_edges += 1
        edge = after
    forget_id(w, slot)
    launch.id = NONE
    launch.state = FREE
    launch.after = w.free_launch
    w.free_launch = slot
    w.free_launches += 1


@called
def forget_id(w, slot):
    """Take a launch out of its bucket."""
    launch = launches(w, slot)
    bucket = buckets(w, launch.id)
    if bucket.value == slot:
        bucket.value = launch.namesake
        return
    before = bucket.value
    while launches(w, before).namesake != slot:
        before = launches(w, before).namesake
    launches(w, before).namesake = launch.namesake


@called
def slot_of(w, id_):
    """The slot of an unfinished launch."""
    slot = buckets(w, id_).value
    while launches(w, slot).id != id_:
        slot = launches(w, slot).namesake
    return slot


@inlined
def holds(w, slot, id_):
    """Whether a slot still holds the launch of that id."""
    return slot != NONE and launches(w, slot).id == id_


@called
def add_edge(w, source, target):
    """``target`` waits for ``source``: slots."""
    number = w.free_edge
    edge = edges(w, number)
    w.free_edge = edge.next_in
    w.free_edges -= 1
    a = launches(w, source)
    b = launches(w, target)
    edge.source = source
    edge.source_id = a.id
    edge.target = target
    edge.target_id = b.id
    edge.next_out = NONE
    edge.next_in = b.edges_in
    b.edges_in = number
    b.upstream += 1
    if a.edges_out == NONE:
        a.edges_out = number
    else:
        edges(w, a.edges_out_last).next_out = number
    a.edges_out_last = number


@called
def drop_edges_in(w, slot):
    """What a launch waits for is no longer to tell it."""
    number = launches(w, slot).edges_in
    while number != NONE:
        edge = edges(w, number)
        if holds(w, edge.source, edge.source_id):
            source = launches(w, edge.source)
            before = NONE
            at = source.edges_out
            while at != number:
                before = at
                at = edges(w, at).next_out
            if before == NONE:
                source.edges_out = edge.next_out
            else:
                edges(w, before).next_out = edge.next_out
            if source.edges_out_last == number:
                source.edges_out_last = before
        number = edge.next_in


# ---- pending launches, in order of id --------------------------------------------------------------------


@called
def add_pending(w, slot):
    """Put a launch into its tenant's list: behind all of lower ids."""
    launch = launches(w, slot)
    client = clients(w, launch.tenant)
    w.pending += 1
    client.kernels_pending += 1
    before = client.pending_last
    while before != NONE and launches(w, before).id > launch.id:
        before = launches(w, before).before
    launch.before = before
    if before == NONE:
        launch.after = client.pending_first
        client.pending_first = slot
    else:
        launch.after = launches(w, before).after
        launches(w, before).after = slot
    if launch.after == NONE:
        client.pending_last = slot
    else:
        launches(w, launch.after).before = slot


@called
def remove_pending(w, slot):
    """Take a launch out of its tenant's list."""
    launch = launches(w, slot)
    client = clients(w, launch.tenant)
    w.pending -= 1
    client.kernels_pending -= 1
    if launch.before == NONE:
        client.pending_first = launch.after
    else:
        launches(w, launch.before).after = launch.after
    if launch.after == NONE:
        client.pending_last = launch.before
    else:
        launches(w, launch.after).before = launch.before


# ---- launched ones, in order of launch ---------------------------------------------------------------------


@called
def add_running(w, slot):
    """A kernel or graph was launched."""
    launch = launches(w, slot)
    client = clients(w, launch.tenant)
    launch.order = w.launch_count
    w.launch_count += 1
    launch.running_before = w.running_last
    launch.running_after = NONE
    if w.running_last == NONE:
        w.running_first = slot
    else:
        launches(w, w.running_last).running_after = slot
    w.running_last = slot
    launch.mine_before = client.running_last
    launch.mine_after = NONE
    if client.running_last == NONE:
        client.running_first = slot
    else:
        launches(w, client.running_last).mine_after = slot
    client.running_last = slot
    client.kernels_launched += 1
    client.launched_profiled_us += left_to_run_us(w, launch)


@called
def remove_running(w, slot):
    """A kernel or graph has finished, or is pending again."""
    launch = launches(w, slot)
    client = clients(w, launch.tenant)
    if launch.running_before == NONE:
        w.running_first = launch.running_after
    else:
        launches(w, launch.running_before).running_after = launch.running_after
    if launch.running_after == NONE:
        w.running_last = launch.running_before
    else:
        launches(w, launch.running_after).running_before = launch.running_before
    if launch.mine_before == NONE:
        client.running_first = launch.mine_after
    else:
        launches(w, launch.mine_before).mine_after = launch.mine_after
    if launch.mine_after == NONE:
        client.running_last = launch.mine_before
    else:
        launches(w, launch.mine_after).mine_before = launch.mine_before
    client.kernels_launched -= 1
    if launch.started_ps < NEVER:
        remove_started(w, slot)
    # The sum starts anew when nothing is launched, so that rounding does not pile up.
    left_us = left_to_run_us(w, launch)
    client.launched_profiled_us = client.launched_profiled_us - left_us if client.kernels_launched else 0.0


@inlined
def left_to_run_us(w, launch):
    """Profiled duration of a launch, less what it ran before it was preempted."""
    profiled_us = kernels(w, ops(w, launch.op).identity).profiled_us
    return profiled_us - min(profiled_us, launch.ran_ps / 1e6)


@called
def note_start(w, slot):
    """The first block of a launch, or of a graph's node, starts: it stands among those that have, in order of launch."""
    launch = launches(w, slot)
    if launch.started_ps < NEVER:
        return
    launch.started_ps = w.now_ps
    before = w.started_last
    while before != NONE and launches(w, before).order > launch.order:
        before = launches(w, before).started_before
    launch.started_before = before
    if before == NONE:
        launch.started_after = w.started_first
        w.started_first = slot
    else:
        launch.started_after = launches(w, before).started_after
        launches(w, before).started_after = slot
    if launch.started_after == NONE:
        w.started_last = slot
    else:
        launches(w, launch.started_after).started_before = slot


@called
def remove_started(w, slot):
    """A launch that had started has finished, or is pending again."""
    launch = launches(w, slot)
    if launch.started_before == NONE:
        w.started_first = launch.started_after
    else:
        launches(w, launch.started_before).started_after = launch.started_after
    if launch.started_after == NONE:
        w.started_last = launch.started_before
    else:
        launches(w, launch.started_after).started_before = launch.started_before
