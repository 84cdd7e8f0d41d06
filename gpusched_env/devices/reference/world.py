"""The world that texts of both devices work on (hosts, cores, rules, commands), as plain objects."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.devices.reference.clock import Alarm, Phase
from gpusched_env.devices.reference.setting import Setting
from gpusched_env.devices.rules import logs
from gpusched_env.devices.rules.numbers import kernel_numbers, problem_numbers, program_numbers
from gpusched_env.hardware.clock import NEVER, PS_PER_US
from gpusched_env.scenarios.program import HostOp
from gpusched_env.scheduling.timeline import DETAILS
from gpusched_env.workload import host
from gpusched_env.workload.arrivals import MOST_JOBS, too_many_jobs
from gpusched_env.workload.cores.objects import core_tables
from gpusched_env.workload.cores.ticking import core_due, place_host
from gpusched_env.workload.host.objects import Client, Job, JobOps, Mark, StreamBooks, Thread
from gpusched_env.workload.workload import DEVICE_OPS

if TYPE_CHECKING:
    from gpusched_env.devices.reference.decisions import Decisions
    from gpusched_env.devices.reference.streams import Streams


class World:
    """What :mod:`gpusched_env.workload.host`, :mod:`gpusched_env.workload.cores` and :mod:`gpusched_env.devices.rules`
    read and write, under their names."""

    # Host threads are no SimPy processes: one text of them is compiled for other devices, and steps by timers.

    def __init__(self, setting: Setting, seed: int) -> None:
        problem, clock = setting.problem, setting.clock
        self._clock = clock
        self.timeline, self.detail = setting.timeline, DETAILS.index(setting.timeline.detail)
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

    def issue(self, k: int) -> None:
        """A thread issues the operation that it stands at."""
        thread = self.threads[k]
        job = self.jobs[thread.tenant][self.clients[thread.tenant].host_job]
        self.queues.issue(self.ops[thread.op], thread.tenant, job)

    def log_job(self, tenant: int, number: int) -> None:
        """A job has completed."""
        logs.log_job(self, tenant, number)

    def log_rejection(self, tenant: int, number: int) -> None:
        """A job was rejected."""
        logs.log_rejection(self, tenant, number)

    def log_request(self, tenant: int, number: int) -> None:
        """A request of a serving engine has completed."""
        logs.log_request(self, tenant, number)
