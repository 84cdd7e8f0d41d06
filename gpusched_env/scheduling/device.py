"""What a GPU is to a scheduler: the protocol that the reference, compiled and real devices share."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.costs import Costs
from gpusched_env.scheduling.scheduler import Scheduler
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


@runtime_checkable
class SelfDriving(Protocol):
    """A device that can play an episode by itself, in compiled code between two decisions for an interval."""

    def drives(self, scheduler: Scheduler, problem: Problem) -> bool:
        """Whether it can, with a scheduler that was told of the episode, on a problem."""

    def drive(self, scheduler: Scheduler, problem: Problem, seed: int, *, record: Detail = "jobs") -> int:
        """Play an episode; returns how many commands other than ``Wait`` were carried out."""


class OpenDevice(Device, Protocol):
    """A device that is driven from outside while its scheduler runs: simulated ones are.

    ``stop_us`` stands before :meth:`reset`, or whenever the device stands still, and is kept until it is set anew.
    """

    stop_us: float
    """:meth:`advance` gives ``None`` there, too, when all that is due then has happened and the scheduler has been
    asked; the next one goes on. ``inf``: nowhere; not before the present time."""

    def come(self, tenant: int, jobs: int | None = None) -> None:
        """A tenant that is a closed loop sends a job now, and the next ones as its arrivals say.

        One that has not begun yet (``start_us``) begins so. One that has gone and still has a job in the system goes on
        after that.

        Args:
            tenant: a closed loop without a number of jobs of its own.
            jobs: after so many (1 or more) it goes; ``None``: when it is told to.

        Raises:
            IllegalCommand: it is there, or not such a tenant; nothing has changed.
        """

    def go(self, tenant: int) -> None:
        """A tenant sends nothing any more; a job of it that is in the system goes on.

        Raises:
            IllegalCommand: it is not there, or no closed loop without a number of jobs; nothing has changed.
        """
