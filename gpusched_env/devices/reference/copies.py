"""The queues of the copy engines (:mod:`gpusched_env.devices.rules.copies`)."""

from __future__ import annotations

import sys

import simpy
from simpy.events import ProcessGenerator

from gpusched_env.devices.reference.clock import Phase
from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.setting import Setting
from gpusched_env.devices.reference.streams import Streams
from gpusched_env.devices.reference.world import World
from gpusched_env.devices.rules.copies import ON_DEVICE, direction, engine_for
from gpusched_env.devices.rules.logs import log_copy
from gpusched_env.hardware.clock import to_ps
from gpusched_env.scenarios.program import ChildOp


class CopyEngines:
    """Host-device copies queue for an engine; copies and memsets within the device run at once."""

    def __init__(self, setting: Setting, world: World, streams: Streams) -> None:
        self._world, self._streams = world, streams
        self._clock = clock = setting.clock
        self._engines = [simpy.Resource(clock), simpy.Resource(clock), simpy.Resource(clock, sys.maxsize)]

    def submit(self, copy: Launch) -> None:
        """A copy or memset is ready."""
        self._clock.process(self._carry_out(copy))

    def _carry_out(self, copy: Launch) -> ProcessGenerator:
        assert not isinstance(copy.op, ChildOp)
        way = direction(copy.kind)
        engine = ON_DEVICE if way == ON_DEVICE else engine_for(self._world, way)
        with self._engines[engine].request() as turn:
            yield turn
            yield copy.alarm.at(self._clock.now, Phase.COPY_STARTS, copy.id)
            self._streams.started(copy)
            yield copy.alarm.at(self._clock.now + to_ps(copy.op.device_us), Phase.COPY_ENDS, copy.id)
        self._end(copy, way)

    def _end(self, copy: Launch, way: int) -> None:
        log_copy(self._world, way, copy)
        self._streams.ended(copy)
