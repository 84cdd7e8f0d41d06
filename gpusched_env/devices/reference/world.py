"""The clock of an episode, and the world that texts of both devices work on, as plain objects.

SimPy's key of an event is (time, priority, number). Events here have their phase and the entity that they belong to in
the priority; so what an event causes at the same instant takes its place among what is due then. What has a life of its
own from one time to the next (a copy, a preemption, the slicer) is a SimPy process; what others set anew at any time
(the SMs, launches in streams, hosts) is a callback.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import simpy
from simpy.core import SimTime
from simpy.events import NORMAL, Event, EventPriority

from gpusched_env.devices.rules import world as logs
from gpusched_env.devices.rules.numbers import kernel_numbers, problem_numbers, program_numbers
from gpusched_env.hardware.clock import NEVER, PS_PER_US
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import HostOp
from gpusched_env.scheduling.timeline import DETAILS, Timeline
from gpusched_env.workload import host
from gpusched_env.workload.cores.ticking import core_due, core_tables, place_host
from gpusched_env.workload.host.states import HostClient, Job, JobOps, Mark, StreamBooks, Thread
from gpusched_env.workload.tenant import MOST_JOBS, too_many_jobs
from gpusched_env.workload.workload import DEVICE_OPS

if TYPE_CHECKING:
    from gpusched_env.devices.reference.decisions import Decisions
    from gpusched_env.devices.reference.streams import Streams


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
        """Alarms that are set: without any, nothing happens any more. SimPy's queue also holds what was called off."""

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
        """Stop without telling that it was set: no callback is called, a process that waits for it ends there."""
        if self._event is not None:
            self._event.callbacks.clear()
            self._event = None
            self._clock.alarms.discard(self)


