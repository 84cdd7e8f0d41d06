"""What goes to a GPU outside (:mod:`~gpusched_env.devices.compiled.external`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_env.devices.compiled import layout
from gpusched_env.devices.compiled.arena import Arena


class Sent(NamedTuple):
    """A launch on its way."""

    slot: int
    launch: int
    """Id."""
    stream: int
    """Row of the stream that it was launched into."""
    priority: int
    after: tuple[int, ...]
    """Ids of unfinished launches of other queues (a queue is a stream at a priority) that it waits for, ascending."""


def take_sent(arena: Arena) -> list[Sent]:
    """Empty the outbox: launches in the order in which they were handed to their streams."""
    env = arena.env
    count = int(env["sent"])
    if count == 0:
        return []
    env["sent"] = 0
    launches = arena.section("launches")
    return [_sent(arena, slot, launches[slot]) for slot in arena.section("outbox")["value"][:count].tolist()]


def _sent(arena: Arena, slot: int, launch: np.void) -> Sent:
    launches, edges = arena.section("launches"), arena.section("edges")
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
    return Sent(slot, int(launch["id"]), int(launch["stream"]), int(launch["priority"]), tuple(sorted(after)))
