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

    The same object drives the simulated devices and a real GPU. A scheduler that needs its tenants to
    run as separate processes (time slicing) sets the class attribute ``contexts = "per-tenant"``; the
    session then sets the device up that way; ``slice_us`` is the length of their slices, if it is not to be the GPU's.
    One whose tenants are processes though they share a context (MPS) says ``own_processes = True``: their hosts do not
    slow each other. One that needs to be asked also where only a preemption or a partition is left to decide names
    those commands in the class attribute ``commands``, for example ``("preempt",)``; the session offers them besides
    the scenario's. One that writes the SMs of a launch into the launch itself, by no interface that the driver
    documents, says ``masks = True``: confining takes no host time then. One whose way of intercepting launches costs
    host time says how much, a decision, in the attribute ``interception_us``; it adds to the scenario's. A CUDA
    graph is one launch, unless the scheduler intercepts inside graphs and says so: ``graphs = "opened"``. One that
    releases launches out of order, or on the contrary leaves them in their streams, has a method
    ``window(offered, gpu)`` that gives the window it works with (``None``: none) in place of the scenario's; one that
    has launches captured into CUDA graphs first says what that costs in the attribute ``capture``
    (:mod:`gpusched_env.scenarios.capture`); one that runs all kernels as tasks of one that stays on the GPU says how
    long it takes to get one in the attribute ``task_us``. One that needs hardware which no GPU of today has says
    ``hardware = True``, and is no baseline for a training. What its decisions depend on it says in ``reads``
    (:mod:`gpusched_env.scheduling.reads`). One that is to know what no scheduler can know is
    :class:`Clairvoyant`.
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
