"""The clock: whole picoseconds in SimPy's queue, and the order of events at one instant.

SimPy's key of an event is (time, priority, number). Events here have their phase and the entity that they belong to in
the priority; so what an event causes at the same instant takes its place among what is due then. What has a life of its
own from one time to the next (a copy, a preemption, the slicer) is a SimPy process; what others set anew at any time
(the SMs, launches in streams, hosts) is a callback.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

import simpy
from simpy.core import SimTime
from simpy.events import NORMAL, Event, EventPriority

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
    CORE = 11
    """Entity: core of the CPU."""


ENTITIES = 1 << 48
"""Bound on the numbers of entities."""


class Due(simpy.Timeout):
    """What is due for an entity at a time, in its place at that instant; the past is the present."""

    def __init__(self, clock: Clock, at_ps: int, phase: Phase, entity: int) -> None:
        self.phase = phase
        self.priority = EventPriority(phase * ENTITIES + entity)
        super().__init__(clock, max(0, at_ps - clock.now))


class Clock(simpy.Environment):
    """SimPy's environment with times that are whole picoseconds.

    What SimPy schedules by itself (a process begins, a resource is granted) comes before all phases.
    """

    def __init__(self) -> None:
        super().__init__()
        self.alarms: set[Alarm] = set()
        """Those that are set: without any, nothing happens any more. SimPy's queue also holds what was called off."""

    @property
    def now(self) -> int:
        return int(super().now)

    def schedule(self, event: Event, priority: EventPriority = NORMAL, delay: SimTime = 0) -> None:
        """Put an event into the queue, one that is due with its own priority."""
        super().schedule(event, event.priority if isinstance(event, Due) else priority, delay)

    def finish_present(self) -> None:
        """Process all events at the present time, those that they cause included."""
        while self.peek() <= self.now:
            self.step()


class Alarm:
    """Something that an entity has due: one event at a time, which may be set anew or stopped."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event: Event | None = None

    def at(self, at_ps: int, phase: Phase, entity: int) -> Event:
        """The event for a process to wait for; what was set before is stopped."""
        self.stop()
        self._event = event = Due(self._clock, at_ps, phase, entity)
        event.callbacks.append(self._happens)
        self._clock.alarms.add(self)
        return event

    def set(self, at_ps: int, phase: Phase, entity: int, callback: Callable[[], object]) -> None:
        """Call ``callback`` at ``at_ps`` and not when it was set to before; :data:`NEVER`: not at all."""
        if at_ps >= NEVER:
            self.stop()
            return

        def call(_: Event) -> None:
            callback()

        self.at(at_ps, phase, entity).callbacks.append(call)

    def _happens(self, _: Event) -> None:
        self._event = None
        self._clock.alarms.discard(self)

    def stop(self) -> None:
        """Nothing tells that it was set: no callback is called, a process that waits for it ends there."""
        if self._event is not None:
            self._event.callbacks.clear()
            self._event = None
            self._clock.alarms.discard(self)
