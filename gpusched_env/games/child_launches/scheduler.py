"""What a scheduler of child launches is, and how it runs an application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import leaving_is_an_error
from gpusched_env.games.child_launches.device import TOTALS, Decision, LaunchDevice, LaunchKnowledge, RequestView
from gpusched_env.games.child_launches.problem import LaunchProblem, check_program
from gpusched_env.scheduling.contract import scheduler_rng
from gpusched_env.scheduling.guards import deep_copy


class LaunchScheduler(Protocol):
    """Decides on each request whether its child is launched or its thread does the work itself.

    One for which the program is compiled in another way says how in ``program``
    (:class:`~gpusched_env.games.child_launches.problem.Transformations`). One that needs hardware which no GPU
    of today has says ``hardware = True``, and what launches cost there in ``launches``. One that tries the application
    beforehand says ``clairvoyant = True`` and has a method ``see(problem)``, which is called first.
    """

    def reset(self, knowledge: LaunchKnowledge, rng: np.random.Generator) -> None:
        """An application starts, of which this is known beforehand."""

    def decide(self, view: RequestView) -> Decision:
        """The decision whether to launch."""


@dataclass(frozen=True, eq=False)
class LaunchRun:
    """What a run of an application left behind."""

    problem: LaunchProblem
    time_ps: int
    totals: np.void
    """A row of :data:`~gpusched_env.games.child_launches.device.TOTALS`."""
    launches: NDArray[np.void]
    """Rows of :data:`~gpusched_env.games.child_launches.device.LAUNCH`."""

    @property
    def cycles(self) -> float:
        """Simulated time, in core cycles."""
        return self.time_ps / self.problem.machine.ps_per_cycle

    @property
    def children(self) -> int:
        """Number of child kernels launched."""
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


def problem_for(scheduler: LaunchScheduler, problem: LaunchProblem) -> LaunchProblem:
    """``problem`` with the program compiled as ``scheduler`` asks for, on hardware of its own if it says so.

    Raises:
        InputError: its ``program`` is none.
    """
    problem = check_program(getattr(scheduler, "program", {})).applied(problem)
    launches = getattr(scheduler, "launches", None) if getattr(scheduler, "hardware", False) else None
    return problem if launches is None else problem.with_launches(launches)


def run_application(
    scheduler: LaunchScheduler, problem: LaunchProblem, device: LaunchDevice, seed: int = 0
) -> LaunchRun:
    """Run an application under ``scheduler`` on ``device`` to its end.

    Raises:
        InputError: the scheduler calls ``sys.exit``.
        IllegalCommand: the scheduler gave something else than a decision.
        DeadlockError: the application cannot go on.
    """
    with leaving_is_an_error(f"{type(scheduler).__name__} with seed {seed}"):
        see = getattr(scheduler, "see", None) if getattr(scheduler, "clairvoyant", False) else None
        if see is not None:
            see(deep_copy(problem))
        problem = problem_for(scheduler, problem)
        known = LaunchKnowledge(deep_copy(problem.machine), problem.threshold, problem.aggregated)
        scheduler.reset(known, scheduler_rng(seed))
        view = device.reset(problem)
        while view is not None:
            device.apply(scheduler.decide(view))
            view = device.advance()
    totals = np.array([device.totals.item()], TOTALS)[0]
    return LaunchRun(problem, device.time_ps, totals, device.launches.copy())
