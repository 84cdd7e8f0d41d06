"""What goes to a GPU outside (:mod:`~gpusched_env.devices.compiled.external`)."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from gpusched_env.devices.compiled import layout
from gpusched_env.devices.compiled.arena import Arena
from gpusched_env.devices.compiled.entry import empty_outbox

SENT_COLUMNS: Final = 10
"""Of the table that :func:`~gpusched_env.devices.compiled.entry.empty_outbox` fills."""
QUEUE = ["stream", "priority", "partition_first", "partition_sms"]
"""Fields of a launch that say in which queue it is."""


class Sent(NamedTuple):
    """A launch on its way, or one that is to come back."""

    slot: int
    launch: int
    """Id."""
    op: int
    """Row of what it carries out, in the problem's tables."""
    stream: int
    """Row of the stream that it was launched into."""
    priority: int
    first: int
    """Of the SMs that it may run on, in the order of :func:`gpusched_env.hardware.placement.sm_order`."""
    sms: int
    """How many; all of the GPU's without a partition."""
    after: tuple[int, ...]
    """Ids of unfinished launches of other queues that it waits for, ascending. A queue is a stream at a priority on
    some SMs."""
    blocks: int
    """That a kernel has left to run; -1: all."""
    recalled: bool
    """Whether it was sent before, and is to hand out no further blocks."""


def take_sent(arena: Arena, *, every: bool = False) -> list[Sent]:
    """Empty the outbox: launches in the order in which they were handed to their streams, and recalled.

    Args:
        every: :attr:`Sent.after` names launches of the own queue, too.
    """
    count = int(arena.env["sent"])
    if count == 0:
        return []
    rows = np.empty((count, SENT_COLUMNS), np.int64)
    empty_outbox(arena.address, rows)
    return [
        Sent(
            slot,
            launch,
            op,
            stream,
            priority,
            first,
            sms,
            _after(arena, slot, every) if waits or every else (),
            blocks,
            bool(recalled),
        )
        for slot, launch, op, stream, priority, first, sms, waits, blocks, recalled in rows.tolist()
    ]


def _after(arena: Arena, slot: int, every: bool) -> tuple[int, ...]:
    launches, edges = arena.section("launches"), arena.section("edges")
    launch = launches[slot]
    before = {int(launch["previous"])} - {layout.NONE}
    number = int(launch["edges_in"])
    while number != layout.NONE:
        edge = edges[number]
        if launches["id"][edge["source"]] == edge["source_id"]:
            before.add(int(edge["source"]))
        number = int(edge["next_in"])
    queue = launch[QUEUE]
    return tuple(sorted(int(launches["id"][other]) for other in before if every or launches[other][QUEUE] != queue))
