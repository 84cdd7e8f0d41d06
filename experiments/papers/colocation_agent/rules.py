"""Rules for the knobs of training that go by the service: by its load, as seen or as it will be, and by its latency."""

from __future__ import annotations

import math

import numpy as np

from gpusched_env.baselines.colocated import DONE, Colocated
from gpusched_env.baselines.open_loop import OpenLoop
from gpusched_env.episodes.session import run_episode
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.reads import TRUTH, Reads
from gpusched_env.scheduling.view import TenantColumn, View

WAITING = int(TenantColumn.JOBS_WAITING)
BUSY = 0.25
"""Of the time, services alone: halfway between the calm and the busy times of the scenarios."""


QUARTER = 25.0
"""Percent of the SMs."""


class SeenLoad(Colocated):
    """Training sleeps as one number says while services were calm in the last period, and as another while busy."""

    def __init__(self, calm: float, busy: float, share: float, period_us: float) -> None:
        """
        Args:
            calm: of the pause after each iteration, in times of an iteration alone (>= 0).
            busy: likewise.
            share: of training, percent of the SMs (above 0 to 100).
            period_us: until the pause is set anew.
        """
        self._pauses, self._share, self.period_us = (calm, busy), share, period_us

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing has arrived."""
        self._alone_us = [tenant.alone_us for tenant in knowledge.tenants]
        self._arrived: dict[int, float] = {}
        self._before: dict[int, float] = {}
        super().reset(knowledge, rng)

    def begin(self) -> None:
        """As if it were calm."""
        self.training_share = self._share
        self._set(busy=False)

    def decide(self, view: View) -> Command:
        """Note how many jobs have arrived."""
        tenants = view.tenants.array
        self._arrived = {row: float(tenants[row, DONE] + tenants[row, WAITING]) for row in self.inference}
        return super().decide(view)

    def control(self, batch_us: float) -> None:
        """By the load."""
        self._set(busy=self.load() > BUSY)

    def load(self) -> float:
        """Jobs of services in the last period, times their time alone, over the period."""
        came = {row: count - self._before.get(row, 0.0) for row, count in self._arrived.items()}
        self._before = self._arrived
        return sum(count * self._alone_us[row] for row, count in came.items()) / self.period_us

    def _set(self, *, busy: bool) -> None:
        alone_us = max(self._alone_us[row] for row in self.training) if self.training else 0.0
        self.pause_us = self._pauses[busy] * alone_us


class KnownLoad(SeenLoad):
    """The same by the load of the period that comes: a reference, and no scheduler that there could be."""

    reads: Reads = (*SeenLoad.reads, TRUTH)
    clairvoyant = True

    def see(self, truth: Problem, seed: int) -> None:
        """Find out when jobs arrive; that depends on no scheduler."""
        # It brings in Numba.
        from gpusched_env.devices.compiled.device import CompiledDevice

        jobs = run_episode(OpenLoop(3600.0), truth, CompiledDevice(), seed).timeline.jobs.dict()
        alone_us = np.array([program.alone_us for program in truth.programs])
        mine = np.isin(jobs["tenant"], [row for row, each in enumerate(truth.programs) if each.tenant.slo_us])
        periods = (jobs["arrived_us"][mine] // self.period_us).astype(int)
        # Of the last period, in which nobody is asked any more, there is one more.
        self._coming = np.bincount(periods, alone_us[jobs["tenant"][mine].astype(int)]) / self.period_us

    def begin(self) -> None:
        """By the first period."""
        self._period = 0
        super().begin()
        self._set(busy=self.load() > BUSY)

    def load(self) -> float:
        """Of the period that begins."""
        coming = self._coming[self._period] if self._period < len(self._coming) else 0.0
        self._period += 1
        return float(coming)


class SeenLatency(Colocated):
    """Training has a quarter of the SMs less after each period in which batches took too long, and does not sleep."""

    def __init__(self, share: float, high: float, period_us: float) -> None:
        """
        Args:
            share: of training in the beginning, percent of the SMs (25 to 100).
            high: mean turnaround of a period above which it is too long, in times of the objective.
            period_us: until that is looked at again.
        """
        self._share, self._high, self.period_us = share, high, period_us

    def begin(self) -> None:
        """The first share."""
        self.training_share = self._share

    def control(self, batch_us: float) -> None:
        """A smaller share after a late period; never a larger one, as each change takes a restart."""
        if not math.isnan(batch_us) and batch_us > self._high * self.goal_us:
            self.training_share = max(QUARTER, self.training_share - QUARTER)
