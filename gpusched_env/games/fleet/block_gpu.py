"""One GPU of a fleet as a simulated device, with the scheduler that runs on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.episodes.session import begin
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.set_up import problem_for
from gpusched_env.scheduling.commands import Wait
from gpusched_env.scheduling.device import OpenDevice
from gpusched_env.scheduling.scheduler import Scheduler
from gpusched_env.scheduling.timeline import Timeline
from gpusched_env.scheduling.view import View


class BlockGpu:
    """A device that stands still at the time up to which it was run; nobody is there at first."""

    def __init__(self, problem: Problem, device: OpenDevice, scheduler: Scheduler, seed: int) -> None:
        """
        Args:
            problem: all that may come (:func:`~gpusched_env.games.fleet.programs.gpu_problem`).
            device: it runs on.
            scheduler: of kernels.
            seed: of what varies from job to job, and of the scheduler.
        """
        self._device, self._scheduler = device, scheduler
        own = problem_for(scheduler, problem)
        begin(scheduler, own, seed)
        self.sms = own.gpu.sms
        self.decisions = 0
        """Commands of its scheduler, without those to wait."""
        self._shown = 0
        device.stop_us = 0.0
        self._decide(device.reset(own, seed))

    @property
    def time_us(self) -> float:
        """Up to which it was run."""
        return self._device.time_us

    @property
    def timeline(self) -> Timeline:
        """What has happened on it."""
        return self._device.timeline

    @property
    def busy_us(self) -> float:
        """Time that its SMs had blocks, mean over all SMs."""
        return self._device.costs.busy_sm_us / self.sms

    def run(self, until_us: float) -> None:
        """Up to a time, which is not past; what is due then has happened."""
        self._device.stop_us = until_us
        self._decide(self._device.advance())

    def come(self, job: int, steps: int | None) -> None:
        """A job begins now, and ends by itself after so many steps; ``None``: when it is told to."""
        self._device.come(job, steps)

    def go(self, job: int) -> None:
        """A job ends; its step on the GPU goes on."""
        self._device.go(job)

    def steps(self) -> NDArray[np.float64]:
        """Steps that have ended since the last call: job, number, arrival, begin on the host and end (us)."""
        rows = self.timeline.jobs.array
        new, self._shown = rows[self._shown :], len(rows)
        return new

    def view(self) -> View:
        """What its scheduler would see now."""
        return self._device.view()

    def _decide(self, view: View | None) -> None:
        device, scheduler = self._device, self._scheduler
        while view is not None:
            command = scheduler.decide(view)
            device.apply(command)
            self.decisions += not isinstance(command, Wait)
            view = device.advance()
