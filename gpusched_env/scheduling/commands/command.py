"""What all commands have, and the command that does nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from gpusched_env.errors import IllegalCommand
from gpusched_env.hardware.clock import to_ps, to_us
from gpusched_env.reading import LONGEST_US
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import HostOp
from gpusched_env.scheduling.showing import Shown

OperationOf = Callable[[int], HostOp]
"""What an unfinished launch carries out, by its id."""


class AnyCommand:
    """A command: its fields are those of a frozen dataclass."""

    __slots__ = ()

    NAME: ClassVar[str]
    """The command's name in scenarios."""
    VERB: ClassVar[str]
    """What it does, for films and traces."""
    ONCE: ClassVar[bool] = False
    """Whether it is legal once at an instant: no sequence of commands stops the clock."""
    NUMBERS: ClassVar[tuple[str, ...]]
    """What :meth:`numbers` gives: fields of :data:`~gpusched_env.scheduling.legality.COMMAND_RECORD`."""
    anywhere: ClassVar[Callable[..., Any]]
    """A procedure ``(w)``: whether the command is legal now, for whatever it could be about."""
    show: ClassVar[Callable[..., Any] | None] = None
    """A procedure ``(w, tenant, row, offered)`` that fills columns of a row of ``view.tenants``: for what it is legal
    now; ``offered``: whether the scenario offers it."""

    @property
    def launch_id(self) -> int:
        """Id of the launch that it is about; -1: of none."""
        return int(getattr(self, "launch", -1))

    def numbers(self) -> tuple[int, ...]:
        """Itself in whole numbers: what compiled code carries out, and action spaces mean. Here its fields."""
        return tuple(int(getattr(self, name)) for name in self.NUMBERS)

    @classmethod
    def of(cls, *numbers: int) -> Self:
        """The inverse of :meth:`numbers`."""
        return cls(*numbers)

    def check(self, view: Shown, problem: Problem, operation_of: OperationOf) -> None:
        """Whether it may be given where the device shows ``view``, and the scenario offers it.

        Args:
            operation_of: asked only where a launch is refused that waits for another one, and of tiles.

        Raises:
            IllegalCommand: names the command, why it is not legal now, and what would be.
        """
        raise NotImplementedError


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
