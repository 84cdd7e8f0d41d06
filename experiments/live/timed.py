"""A simulated GPU whose scheduler takes as long for each decision as it took on a real one.

How long a decision takes is the host's matter: it depends on how much the scheduler looks at, and on who else uses the
machine, which differs from minute to minute. What is predicted is the GPU, so the host's times are taken over.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat

import numpy as np

from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.experiments.lib.names import new_scheduler
from gpusched_env.hardware.clock import to_ps
from gpusched_env.planning.dispatcher import DecidesForIntervals, IntervalDispatcher
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scenarios.set_up import set_up_of
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.scheduler import Scheduler
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.scheduling.view import View


class TimedDecisions(CompiledDevice):
    """The compiled device with recorded times of decisions, on a problem whose own decisions take none."""

    def __init__(self, decisions_us: Sequence[float]) -> None:
        """
        Args:
            decisions_us: host time of the first decision, the second, and so on; later ones take their mean.
        """
        super().__init__()
        self._times_ps = [to_ps(us) for us in decisions_us]
        self._mean_ps = sum(self._times_ps) // max(1, len(self._times_ps))

    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs", snapshots: bool = False) -> View | None:
        """As the compiled device; the first decision is the first again."""
        self._left = iter(self._times_ps)
        return super().reset(problem, seed, record=record, snapshots=snapshots)

    def apply(self, command: Command) -> None:
        """As the compiled device; it takes effect when the recorded time is over."""
        env = self.arena.env
        begins_ps = max(int(env["busy_until_ps"]), int(env["now_ps"]))
        env["busy_until_ps"] = begins_ps + next(self._left, self._mean_ps)
        super().apply(command)


class TimedIntervals:
    """A scheduler that decides for intervals, with recorded times of these decisions, which keep no launch waiting."""

    def __init__(self, scheduler: Scheduler, intervals_us: Sequence[float]) -> None:
        """
        Args:
            scheduler: it.
            intervals_us: one or more: how long the first decision took, the second, and so on; later ones take their
                mean.
        """
        self._scheduler, self._intervals_us = scheduler, intervals_us
        self.set_up = set_up_of(scheduler)
        self.dispatcher: IntervalDispatcher | None = None

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """A new episode."""
        self._scheduler.reset(knowledge, rng)
        assert isinstance(self._scheduler, DecidesForIntervals)
        self.dispatcher = self._scheduler.dispatcher
        assert self.dispatcher is not None
        self.dispatcher.latencies_us = chain(self._intervals_us, repeat(float(np.mean(self._intervals_us))))

    def decide(self, view: View) -> Command:
        """As the scheduler does."""
        return self._scheduler.decide(view)


def timed_intervals(name: str, scenario: Scenario, intervals_us: Sequence[float]) -> TimedIntervals:
    """The same of a scheduler's name, for worker processes."""
    return TimedIntervals(new_scheduler(name, scenario), intervals_us)
