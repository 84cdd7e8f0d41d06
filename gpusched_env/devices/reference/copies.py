"""Copy engines: one copy at a time each, in order of arrival (Amert et al., RTSS 2017, rules C1-C4)."""

from __future__ import annotations

import sys

import simpy
from simpy.events import ProcessGenerator

from gpusched_env.devices.reference.clock import Phase
from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.setting import Setting
from gpusched_env.devices.reference.streams import Streams
from gpusched_env.devices.reference.world import World
from gpusched_env.devices.rules.logs import log_copy
from gpusched_env.hardware.clock import to_ps
from gpusched_env.scenarios.program import ChildOp
from gpusched_env.workload.workload import OpKind

TO_DEVICE, TO_HOST, ON_DEVICE = 0, 1, 2
"""Engine numbers in the timeline."""
NUMBERS = {OpKind.COPY_TO_DEVICE: TO_DEVICE, OpKind.COPY_TO_HOST: TO_HOST}


class CopyEngines:
    """Host-device copies queue for an engine; copies and memsets within the device run at once."""

    def __init__(self, setting: Setting, world: World, streams: Streams) -> None:
        self._world, self._streams = world, streams
        self._clock = clock = setting.clock
        to_device = simpy.Resource(clock)
        to_host = to_device if world.rules.copy_engines == 1 else simpy.Resource(clock)
        self._engines = {TO_DEVICE: to_device, TO_HOST: to_host, ON_DEVICE: simpy.Resource(clock, sys.maxsize)}

    def submit(self, copy: Launch) -> None:
        """A copy or memset is ready."""
        self._clock.process(self._carry_out(copy))

    def _carry_out(self, copy: Launch) -> ProcessGenerator:
        assert not isinstance(copy.op, ChildOp)
        number = NUMBERS.get(copy.kind, ON_DEVICE)
        with self._engines[number].request() as turn:
            yield turn
            yield copy.alarm.at(self._clock.now, Phase.COPY_STARTS, copy.id)
            self._streams.started(copy)
            yield copy.alarm.at(self._clock.now + to_ps(copy.op.device_us), Phase.COPY_ENDS, copy.id)
        log_copy(self._world, number, copy)
        self._streams.ended(copy)
