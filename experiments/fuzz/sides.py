"""One side of a duel: a device that is given commands. That of an environment is in ``env_side.py``."""

from __future__ import annotations

from typing import Any, Protocol

from gpusched_env.errors import DeadlockError, IllegalCommand
from gpusched_env.experiments.fuzz.case import Case
from gpusched_env.experiments.fuzz.moves import Move, command_of, own_streams
from gpusched_env.experiments.fuzz.players import Shown
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import WAIT, Command
from gpusched_env.scheduling.device import Device
from gpusched_env.scheduling.view import View


class Side(Protocol):
    """What a duel drives and looks at."""

    device: Device
    may_raise: tuple[type[Exception], ...]
    """Anything else is a finding."""
    saved: Any
    """What :meth:`save` kept."""

    def reset(self, seed: int) -> Shown: ...

    def meaning(self, move: Move, shown: Shown, *, or_wait: bool = False) -> Any:
        """The command or action that ``move`` means there; ``None`` (or a wait) if there is no such kernel."""

    def step(self, action: Any) -> Shown: ...

    def now(self) -> Shown:
        """What the device shows of itself, whether or not it waits for a decision."""

    def save(self) -> None: ...

    def restore(self) -> Shown: ...


class DeviceSide:
    """A device, driven by commands."""

    may_raise: tuple[type[Exception], ...] = (IllegalCommand, DeadlockError)
    saved: Any = None

    def __init__(self, device: Device, problem: Problem, case: Case) -> None:
        self.device = device
        self._problem = problem
        self._case = case
        self._own = own_streams(problem)

    def reset(self, seed: int) -> Shown:
        keep = self._case.snapshot is not None
        return self._shown(self.device.reset(self._problem, seed, record=self._case.record, snapshots=keep))

    def meaning(self, move: Move, shown: Shown, *, or_wait: bool = False) -> Command | None:
        return command_of(move, shown.view, self._own) or (WAIT if or_wait else None)

    def step(self, action: Command) -> Shown:
        self.device.apply(action)
        return self._shown(self.device.advance())

    def now(self) -> Shown:
        return self._shown(None)

    def save(self) -> None:
        self.saved = self.device.snapshot()

    def restore(self) -> Shown:
        return self._shown(self.device.restore(self.saved))

    def _shown(self, view: View | None) -> Shown:
        return Shown(self.device.view() if view is None else view, over=view is None)
