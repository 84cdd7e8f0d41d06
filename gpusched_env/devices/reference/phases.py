"""The order of events at equal times: a documented contract that all simulated devices keep.

SimPy's heap key is (time, priority, sequence). Events of this device carry ``phase`` and the index of
the entity they belong to in the priority, so that simultaneous events happen in the order: block ends,
finished preemptions, switches and copies, arrivals and host steps, decisions; within a phase by entity.
SimPy's own event chains (priority 0 and 1) run to their end in between.
"""

from __future__ import annotations

import enum

import simpy
from simpy.events import Event


class Phase(enum.IntEnum):
    """What happens first at equal times."""

    COMPLETION = 1
    PREEMPTION = 2
    ENGINE = 3
    STREAM = 4
    ARRIVAL = 5
    HOST = 6
    DECISION = 7


ENTITIES = 1 << 16
"""Bound on entity indices."""


class Timer(Event):
    """An event that fires after ``delay`` microseconds in a phase, for an entity."""

    def __init__(self, env: simpy.Environment, delay: float, phase: Phase, entity: int = 0) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        env.schedule(self, phase * ENTITIES + entity, delay)