class World:
    """What :mod:`gpusched_env.workload.host`, :mod:`gpusched_env.workload.cores` and :mod:`gpusched_env.devices.rules`
    read and write, under their names."""

    # Host threads are no SimPy processes: one text of them is compiled for other devices, and steps by timers.

    def __init__(self, problem: Problem, clock: Clock, timeline: Timeline, seed: int) -> None:
        self.problem, self.clock = problem, clock
        self.timeline, self.detail = timeline, DETAILS.index(timeline.detail)
        self.rules = SimpleNamespace(**problem_numbers(problem))
        self.kernels = [SimpleNamespace(**kernel_numbers(known)) for known in problem.knowledge.kernels]
        self.forms = [profile.forms for profile in problem.kernels]
        self.launches: Decisions
        """What may be done with launches now."""
        self.queues: Streams
        """Where host threads issue operations."""
        self.awake = 0
        """Whether something has happened that a scheduler could react to."""
        self.tenants_at_work = self.tenants_serving = 0
        self.done = 0
        self.done_ps = NEVER
        self.charged_energy_j = self.charged_makespan_us = 0.0
        # What the meter reads (:mod:`gpusched_env.devices.rules.meter`): rates since a time, and integrals up to it.
        self.gpu_since_ps = self.busy_sms = 0
        self.traffic = self.busy_sm_us = self.dram_bytes = self.energy_j = 0.0
        self.power_w = problem.gpu.power.idle_w
        self.brought_bytes = 0.0
        """Bytes that all kernels that have ended have brought into the L2."""
        known = problem.knowledge.tenants
        self.programs = [
            SimpleNamespace(**program_numbers(program, of)) for program, of in zip(problem.programs, known, strict=True)
        ]
        asked = [None if program.engine is None else program.engine.asked for program in problem.programs]
        self.lengths = [() if each is None else (each.prompts, each.answers) for each in asked]
        replays = [program.replay for program in problem.programs]
        self.recorded = [() if replay is None else replay.times_ps for replay in replays]
        self.to_complete = sum(max(0, program.jobs) for program in self.programs)
        self.ops: list[HostOp] = []
        self.variants: list[list[JobOps]] = []
        self.clients: list[HostClient] = []
        self.threads: list[Thread] = []
        self.marks: list[list[Mark]] = []
        for tenant, program in enumerate(problem.programs):
            threads = max(len(variant.threads) for variant in program.variants)
            self.variants.append([])
            for job, size in zip(program.variants, program.sizes, strict=True):
                idle = (0,) * (threads - len(job.threads))
                device_ops = sum(op.kind in DEVICE_OPS for op in job)
                self.variants[-1].append(JobOps(len(self.ops), device_ops, job.marks, (*job.threads, *idle), *size))
                self.ops += job
            self.clients.append(HostClient(threads, len(self.threads)))
            self.threads += [Thread(tenant) for _ in range(threads)]
            self.marks.append([Mark() for _ in range(max(variant.marks for variant in program.variants))])
        self.factors = [program.host_spread for program in problem.programs]
        self.streams = [StreamBooks() for _ in problem.streams]
        self.jobs: list[dict[int, Job]] = [{} for _ in self.clients]
        self.generators = [
            [np.random.default_rng([seed, tenant, key]) for key in host.RANDOM_STREAMS]
            for tenant in range(len(self.clients))
        ]
        self._arrivals = [Alarm(clock) for _ in self.clients]
        self._deadlines = [Alarm(clock) for _ in self.clients]
        self._steps = [Alarm(clock) for _ in self.threads]
        self.cores, self.processes = core_tables(problem.scenario.cores, [one.name for one in problem.scenario.tenants])
        self._core_timers = [Alarm(clock) for _ in self.cores]
        self.cpu_traffic = 0.0
        """Memory traffic of the cores, bytes/us."""
        self.traffic_changed: Callable[[], None] = lambda: None
        """Called when that has changed."""

    @property
    def now_ps(self) -> int:
        """The present time."""
        return self.clock.now

    def set_timer(self, kind: int, number: int, at_ps: int) -> None:
        """Set the timer of a tenant or thread."""
        if kind == host.ARRIVAL:
            self._arrivals[number].set(at_ps, Phase.ARRIVAL, number, lambda: host.arrival_due(self, number))
        elif kind == host.DEADLINE:
            self._deadlines[number].set(at_ps, Phase.DEADLINE, number, lambda: host.deadline_due(self, number))
        else:
            self._steps[number].set(at_ps, Phase.HOST, number, lambda: host.thread_due(self, number))

    def set_core_timer(self, c: int, at_ps: int) -> None:
        """Set the timer of a core."""
        self._core_timers[c].set(at_ps, Phase.CORE, c, lambda: core_due(self, c))

    def new_job(self, tenant: int, number: int, variant: JobOps) -> Job:
        """A job of a variant; those before the oldest that is not gone are forgotten."""
        jobs = self.jobs[tenant]
        while jobs and (oldest := next(iter(jobs))) < self.clients[tenant].first:
            del jobs[oldest]
        if len(jobs) * len(self.jobs) >= MOST_JOBS:
            raise too_many_jobs(self.problem.scenario.name, self.now_ps / PS_PER_US)
        jobs[number] = job = Job(number, variant)
        self.repeat(tenant, number, variant)
        return job

    def repeat(self, tenant: int, number: int, variant: JobOps) -> None:
        """A job is to do all that a variant does."""
        job = self.jobs[tenant][number]
        job.variant, job.first_op, job.marks = variant, variant.first_op, variant.marks
        job.operations = job.unfinished = variant.device_ops

    def issue(self, k: int) -> None:
        """A thread issues the operation that it stands at."""
        thread = self.threads[k]
        job = self.jobs[thread.tenant][self.clients[thread.tenant].host_job]
        self.queues.issue(self.ops[thread.op], thread.tenant, job)

    # Both devices have the same text of these.
    host_changed = place_host
    log_job, log_rejection, log_request = logs.log_job, logs.log_rejection, logs.log_request
