"""The order of events at equal times: a documented contract that all simulated devices keep.

SimPy's heap key is (time, priority, sequence). Events of this device carry ``phase`` and the index of
the entity they belong to in the priority, so that simultaneous events happen in the order: block ends,
finished preemptions, switches and copies, arrivals and host steps, decisions; within a phase by entity.
SimPy's own event chains (priority 0 and 1) run to their end in between.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Callable

import simpy
from simpy.events import Event, EventPriority


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


class Clock(simpy.Environment):
    """SimPy's environment; it can process all that is due at the present time."""

    now = property(operator.attrgetter("_now"))
    """The present time: read so often that it is worth a getter without a Python frame."""

    def finish_present(self) -> float:
        """Process the events at the present time, those that they cause included; returns the time of the next one."""
        queue, now, step = self._queue, self._now, self.step
        while queue:
            upcoming = queue[0][0]
            if upcoming > now:
                return upcoming
            step()
        return math.inf


def order(phase: Phase, entity: int = 0) -> int:
    """SimPy's priority of events of a phase and an entity."""
    return phase * ENTITIES + entity


class Timer(Event):
    """An event that fires after ``delay`` microseconds, in its :func:`order` among simultaneous ones."""

    def __init__(
        self, env: simpy.Environment, delay: float, order: int, callback: Callable[[Event], None] | None = None
    ) -> None:
        # As simpy.Timeout does: no call of super().__init__, which would cost as much as all of this.
        self.env = env
        self.callbacks = [] if callback is None else [callback]
        self._ok = True
        self._value = None
        env.schedule(self, EventPriority(order), delay)
