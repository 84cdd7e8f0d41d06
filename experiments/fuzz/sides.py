"""One side of a duel: a device that is given commands. That of an environment is in ``env_side.py``."""

from __future__ import annotations

from typing import Any

from gpusched_env.errors import DeadlockError, IllegalCommand
from gpusched_env.experiments.fuzz.case import Case
from gpusched_env.experiments.fuzz.moves import Move, command_of, own_streams
from gpusched_env.experiments.fuzz.players import ShownStep
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.device import Device
from gpusched_env.scheduling.view import View


class Side:
    """A device that is given commands."""

    may_raise: tuple[type[Exception], ...] = (IllegalCommand, DeadlockError)
    """Anything else is a finding."""

    def __init__(self, device: Device, problem: Problem, case: Case) -> None:
        self.device = device
        self.saved: Any = None
        """What :meth:`save` kept."""
        self._problem = problem
        self._case = case
        self._own = own_streams(problem)

    def reset(self, seed: int) -> ShownStep:
        keep = self._case.snapshot is not None
        return self._shown(self.device.reset(self._problem, seed, record=self._case.record, snapshots=keep))

    def meaning(self, move: Move, shown: ShownStep) -> Any:
        """The command or action that ``move`` means there; ``None`` if there is no such kernel."""
        return command_of(move, shown.view, self._own)

    def step(self, action: Any) -> ShownStep:
        """Carry out what a move means."""
        self.device.apply(action)
        return self._shown(self.device.advance())

    def now(self) -> ShownStep:
        """What the device shows of itself, whether or not it waits for a decision."""
        return ShownStep(self.device.view(), over=True)

    def save(self) -> None:
        """Keep what :meth:`restore` needs to come back."""
        self.saved = self.device.snapshot()

    def restore(self) -> ShownStep:
        return self._shown(self.device.restore(self.saved))

    def _shown(self, view: View | None) -> ShownStep:
        return self.now() if view is None else ShownStep(view, over=False)
