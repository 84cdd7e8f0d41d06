"""A tenant's stream: launched operations start in order, with the latencies of launches and dependencies."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator
from typing import TYPE_CHECKING

from simpy.events import Event

from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.phases import Phase, Timer, order
from gpusched_env.workload.workload import OpKind

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice

KERNEL = OpKind.KERNEL


class Stream:
    """In-order execution of one tenant's operations.

    An operation starts when its launch has reached the device and its predecessor has ended, plus the
    gap of a stream (or the latency of an event, where the stream priority changes: CUDA streams have
    fixed priorities, so such a kernel goes to another stream and waits for an event).
    """

    def __init__(self, device: ReferenceDevice, tenant: int, gap_us: float) -> None:
        self._device = device
        self._tenant = tenant
        self._gap_us = gap_us
        self._queue: deque[Launch] = deque()
        self._woken: Event | None = None
        device.env.process(self._run())

    def put(self, launch: Launch) -> None:
        """Append a launched operation; it reaches the device at ``launch.arrives_us``."""
        self._queue.append(launch)
        if self._woken is not None:
            woken, self._woken = self._woken, None
            woken.succeed()

    def _run(self) -> Generator[Event, None, None]:
        env, queue, execute = self._device.env, self._queue, self._device.execute
        phase = order(Phase.STREAM, self._tenant)
        event_latency = max(self._gap_us, self._device.problem.gpu.timing.event_latency_us)
        ended, priority = -math.inf, 0
        while True:
            while not queue:
                woken = self._woken = Event(env)
                yield woken
            launch = queue.popleft()
            kernel = launch.op.kind is KERNEL
            same = launch.priority == priority or not kernel
            ready = max(launch.arrives_us, ended + (self._gap_us if same else event_latency))
            if ready > env.now:
                yield Timer(env, ready, phase)
            yield execute(launch)
            ended = env.now
            if kernel:
                priority = launch.priority
