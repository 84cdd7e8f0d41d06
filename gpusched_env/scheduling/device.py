"""What a GPU is to a scheduler: the protocol that the reference, compiled and real devices share."""

from __future__ import annotations

from typing import Any, Protocol

from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.costs import Costs
from gpusched_env.scheduling.timeline import Detail, Timeline
from gpusched_env.scheduling.view import View


class Device(Protocol):
    """One GPU with its tenants.

    Use: ``view = reset(problem, seed)``, then ``apply(command)`` and ``view = advance()`` until
    ``advance`` returns ``None``: the workload is done, or the horizon is reached.
    """

    @property
    def done(self) -> bool:
        """Every tenant with a finite number of jobs has completed them, or had them rejected (and there is one)."""

    @property
    def timeline(self) -> Timeline:
        """What happened so far."""

    @property
    def time_us(self) -> float:
        """Simulated (or real) time since the reset."""

    @property
    def costs(self) -> Costs:
        """Time integrals since the reset, exact at ``time_us``."""

    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs", snapshots: bool = False) -> View | None:
        """Start an episode and run to the first decision epoch.

        ``record`` says what the timeline keeps: ``jobs``, ``kernels`` (and jobs), or ``blocks`` (all).
        ``snapshots``: keep what :meth:`snapshot` needs, which grows with the number of commands.
        """

    def apply(self, command: Command) -> None:
        """Carry out one command.

        Raises:
            IllegalCommand: it is not legal now; nothing has changed.
        """

    def advance(self) -> View | None:
        """The view for the next decision.

        After a command other than ``Wait``: at once, while another command than ``Wait`` is legal.
        After ``Wait``: at the next decision epoch. ``None`` at the end of the episode.

        Raises:
            DeadlockError: work is left but nothing can happen any more.
        """

    def view(self) -> View:
        """A snapshot at the present time, complete, whether or not it is a decision epoch."""

    def snapshot(self) -> Any:
        """What :meth:`restore` needs to come back to the present decision; can be pickled."""

    def restore(self, snapshot: Any) -> View | None:
        """Return to a snapshot exactly; gives what ``advance`` gave there."""
