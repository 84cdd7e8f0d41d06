"""The order of events at equal times: a documented contract that all simulated devices keep.

SimPy's heap key is (time, priority, sequence). Events of this device carry ``phase`` and the index of
the entity they belong to in the priority, so that simultaneous events happen in the order: block ends,
finished preemptions, context switches, copies, arrivals and host steps, decisions; within a phase by entity
(mostly the tenant). SimPy's own event chains (priority 0 and 1) run to their end in between. What one block
end causes happens in order of tenants, too (:mod:`~gpusched_env.devices.reference.context`).
"""

from __future__ import annotations

import enum
import heapq
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
    """Entity 0: the slicer; 1 + tenant: the tenant's copy."""
    STREAM = 4
    ARRIVAL = 5
    HOST = 6
    DECISION = 7


ENTITIES = 1 << 16
"""Bound on entity indices."""


class Clock(simpy.Environment):
    """SimPy's environment; it schedules at exact times, and can process all that is due at the present one."""

    now = property(operator.attrgetter("_now"))
    """The present time: read so often that it is worth a getter without a Python frame."""

    def schedule_at(self, event: Event, priority: int, at_us: float) -> None:
        """As ``schedule``, at the time ``at_us`` itself: now + (at_us - now) may lie an ulp before it."""
        heapq.heappush(self._queue, (at_us, EventPriority(priority), next(self._eid), event))

    def finish_present(self) -> float:
        """Process the events at the present time, those that they cause included; returns the time of the next one."""
        queue, now, step = self._queue, self._now, self.step
        while queue:
            upcoming, _, _, event = queue[0]
            if upcoming > now:
                if event.callbacks is not CANCELLED:
                    return upcoming
                heapq.heappop(queue)
            else:
                step()
        return math.inf


CANCELLED: list[Callable[[Event], None]] = []
"""The callbacks of timers that are not to fire any more."""


def order(phase: Phase, entity: int = 0) -> int:
    """SimPy's priority of events of a phase and an entity."""
    return phase * ENTITIES + entity


class Timer(Event):
    """An event that fires at the time ``at_us`` (not before the present), in its :func:`order` among simultaneous ones.

    Whoever set it may compare the time of firing with ``at_us``: they are equal to the last bit.
    """

    def __init__(self, env: Clock, at_us: float, order: int, callback: Callable[[Event], None] | None = None) -> None:
        # As simpy.Timeout does: no call of super().__init__, which would cost as much as all of this.
        self.env = env
        self.callbacks = [] if callback is None else [callback]
        self._ok = True
        self._value = None
        env.schedule_at(self, order, at_us)

    def cancel(self) -> None:
        """Never fire; nothing tells that the timer was set. May be called after it has fired."""
        if self.callbacks is not None:
            self.callbacks = CANCELLED
