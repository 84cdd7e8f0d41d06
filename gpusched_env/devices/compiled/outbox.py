"""What goes to a GPU outside (:mod:`~gpusched_env.devices.compiled.external`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_env.devices.compiled import layout
from gpusched_env.devices.compiled.arena import Arena
from gpusched_env.devices.compiled.entry import empty_outbox


class Sent(NamedTuple):
    """A launch on its way."""

    slot: int
    launch: int
    """Id."""
    op: int
    """Row of what it carries out, in the problem's tables."""
    stream: int
    """Row of the stream that it was launched into."""
    priority: int
    after: tuple[int, ...]
    """Ids of unfinished launches of other queues (a queue is a stream at a priority) that it waits for, ascending."""


def take_sent(arena: Arena) -> list[Sent]:
    """Empty the outbox: launches in the order in which they were handed to their streams."""
    count = int(arena.env["sent"])
    if count == 0:
        return []
    rows = np.empty((count, 6), np.int64)
    empty_outbox(arena.address, rows)
    return [Sent(*row[:5], _after(arena, row[0]) if row[5] else ()) for row in rows.tolist()]


def _after(arena: Arena, slot: int) -> tuple[int, ...]:
    launches, edges = arena.section("launches"), arena.section("edges")
    launch = launches[slot]
    before = {int(launch["previous"])} - {layout.NONE}
    number = int(launch["edges_in"])
    while number != layout.NONE:
        edge = edges[number]
        if launches["id"][edge["source"]] == edge["source_id"]:
            before.add(int(edge["source"]))
        number = int(edge["next_in"])
    queue = launch["stream"], launch["priority"]
    after = [
        int(launches["id"][other])
        for other in before
        if (launches["stream"][other], launches["priority"][other]) != queue
    ]
    return tuple(sorted(after))
