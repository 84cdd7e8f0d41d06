"""What a scheduler is."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.view import View


@runtime_checkable
class Scheduler(Protocol):
    """Decides, at every decision epoch, one command at a time until it waits.

    The same object drives the simulated devices and a real GPU. A scheduler that needs its tenants to
    run as separate processes (time slicing) sets the class attribute ``contexts = "per-tenant"``; the
    session then sets the device up that way. One that needs to be asked also where only a preemption or a
    partition is left to decide names those commands in the class attribute ``commands``, for example
    ``("preempt",)``; the session offers them besides the scenario's. One whose way of intercepting launches costs
    host time says how much, a decision, in the attribute ``interception_us``; it adds to the scenario's.
    """

    def reset(self, problem: Problem, rng: np.random.Generator) -> None:
        """A new episode of ``problem`` begins (GPU, tenants, kernel profiles); forget the last one."""

    def decide(self, view: View) -> Command:
        """The next command. ``Wait`` ends the epoch; it is always legal."""
