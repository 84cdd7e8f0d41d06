"""A device and schedulers with figures that can be worked out by hand; named as ``fakes.py:Name`` in tests.

Every 100 us a job of each tenant arrives, is taken up 10 us later and completes ``50 + 10 seed + 20 tenant``
us after its arrival, 20 us earlier once the scheduler has launched anything. Each job is one kernel on SMs 0 and 1.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from gpusched_env.errors import DeadlockError
from gpusched_env.hardware.clock import to_ps
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.reward import Costs
from gpusched_env.scheduling.timeline import Detail, Timeline
from gpusched_env.scheduling.view import (
    DependencyColumn,
    JobColumn,
    PendingColumn,
    RunningColumn,
    TenantColumn,
    View,
    ViewTable,
)

JOBS = 4
PERIOD_US = 100.0


class Patient:
    """Waits, always."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        pass

    def decide(self, view: View) -> Command:
        return WAIT


class Eager(Patient):
    """Launches once, then waits."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        self._launched = False

    def decide(self, view: View) -> Command:
        if self._launched:
            return WAIT
        self._launched = True
        return Launch(0)


class Broken(Patient):
    """Fails at its first decision."""

    def decide(self, view: View) -> Command:
        raise ZeroDivisionError("a bug in a scheduler")


class FakeDevice:
    """See the module's docstring."""

    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs") -> View | None:
        self._problem = problem
        self._seed = seed
        self._record = record
        self._period = 0
        self._faster_us = 0.0
        self.time_us = 0.0
        self.done = False
        self.timeline = Timeline(record)
        self.costs = Costs(len(problem.programs))
        return self._view()

    def apply(self, command: Command) -> None:
        if isinstance(command, Launch):
            self._faster_us = 20.0
            if self._record != "jobs":
                self.timeline.decisions.add(to_ps(self.time_us), 0, command.launch)

    def advance(self) -> View | None:
        for tenant in range(len(self._problem.programs)):
            self._job(tenant)
        self._period += 1
        self.time_us = min(self._period * PERIOD_US, self._problem.scenario.horizon_us)
        self.costs.time_us = self.costs.makespan_us = self.time_us
        self.done = self._period == JOBS
        return None if self.done or self.time_us >= self._problem.scenario.horizon_us else self._view()

    def view(self) -> View:
        return self._view()

    def _job(self, tenant: int) -> None:
        arrived = self._period * PERIOD_US
        lasts = 50.0 + 10.0 * self._seed + 20.0 * tenant - self._faster_us
        self.costs.arrived[tenant] += 1
        self.costs.jobs_us[tenant] += lasts
        self.costs.completed[tenant] += 1
        self.costs.busy_sm_us += 2 * (lasts - 10.0)
        self.costs.energy_j += 0.01
        arrived_ps, ended_ps = to_ps(arrived), to_ps(arrived + lasts)
        taken_ps = to_ps(arrived + 10.0)
        self.timeline.jobs.add(tenant, self._period, arrived_ps, taken_ps, ended_ps)
        if self._record != "jobs":
            launch = 2 * self._period + tenant
            identity = self._problem.programs[tenant].variants[0][0].identity
            self.timeline.kernels.add(
                launch, tenant, self._period, identity, arrived_ps, arrived_ps, taken_ps, ended_ps, -tenant, 0,
                tenant, -1,
            )  # fmt: skip
            if tenant == 0:
                self.timeline.sms.add(taken_ps, 2, 1000.0, 150.0)
                self.timeline.sms.add(ended_ps, 0, 0.0, 100.0)
        if self._record == "blocks":
            for sm in (0, 1):
                self.timeline.blocks.add(sm, 2 * self._period + tenant, 1, taken_ps, ended_ps)

    def _view(self) -> View:
        pending = ViewTable(np.zeros((0, len(PendingColumn))), PendingColumn)
        running = ViewTable(np.zeros((0, len(RunningColumn))), RunningColumn)
        tenants = ViewTable(np.zeros((0, len(TenantColumn))), TenantColumn)
        jobs = ViewTable(np.zeros((0, len(JobColumn))), JobColumn)
        dependencies = ViewTable(np.zeros((0, len(DependencyColumn))), DependencyColumn)
        return View(
            self.time_us, pending, running, tenants, jobs, dependencies, 4, 0, occupancy=0.0, dram=0.0, horizon_us=400.0
        )


class IdleDevice(FakeDevice):
    """Jobs arrive and never complete."""

    def _job(self, tenant: int) -> None:
        self.costs.arrived[tenant] += 1
        self.costs.jobs_us[tenant] += PERIOD_US


class StuckDevice(FakeDevice):
    """Deadlocks in every seed but 0."""

    def advance(self) -> View | None:
        if self._seed > 0:
            raise DeadlockError("kernel 3 waits for kernel 4")
        return super().advance()


class SlowDevice(FakeDevice):
    """Never ends in any seed but 0; leaves a file ``started-SEED`` in the working folder."""

    def advance(self) -> View | None:
        Path(f"started-{self._seed}").touch()
        time.sleep(0.0 if self._seed == 0 else 3600.0)
        return super().advance()


class DyingDevice(FakeDevice):
    """Takes its process with it."""

    def advance(self) -> View | None:
        os._exit(7)
