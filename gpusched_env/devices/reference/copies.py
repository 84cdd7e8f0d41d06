"""Copy engines: one copy at a time each, in order of arrival (Amert et al., RTSS 2017, rules C1-C4)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from gpusched_env.devices.reference.clock import Phase
from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.parts import started
from gpusched_env.hardware.clock import to_ps
from gpusched_env.scenarios.program import ChildOp
from gpusched_env.workload.workload import OpKind

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice

TO_DEVICE, TO_HOST, ON_DEVICE = 0, 1, 2
"""Engine numbers in the timeline."""
NUMBERS = {OpKind.COPY_TO_DEVICE: TO_DEVICE, OpKind.COPY_TO_HOST: TO_HOST}


class CopyEngines:
    """Host-device copies queue for an engine; copies and memsets within the device run at once."""

    def __init__(self, device: ReferenceDevice) -> None:
        self._device = device
        to_device: deque[Launch] = deque()
        to_host: deque[Launch] = to_device if device.problem.gpu.copies.engines == 1 else deque()
        self._queues = {TO_DEVICE: to_device, TO_HOST: to_host}
        """The first in a queue is at the engine."""

    def submit(self, copy: Launch) -> None:
        """A copy or memset is ready."""
        queue = self._queues.get(NUMBERS.get(copy.kind, ON_DEVICE))
        if queue is not None:
            queue.append(copy)
        if queue is None or queue[0] is copy:
            self._start_soon(copy)

    def _start_soon(self, copy: Launch) -> None:
        copy.alarm.set(self._device.clock.now, Phase.COPY_STARTS, copy.id, lambda: self._start(copy))

    def _start(self, copy: Launch) -> None:
        assert not isinstance(copy.op, ChildOp)
        started(self._device, copy)
        end_ps = self._device.clock.now + to_ps(copy.op.device_us)
        copy.alarm.set(end_ps, Phase.COPY_ENDS, copy.id, lambda: self._end(copy))

    def _end(self, copy: Launch) -> None:
        number = NUMBERS.get(copy.kind, ON_DEVICE)
        queue = self._queues.get(number)
        if queue is not None:
            queue.popleft()
            if queue:
                self._start_soon(queue[0])
        self._device.copy_ended(copy, number)
