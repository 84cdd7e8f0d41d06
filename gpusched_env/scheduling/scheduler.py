"""What a scheduler is."""

from __future__ import annotations

from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np

from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.view import View

SCHEDULER_STREAM = 0x5C4ED
"""Spawn key that keeps a scheduler's random numbers apart from the workload's."""


@runtime_checkable
class Scheduler(Protocol):
    """Decides, at every decision epoch, one command at a time until it waits.

    The same object drives the simulated devices and a real GPU. How it wants its tenants run and itself asked it says
    in an attribute ``set_up`` (:class:`~gpusched_env.scenarios.set_up.SetUp`), what its decisions depend on in
    ``reads`` (:mod:`gpusched_env.scheduling.reads`); without them it takes the scenario as it is. One that is to know
    what no scheduler can know is :class:`Clairvoyant`.
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
