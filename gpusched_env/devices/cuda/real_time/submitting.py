"""Launching in compiled code: what was handed to its stream goes to the GPU's driver."""

from __future__ import annotations

from gpusched_env.compiling import called
from gpusched_env.devices.compiled.access import edges, launches, ops, outbox, problem
from gpusched_env.devices.compiled.layout import NONE, NUMBER
from gpusched_env.devices.compiled.memory import records
from gpusched_env.devices.compiled.slots import holds
from gpusched_env.devices.cuda.launching import BLOCKS, ENDED, RECALL, REPORT, SEED
from gpusched_env.devices.cuda.real_time.driver import SUCCESS, launch_graph, launch_kernel, record_event, wait_event
from gpusched_env.devices.cuda.real_time.tables import FAULT, REPORT_WORDS, UNABLE, Count, Owner, Piece, Place, Queue

word = records(NUMBER)
"""A word of 8 bytes at an address."""


@called
def send(w, gpu):
    """Hand over what was launched; 0, or what is wrong."""
    for place in range(w.sent):
        slot = outbox(w, place).value
        if slot < 0 or slot >= gpu.given.size or launches(w, slot).partition_sms < problem(w).sms:
            return UNABLE
        status = submit(w, gpu, slot)
        if status != SUCCESS:
            gpu.counts[Count.STATUS] = status
            return FAULT
    w.sent = 0
    return 0


@called
def queue_of(w, launch):
    """The row of a launch's queue."""
    return launch.stream * problem(w).priorities - launch.priority


@called
def submit(w, gpu, slot):
    """Hand a launch to its queue; returns the driver's status."""
    launch, counts = launches(w, slot), gpu.counts
    number = queue_of(w, launch)
    queue = gpu.queues[number]
    stream = queue[Queue.HANDLE]
    status = wait_for_others(w, gpu, launch, number)
    mine = counts[Count.REPORT] = (counts[Count.REPORT] + 1) % gpu.events.size
    for place in range(REPORT_WORDS):
        gpu.reports[REPORT_WORDS * mine + place] = 0
    report_at = gpu.places[Place.REPORTS] + 8 * REPORT_WORDS * mine
    piece = gpu.pieces[launch.op]
    if piece[Piece.GRAPH] == NONE:
        counts[Count.SEED] += 1
        words = piece[Piece.WORDS]
        word(words, SEED).value = counts[Count.SEED]
        word(words, ENDED).value = gpu.places[Place.COUNTERS] + 4 * mine
        word(words, REPORT).value = report_at
        word(words, BLOCKS).value = word(words, RECALL).value = 0
        status |= launch_kernel(gpu.functions, piece, stream)
    else:
        status |= mark(gpu, report_at, stream)
        status |= launch_graph(gpu.functions, gpu.graphs[piece[Piece.GRAPH], -launch.priority], stream)
        status |= mark(gpu, report_at + 8, stream)
    gpu.given[slot] = mine
    owner = gpu.owners[mine]
    owner[Owner.SLOT], owner[Owner.NEXT], owner[Owner.RECORDED] = slot, NONE, 0
    if ops(w, launch.op).mark >= 0:
        # What waits for it must not wait for those behind it.
        status |= record(gpu, mine, stream)
    if queue[Queue.FIRST] == NONE:
        queue[Queue.FIRST] = mine
    else:
        gpu.owners[queue[Queue.LAST], Owner.NEXT] = mine
    queue[Queue.LAST] = mine
    return status


@called
def mark(gpu, report_at, stream):
    """Note the GPU's time in a stream."""
    word(gpu.mark[Piece.WORDS], 0).value = report_at
    return launch_kernel(gpu.functions, gpu.mark, stream)


@called
def wait_for_others(w, gpu, launch, number):
    """Let a queue wait for unfinished launches of other queues that a launch waits for."""
    status = 0
    if launch.previous != NONE:
        status |= wait_for(w, gpu, launch.previous, number)
    edge_number = launch.edges_in
    while edge_number != NONE:
        edge = edges(w, edge_number)
        if holds(w, edge.source, edge.source_id):
            status |= wait_for(w, gpu, edge.source, number)
        edge_number = edge.next_in
    return status


@called
def wait_for(w, gpu, slot, number):
    """Let a queue wait for a launch, if that is in another one.

    Most launches are waited for by nobody in another queue, so that their events are recorded when somebody is: behind
    a launch whose stream goes on in another queue nothing else is in its own.
    """
    other = queue_of(w, launches(w, slot))
    if other == number:
        return SUCCESS
    theirs = gpu.given[slot]
    status = SUCCESS
    if gpu.owners[theirs, Owner.RECORDED] == 0:
        status |= record(gpu, theirs, gpu.queues[other, Queue.HANDLE])
    return status | wait_event(gpu.functions, gpu.queues[number, Queue.HANDLE], gpu.events[theirs])


@called
def record(gpu, number, stream):
    """Record the event of a report."""
    gpu.owners[number, Owner.RECORDED] = 1
    return record_event(gpu.functions, gpu.events[number], stream)
