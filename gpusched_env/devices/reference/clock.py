"""The clock: whole picoseconds in SimPy's queue, and the order of events at one instant.

SimPy's key of an event is (time, priority, number). Events here have their phase and the entity that they belong to in
the priority; so what an event causes at the same instant takes its place among what is due then.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Callable

import simpy
from simpy.events import Event, EventPriority

from gpusched_env.hardware.clock import NEVER


class Phase(enum.IntEnum):
    """What happens first at one instant; within a phase by entity."""

    SMS = 1
    """Entity: context."""
    SLICER = 2
    PREEMPTION_OVER = 3
    """A drain is acknowledged, a save or reset is over, a synchronisation has returned. Entity, here and for copies and
    launches: launch."""
    COPY_ENDS = 4
    COPY_STARTS = 5
    READY = 6
    """A launch is ready, its saved blocks are back, or a child is issued."""
    ARRIVAL = 7
    """Entity: tenant."""
    HOST = 8
    """Entity: host thread."""
    DEADLINE = 9
    """Entity: tenant."""
    PREEMPTION_BEGINS = 10
    """Entity: launch."""


ENTITIES = 1 << 48
"""Bound on the numbers of entities."""


class Clock(simpy.Environment):
    """SimPy's environment with times that are whole picoseconds."""

    @property
    def now(self) -> int:
        return int(self._now)

    def call_at(self, at_ps: int, phase: Phase, entity: int, callback: Callable[[Event], None]) -> Event:
        """Call ``callback`` at a time, in its order; the past is the present."""
        event = Event(self)
        event._ok = True
        event._value = None
        event.callbacks = [callback]
        priority = EventPriority(phase * ENTITIES + entity)
        heapq.heappush(self._queue, (max(at_ps, self.now), priority, next(self._eid), event))
        return event

    @property
    def next_ps(self) -> int:
        """Time of the next event; :data:`NEVER`: there is none. Cancelled ones are dropped."""
        queue = self._queue
        while queue and queue[0][3].callbacks is None:
            heapq.heappop(queue)
        return int(queue[0][0]) if queue else NEVER

    def finish_present(self) -> None:
        """Process all events at the present time, those that they cause included."""
        while self.next_ps <= self.now:
            self.step()

    def advance(self, to_ps: int) -> None:
        """Go on to a time before which nothing happens."""
        self._now = to_ps


class Alarm:
    """Something that an entity has due: one call at a time, which may be set anew or stopped."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event: Event | None = None

    def set(self, at_ps: int, phase: Phase, entity: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` at ``at_ps`` and not when it was set to before; :data:`NEVER`: not at all."""
        self.stop()
        if at_ps < NEVER:
            self._event = self._clock.call_at(at_ps, phase, entity, lambda _: self._fire(callback))

    def _fire(self, callback: Callable[[], None]) -> None:
        self._event = None
        callback()

    def stop(self) -> None:
        """Do not call; nothing tells that it was set."""
        if self._event is not None:
            self._event.callbacks = None  # type: ignore[assignment]
            self._event = None
