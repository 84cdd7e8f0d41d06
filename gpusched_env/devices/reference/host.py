"""Host processes: jobs arrive, a tenant's host thread works through their operations in order."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np
from simpy.events import Event

from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.phases import Phase, Timer, order
from gpusched_env.scenarios.problem import HostOp, TenantProgram
from gpusched_env.workload.workload import OpKind

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice

SYNC = OpKind.SYNC

ARRIVAL_STREAM, VARIATION_STREAM = 1, 2
"""Spawn keys of a tenant's random number generators."""


class Job:
    """One request of a tenant: an iteration of its program."""

    __slots__ = (
        "arrived_us",
        "completed",
        "deadline",
        "deadline_us",
        "host_factor",
        "number",
        "ops",
        "started_us",
        "unfinished",
    )

    def __init__(
        self, number: int, arrived_us: float, deadline_us: float, ops: tuple[HostOp, ...], host_factor: float
    ) -> None:
        self.number = number
        self.arrived_us = arrived_us
        self.started_us = math.inf
        self.deadline_us = deadline_us
        self.ops = ops
        self.host_factor = host_factor
        self.unfinished = sum(op.kind is not SYNC for op in ops)
        """Device operations that have not finished."""
        self.completed: Event | None = None
        self.deadline: Timer | None = None


class Host:
    """A tenant at run time: its arrivals, its host thread, and its issued work."""

    def __init__(self, device: ReferenceDevice, index: int, program: TenantProgram, seed: int) -> None:
        self._device = device
        self._env = device.env
        self.index = index
        self.program = program
        self.tenant = program.tenant
        self._arrival_rng = np.random.default_rng([seed, index, ARRIVAL_STREAM])
        self._variation_rng = np.random.default_rng([seed, index, VARIATION_STREAM])
        self.waiting: deque[Job] = deque()
        """Jobs that arrived and were not taken up by the host."""
        self.in_system: deque[Job] = deque()
        """Jobs that arrived and have not completed, oldest first."""
        self.pending: deque[Launch] = deque()
        """Issued operations that wait for the scheduler, oldest first."""
        self.kernels_pending = 0
        """Kernels among them."""
        self.outstanding = 0
        """Issued operations that have not finished."""
        self.last_end_us = -math.inf
        self.jobs_done = 0
        self.last_turnaround_us = 0.0
        self.mean_turnaround_us = 0.0
        self._woken: Event | None = None
        self._env.process(self._arrivals())
        self._env.process(self._thread())

    def _arrivals(self) -> Generator[Event, None, None]:
        env, tenant = self._env, self.tenant
        arrives = tenant.arrivals.first_us(self._arrival_rng)
        number = 0
        while tenant.jobs is None or number < tenant.jobs:
            if arrives > env.now:
                yield Timer(env, arrives, order(Phase.ARRIVAL, self.index))
            job = self._arrive(number)
            if tenant.arrivals.closed:
                job.completed = env.event()
                yield job.completed
            arrives = tenant.arrivals.next_us(self._arrival_rng, job.arrived_us, env.now)
            number += 1

    def _arrive(self, number: int) -> Job:
        now = self._env.now
        program = self.program
        ops = program.variants[int(self._variation_rng.random() * len(program.variants))]
        factor = program.host_spread[int(self._variation_rng.random() * len(program.host_spread))]
        slo = self.tenant.slo_us
        job = Job(number, now, math.inf if slo is None else now + slo, ops, factor)
        self.waiting.append(job)
        self._device.meter.job_arrived(self.index, now)
        self.in_system.append(job)
        if slo is not None:
            job.deadline = Timer(
                self._env,
                job.deadline_us,
                order(Phase.DECISION, self.index),
                lambda _: self._device.meter.slo_missed(self.index),
            )
        self._device.wake()
        self.signal()
        return job

    def _thread(self) -> Generator[Event, None, None]:
        env, issue = self._env, self._device.issue
        phase = order(Phase.HOST, self.index)
        depth = self._device.problem.scenario.launch_depth
        sync_latency = self._device.problem.gpu.timing.sync_latency_us
        while True:
            while not self.waiting:
                yield self._sleep()
            job = self.waiting.popleft()
            job.started_us = env.now
            factor = job.host_factor
            for op in job.ops:
                if op.host_us > 0.0:
                    yield Timer(env, env.now + op.host_us * factor, phase)
                if op.kind is SYNC:
                    while self.outstanding:
                        yield self._sleep()
                    returns = self.last_end_us + sync_latency
                    if returns > env.now:
                        yield Timer(env, returns, phase)
                else:
                    while self.outstanding >= depth:
                        yield self._sleep()
                    self.outstanding += 1
                    issue(self, op, job)

    def _sleep(self) -> Event:
        woken = self._woken = Event(self._env)
        return woken

    def signal(self) -> None:
        """Something that the host thread may wait for has happened."""
        if self._woken is not None:
            woken, self._woken = self._woken, None
            woken.succeed()

    def finished(self, launch: Launch) -> None:
        """An operation of this host has finished on the device."""
        now = self._env.now
        self.outstanding -= 1
        self.last_end_us = now
        job = launch.job
        job.unfinished -= 1
        if job.unfinished == 0:
            turnaround = now - job.arrived_us
            self.in_system.remove(job)
            if job.deadline is not None:
                job.deadline.cancel()
            self.jobs_done += 1
            self.last_turnaround_us = turnaround
            mean = self.mean_turnaround_us
            self.mean_turnaround_us = turnaround if self.jobs_done == 1 else mean + (turnaround - mean) / 8.0
            self._device.job_completed(self, job)
            if job.completed is not None:
                job.completed.succeed()
        self.signal()
