"""Copy engines: one copy at a time each, in order of arrival (Amert et al., RTSS 2017, rules C1-C4)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import simpy
from simpy.events import Event

from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.phases import Phase, Timer, order
from gpusched_env.workload.workload import OpKind

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice

TO_DEVICE, TO_HOST, ON_DEVICE = 0, 1, 2
"""Engine numbers in the timeline."""


class CopyEngines:
    """Host-device copies queue for an engine; copies and memsets within the device run at once."""

    def __init__(self, device: ReferenceDevice) -> None:
        self._device = device
        to_device = simpy.Resource(device.env)
        to_host = to_device if device.problem.gpu.copies.engines == 1 else simpy.Resource(device.env)
        self._engines = {OpKind.COPY_TO_DEVICE: (TO_DEVICE, to_device), OpKind.COPY_TO_HOST: (TO_HOST, to_host)}

    def run(self, launch: Launch) -> Generator[Event, None, None]:
        """Carry out one copy or memset."""
        env = self._device.env
        number, engine = self._engines.get(launch.op.kind, (ON_DEVICE, None))
        request = engine.request() if engine is not None else None
        if request is not None:
            yield request
        started = env.now
        # Behind the slicer's timers (entity 0) of the same time.
        yield Timer(env, started + launch.op.device_us, order(Phase.ENGINE, 1 + launch.tenant))
        if engine is not None and request is not None:
            engine.release(request)
        self._device.copied(launch, number, started)
