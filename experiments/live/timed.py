"""A simulated GPU whose scheduler takes as long for each decision as it took on a real one.

How long a decision takes is the host's matter: it depends on how much the scheduler looks at, and on who else uses the
machine, which differs from minute to minute. What is predicted is the GPU, so the host's times are taken over.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.hardware.clock import to_ps
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command
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
