"""What a scheduler of child launches is, and how it runs an application."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpusched_env.dynamic_parallelism.device import LaunchDevice
from gpusched_env.dynamic_parallelism.problem import LaunchProblem
from gpusched_env.dynamic_parallelism.timeline import TOTALS
from gpusched_env.dynamic_parallelism.view import Decision, LaunchKnowledge, RequestView
from gpusched_env.errors import leaving_is_an_error
from gpusched_env.scheduling.scheduler import scheduler_rng


class LaunchScheduler(Protocol):
    """Decides on each request whether its child is launched or its thread does the work itself.

    One for which the program is compiled in another way has a method ``adapt(problem)`` that gives the problem then
    (another threshold, launches of a warp as one). One that needs hardware which no GPU of today has says
    ``hardware = True``; one that tries the application beforehand, ``clairvoyant = True``.
    """

    def reset(self, knowledge: LaunchKnowledge, rng: np.random.Generator) -> None:
        """An application starts, of which this is known beforehand."""

    def decide(self, view: RequestView) -> Decision:
        """Whether to launch."""


@dataclass(frozen=True, eq=False)
class LaunchRun:
    """What a run of an application left behind."""

    problem: LaunchProblem
    time_ps: int
    totals: np.void
    """A row of :data:`~gpusched_env.dynamic_parallelism.timeline.TOTALS`."""
    launches: NDArray[np.void]
    """Rows of :data:`~gpusched_env.dynamic_parallelism.timeline.LAUNCH`."""
    wall_s: float

    @property
    def cycles(self) -> float:
        """Simulated time, in core cycles."""
        return self.time_ps / self.problem.machine.ps_per_cycle

    @property
    def children(self) -> int:
        """Child kernels launched."""
        return int(self.totals["spawned"])

    @property
    def decisions(self) -> int:
        """Requests that were asked about."""
        return int(self.totals["decisions"])

    @property
    def occupancy(self) -> float:
        """Warps on SMs over the warps that these can hold, on average over the run (0 to 1)."""
        gpu = self.problem.machine.gpu
        return float(self.totals["warp_ps"] / (self.time_ps * gpu.sms * gpu.limits.warps))

    @property
    def first_child_cycles(self) -> float:
        """When the first child's first block was on an SM; ``nan`` without children."""
        started = self.launches["started_ps"][self.launches["parent"] >= 0]
        return float(started.min() / self.problem.machine.ps_per_cycle) if len(started) else float("nan")


def problem_for(scheduler: LaunchScheduler, problem: LaunchProblem) -> LaunchProblem:
    """``problem`` with the program compiled as ``scheduler`` asks for."""
    adapt = getattr(scheduler, "adapt", None)
    return problem if adapt is None else adapt(problem)


def run_application(
    scheduler: LaunchScheduler, problem: LaunchProblem, device: LaunchDevice, seed: int = 0
) -> LaunchRun:
    """Run an application under ``scheduler`` on ``device`` to its end.

    Raises:
        InputError: the scheduler calls ``sys.exit``.
        IllegalCommand: the scheduler gave something else than a decision.
        DeadlockError: the application cannot go on.
    """
    began = time.perf_counter()
    problem = problem_for(scheduler, problem)
    with leaving_is_an_error(f"{type(scheduler).__name__} with seed {seed}"):
        scheduler.reset(LaunchKnowledge(problem.machine, problem.threshold, problem.aggregated), scheduler_rng(seed))
        view = device.reset(problem)
        while view is not None:
            device.apply(scheduler.decide(view))
            view = device.advance()
    totals = np.array([device.totals.item()], TOTALS)[0]
    return LaunchRun(problem, device.time_ps, totals, device.launches.copy(), time.perf_counter() - began)
