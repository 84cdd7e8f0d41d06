"""What both devices at warp granularity do alike: one decision a request, and snapshots between decisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from gpusched_env.errors import DeadlockError, GpuschedError, IllegalCommand, InputError
from gpusched_env.games.child_launches.problem import LaunchProblem
from gpusched_env.games.child_launches.view import Decision, RequestView, Spawn, check_decision
from gpusched_env.scheduling.one_thread import OneThread, alone


class AskingDevice(OneThread, ABC):
    """The part of a :class:`gpusched_env.games.child_launches.device.LaunchDevice` that has no time in it."""

    _problem: LaunchProblem
    _asked = False
    """Whether a request waits, or waited before its answer."""
    _answer: bool | None = None
    _stuck = False
    """Nothing can happen any more."""

    @alone
    def apply(self, decision: Decision) -> None:
        check_decision(decision, self._asked and self._answer is None)
        self._answer = isinstance(decision, Spawn)

    @alone
    def advance(self) -> RequestView | None:
        if self._stuck:
            raise DeadlockError(self._deadlock())
        if not self._asked:
            return None
        if self._answer is None:
            raise IllegalCommand("a request waits for its decision: apply Spawn() or Serialise() first")
        answer, self._answer = self._answer, None
        return self._run_on(answer)

    def snapshot(self) -> tuple[LaunchProblem, Any]:
        if self._answer is not None:
            raise GpuschedError("a snapshot between a decision and the next request: call advance() first")
        return self._problem, self._saved()

    @alone
    def restore(self, snapshot: tuple[LaunchProblem, Any]) -> RequestView | None:
        given: Any = snapshot
        if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], LaunchProblem)):
            raise InputError(f"this device goes back to what its snapshot() gave, not to {type(snapshot).__name__}")
        return self._load(*snapshot)

    @abstractmethod
    def _run_on(self, answer: bool) -> RequestView | None:
        """From a request with its answer to the next one."""

    @abstractmethod
    def _saved(self) -> Any:
        """What :meth:`_load` needs besides the problem."""

    @abstractmethod
    def _load(self, problem: LaunchProblem, saved: Any) -> RequestView | None: ...

    @abstractmethod
    def _deadlock(self) -> str:
        """What waits for what."""
