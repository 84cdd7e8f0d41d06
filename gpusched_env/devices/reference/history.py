"""What was done to the reference device since its reset: what a snapshot of it consists of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.timeline import Detail


class Came(NamedTuple):
    """A tenant came from outside."""

    at_ps: int
    tenant: int
    jobs: int | None


class Went(NamedTuple):
    """A tenant was told to go."""

    at_ps: int
    tenant: int


Step = Command | Came | Went


class History(NamedTuple):
    """An episode so far."""

    problem: Problem
    seed: int
    record: Detail
    steps: tuple[Step, ...]
    stood_ps: int
    """Where it stood still; :data:`NEVER`: a view was given."""


def stops(steps: Sequence[Step], stood_ps: int) -> list[int]:
    """Where the device stands still before each step and after the last: for whoever comes or goes next."""
    found = [stood_ps]
    for step in reversed(steps):
        found.append(step.at_ps if isinstance(step, Came | Went) else found[-1])
    return found[::-1]
