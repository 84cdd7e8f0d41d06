"""The contract: what a scheduler is, what a GPU is to it, and which tenants come and go from outside."""

from __future__ import annotations

from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.reward import Costs
from gpusched_env.scheduling.timeline import Detail, Timeline
from gpusched_env.scheduling.view import View
from gpusched_env.workload.host import NO_LIMIT

SCHEDULER_STREAM = 0x5C4ED
"""Spawn key that keeps a scheduler's random numbers apart from the workload's."""


@runtime_checkable
class Scheduler(Protocol):
    """Decides, at every decision epoch, one command at a time until it waits.

    The same object drives the simulated devices and a real GPU. How it wants its tenants run and itself asked it says
    in an attribute ``set_up`` (:class:`~gpusched_env.scenarios.set_up.SetUp`), what its decisions depend on in
    ``reads`` (:mod:`gpusched_env.scheduling.reads`), what it waits for in ``waits_for``
    (:mod:`gpusched_env.scheduling.room`); without them it takes the scenario as it is, and is asked whenever it can be.
    One that is to know what no scheduler can know is :class:`Clairvoyant`.
    """

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """A new episode begins, of which this is known beforehand; forget the last one."""

    def decide(self, view: View) -> Command:
        """The next command. ``Wait`` ends the epoch; it is always legal."""


class Clairvoyant(Scheduler, Protocol):
    """A scheduler that is told the truth: a bound for others, marked in every table.

    It sets the class attribute ``clairvoyant = True``.
    """

    clairvoyant: bool

    def see(self, truth: Problem, seed: int) -> None:
        """What the device is given for the next episode; called before ``reset``."""


def is_clairvoyant(scheduler: Scheduler) -> TypeGuard[Clairvoyant]:
    """Whether ``scheduler`` asks for the truth."""
    return bool(getattr(scheduler, "clairvoyant", False))


def scheduler_rng(seed: int) -> np.random.Generator:
    """A scheduler's random numbers in the episode of ``seed``; nothing in the generator tells the seed."""
    sequence = np.random.SeedSequence([SCHEDULER_STREAM, seed])
    # A generator keeps what it was made of: not the seed, but numbers drawn from it.
    bits = np.random.PCG64(np.random.SeedSequence(sequence.generate_state(4).tolist()))
    bits.state = np.random.PCG64(sequence).state
    return np.random.Generator(bits)


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
    """A device that can play an episode by itself, in compiled code between two questions to a scheduler."""

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


def jobs_to_come(problem: Problem, tenant: int, jobs: int | None) -> int:
    """How many jobs a tenant that is to come sends, :data:`~gpusched_env.workload.host.NO_LIMIT` for ``None``.

    Raises:
        IllegalCommand: it may not come, or not with so many.
    """
    check_loop(problem, tenant, "come")
    if jobs is not None and jobs < 1:
        raise IllegalCommand(f"{_name(problem, tenant)} cannot come with {jobs} jobs; must be at least 1")
    return NO_LIMIT if jobs is None else jobs


def check_loop(problem: Problem, tenant: int, what: str) -> None:
    """Whether a tenant may ``come`` or ``go`` (``what``).

    Raises:
        IllegalCommand: there is no such tenant, or it is no closed loop without a number of jobs.
    """
    tenants = problem.scenario.tenants
    if not 0 <= tenant < len(tenants):
        raise IllegalCommand(f"tenant {tenant} cannot {what}: tenants are 0 to {len(tenants) - 1}")
    if not tenants[tenant].arrivals.closed or tenants[tenant].jobs is not None:
        raise IllegalCommand(
            f"{_name(problem, tenant)} cannot {what}: its arrivals must be a closed loop without a number of jobs"
        )


def presence_error(problem: Problem, tenant: int, what: str) -> IllegalCommand:
    """The error that a tenant which is there cannot ``come``, or one that is not cannot ``go``."""
    return IllegalCommand(f"{_name(problem, tenant)} cannot {what}: it is {'' if what == 'come' else 'not '}there")


def _name(problem: Problem, tenant: int) -> str:
    return f"tenant {tenant} ({problem.scenario.tenants[tenant].name})"
