"""What :mod:`gpusched_env.workload.host` works on: clients, jobs, host threads and programs as plain objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from gpusched_env.devices.reference.clock import Alarm, Phase
from gpusched_env.devices.reference.cores import core_tables
from gpusched_env.devices.reference.setting import Setting
from gpusched_env.devices.rules import logs
from gpusched_env.devices.rules.numbers import kernel_numbers, problem_numbers, program_numbers
from gpusched_env.hardware.clock import NEVER, PS_PER_US
from gpusched_env.scenarios.program import HostOp
from gpusched_env.scheduling.timeline import DETAILS
from gpusched_env.workload import host
from gpusched_env.workload.arrivals import MOST_JOBS, too_many_jobs
from gpusched_env.workload.cores.ticking import core_due, place_host
from gpusched_env.workload.workload import DEVICE_OPS


class Launches(Protocol):
    """What :mod:`gpusched_env.scheduling.commands.world` asks."""

    @property
    def any_launchable(self) -> bool: ...
    @property
    def any_preemptible(self) -> bool: ...
    def on_gpu(self, launch: Any) -> bool: ...
    @property
    def any_synchronisable(self) -> bool: ...
    @property
    def any_reshapable(self) -> bool: ...


@dataclass(frozen=True)
class JobOps:
    """What a job does: its operations begin at ``first_op``, thread after thread."""

    first_op: int
    device_ops: int
    marks: int
    threads: tuple[int, ...]
    batch: int = 0
    tokens: int = 0
    """Of an engine's step: requests (0: a prefill), and tokens of each."""


@dataclass
class Client:
    """A tenant at run time."""

    threads: int
    first_thread: int
    arrived: int = 0
    until: int = host.UNTOLD
    """So many jobs and no more come in a closed loop; below 0: no limit."""
    taken: int = 0
    completed: int = 0
    rejected: int = 0
    first: int = 0
    """Oldest job that is not gone."""
    due_job: int = 0
    slo_misses: int = 0
    host_job: int = -1
    busy: int = 0
    """Threads that have not done with it."""
    host_factor: float = 1.0
    at_work: int = 0
    """Threads that spend host time, where that slows other tenants'."""
    outstanding: int = 0
    holds_lock: int = 0
    """The bandwidth lock: 1 from a launch to the return of a synchronisation behind which nothing is left."""
    last_end_ps: int = -NEVER
    partitioned_ps: int = -NEVER
    """When its partition was last set."""
    rejected_ps: int = -NEVER
    pause_ps: int = 0
    """What its host sleeps before a job."""
    owed_ps: int = 0
    """What is added to that, once."""
    asleep_until_ps: int = host.AWAKE
    throttled_ps: int = -NEVER
    """When it was last throttled."""
    trace_first: int = 0
    """Request of its trace that is the episode's first."""
    trace_from_ps: int = 0
    """Time of its trace at which the episode begins."""
    regime: int = 0
    """Of arrivals whose rate switches: 1 in busy times."""
    jobs_us: float = 0.0
    jobs_since_ps: int = 0
    last_turnaround_us: float = 0.0
    mean_turnaround_us: float = 0.0
    answered: int = 0
    """Jobs that have completed, or requests that have their first token."""
    running: int = 0
    """Requests that a serving engine runs."""
    cached: int = 0
    """Tokens of theirs in its cache."""
    prefills: int = 0
    """1 while its step is a prefill."""
    prefill_left: int = 0
    """Tokens that it has still to prefill after that, of the newest request that runs."""
    l2_job: int = -1
    """This and what follows: its share of the L2 (:mod:`gpusched_env.devices.rules.l2`)."""
    brought_bytes: float = 0.0
    seen_bytes: float = 0.0
    missing: float = 1.0


@dataclass(eq=False)
class Job:
    """One request of a tenant: an iteration of its program."""

    number: int
    variant: JobOps
    first_op: int = 0
    operations: int = 0
    unfinished: int = 0
    """Of its operations on the device."""
    marks: int = 0
    state: int = host.WAITING
    overdue: int = 0
    arrived_ps: int = 0
    started_ps: int = NEVER
    deadline_ps: int = NEVER
    due_ps: int = NEVER
    """Of its launches."""
    factor: float = 1.0
    prompt: int = 0
    answer: int = 0
    """Lengths of a serving engine's request, tokens."""
    tokens: int = 0
    """Of its answer, so far."""
    cached: int = 0
    """In the cache, while it runs."""
    preemptions: int = 0
    first_token_ps: int = NEVER


