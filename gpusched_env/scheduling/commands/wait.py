"""Doing nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from gpusched_env.errors import IllegalCommand
from gpusched_env.hardware.clock import to_ps, to_us
from gpusched_env.reading import LONGEST_US
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands.command import AnyCommand, OperationOf
from gpusched_env.scheduling.showing import Shown


@dataclass(frozen=True, slots=True)
class Wait(AnyCommand):
    """Do nothing until the next event, or until ``until_us`` (simulated time) at the latest.

    Legal: always, with a time that is not before now.

    Cost: nothing, but time: at least one picosecond.
    """

    NAME: ClassVar = "wait"
    VERB: ClassVar = "wait"
    NUMBERS: ClassVar = ("until_ps",)

    until_us: float = math.inf
    """Simulated time, not before now."""

    def numbers(self) -> tuple[int, ...]:
        return (to_ps(self.until_us),)

    @classmethod
    def of(cls, *numbers: int) -> Wait:
        return cls(to_us(numbers[0]))

    def check(self, view: Shown, problem: Problem, operation_of: OperationOf) -> None:
        if not self.until_us >= view.time_us:
            raise IllegalCommand(f"{self}: until_us lies before the present time {view.time_us} us")
        if view.time_us + LONGEST_US < self.until_us < math.inf:
            raise IllegalCommand(f"{self}: until_us must be within {LONGEST_US:g} us, or inf: until something happens")