@dataclass
class Thread:
    tenant: int
    op: int = 0
    end: int = 0
    state: int = host.IDLE
    at_work: int = 0


@dataclass
class Mark:
    launch: int = host.UNISSUED
    finished: int = 0
    ended_ps: int = 0


@dataclass
class StreamBooks:
    outstanding: int = 0
    last_end_ps: int = -NEVER


class World:
    """Hosts at run time. Names and meanings are those of :mod:`gpusched_env.workload.host`."""

    # Host threads are no SimPy processes: one text of them is compiled for other devices, and steps by timers.

    def __init__(self, setting: Setting, seed: int, issue: Callable[[HostOp, int, Job], None]) -> None:
        """``issue``: called when a host thread issues an operation of a tenant's job."""
        problem, clock = setting.problem, setting.clock
        self._clock, self._issue = clock, issue
        self.timeline, self.detail = setting.timeline, DETAILS.index(setting.timeline.detail)
        self.rules = SimpleNamespace(**problem_numbers(problem))
        self.kernels = [SimpleNamespace(**kernel_numbers(known)) for known in problem.knowledge.kernels]
        self.launches: Launches
        """What is legal now of launches."""
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
        """Into the L2, by all kernels that have ended."""
        known = problem.knowledge.tenants
        self.programs = [
            SimpleNamespace(**program_numbers(program, of)) for program, of in zip(problem.programs, known, strict=True)
        ]
        asked = [None if program.engine is None else program.engine.asked for program in problem.programs]
        self.lengths = [() if each is None else (each.prompts, each.answers) for each in asked]
        replays = [program.replay for program in problem.programs]
        self.recorded = [() if replay is None else replay.times_ps for replay in replays]
        self._name = problem.scenario.name
        self.to_complete = sum(max(0, program.jobs) for program in self.programs)
        self.ops: list[HostOp] = []
        self.variants: list[list[JobOps]] = []
        self.clients: list[Client] = []
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
            self.clients.append(Client(threads, len(self.threads)))
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
        self.on_traffic: Callable[[], None] = lambda: None
        """Called when that has changed."""

    @property
    def now_ps(self) -> int:
        """The present time."""
        return self._clock.now

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

    def host_changed(self, tenant: int) -> None:
        """A tenant's host may have begun or stopped to run."""
        place_host(self, tenant)

    def traffic_changed(self) -> None:
        """The cores' traffic has changed."""
        self.on_traffic()

    def new_job(self, tenant: int, number: int, variant: JobOps) -> Job:
        """A job of a variant; those before the oldest that is not gone are forgotten."""
        jobs = self.jobs[tenant]
        while jobs and (oldest := next(iter(jobs))) < self.clients[tenant].first:
            del jobs[oldest]
        if len(jobs) * len(self.jobs) >= MOST_JOBS:
            raise too_many_jobs(self._name, self.now_ps / PS_PER_US)
        jobs[number] = job = Job(number, variant)
        self.repeat(tenant, number, variant)
        return job

    def repeat(self, tenant: int, number: int, variant: JobOps) -> None:
        """A job is to do all that a variant does."""
        job = self.jobs[tenant][number]
        job.variant, job.first_op, job.marks = variant, variant.first_op, variant.marks
        job.operations = job.unfinished = variant.device_ops

    def in_system(self, tenant: int) -> list[Job]:
        """Jobs that have arrived and are not gone, oldest first."""
        client = self.clients[tenant]
        jobs = (self.jobs[tenant][number] for number in range(client.first, client.arrived))
        return [job for job in jobs if job.state != host.GONE]

    def issue(self, k: int) -> None:
        """A thread issues the operation that it stands at."""
        thread = self.threads[k]
        job = self.jobs[thread.tenant][self.clients[thread.tenant].host_job]
        self._issue(self.ops[thread.op], thread.tenant, job)

    def log_job(self, tenant: int, number: int) -> None:
        """A job has completed."""
        logs.log_job(self, tenant, number)

    def log_rejection(self, tenant: int, number: int) -> None:
        """A job was rejected."""
        logs.log_rejection(self, tenant, number)

    def log_request(self, tenant: int, number: int) -> None:
        """A request of a serving engine has completed."""
        logs.log_request(self, tenant, number)
