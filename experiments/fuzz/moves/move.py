"""What all moves have, and how they name kernels and jobs by their place in a view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import CommandName
from gpusched_env.scheduling.commands import Command, Partition
from gpusched_env.scheduling.view import View, ViewTable

if TYPE_CHECKING:
    from gpusched_env.experiments.fuzz.case import RandomCommands

Sms = tuple[int, int]
"""First SM and number of SMs of a partition."""
Among = Literal["launchable", "synchronisable", "reshapable", "pending", "running", "none"]
AmongJobs = Literal["rejectable", "all", "none"]

TABLES: Final = {
    "launchable": "pending",
    "synchronisable": "pending",
    "reshapable": "pending",
    "rejectable": "jobs",
    "all": "jobs",
}
"""The table of a view for each kind of rows; otherwise the table has the name of what is among it."""
LEGAL: Final = ("launchable", "synchronisable", "rejectable")
"""Columns that say for what a command is legal."""
UNKNOWN = 1_000_000
"""A launch id, a job number and a stream that no episode reaches."""


class AnyMove(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", omit_defaults=True):
    """A move that a player makes."""

    def command(self, view: View, own: Sequence[int]) -> Command | None:
        """What the move means in ``view``; ``None`` if there is no such kernel or job.

        Args:
            own: rows of the scheduler's own streams.
        """
        raise TypeError(f"{self} is no move for a device")


@dataclass(frozen=True)
class Drawing:
    """What moves are drawn with."""

    weights: RandomCommands
    dice: Dice
    problem: Problem
    own: Sequence[int]
    """Rows of the scheduler's own streams."""

    @property
    def tenants(self) -> int:
        return len(self.problem.programs)

    def partition(self) -> Sms | None:
        """A partition that the GPU has, now and then all of it."""
        dice = self.dice
        if dice.chance(0.2):
            return None
        return dice.integer(0, self.problem.gpu.sms - 1), dice.log_integer(1, self.problem.gpu.sms)

    def any_partition(self) -> Sms | None:
        """A partition that the GPU need not have, or none."""
        dice = self.dice
        if dice.chance(0.5):
            return None
        return dice.integer(-1, self.problem.gpu.sms), dice.integer(0, self.problem.gpu.sms + 1)


class CommandMove(AnyMove, frozen=True, kw_only=True):
    """A command that a scenario may offer. Its class is ``MOVE`` of the module with the command's name in scenarios."""

    NAME: ClassVar[CommandName]
    OF: ClassVar[Literal["every", "any", "tiles", "forms", "hosts", "cores"]] = "any"
    """Problems whose scenarios offer it: all; some of all; of those whose kernels need tiles of others, whose kernels
    have other forms, whose hosts may be throttled, and with cores of the CPU."""
    LEGAL: ClassVar[tuple[str, str]]
    """Table of a view, and its column that is above 0 in rows for which it is legal."""
    WEIGHT: ClassVar[float] = 0.1
    """How often random players give the command."""
    DRAWN_WEIGHTS: ClassVar[tuple[float, ...]] = (0.0, 0.05, 0.3)
    """A drawn case has one of these in its place."""
    ANY_CHANCE: ClassVar[float] = 0.2
    """Chance that a move, where it is on offer, is what is often not legal, before :attr:`ANY_SHARE` decides."""
    ANY_SHARE: ClassVar[int] = 0
    """How often a move is what is often not legal, or not offered, beside others with a share; 0: by its chance."""

    @classmethod
    def of(cls, command: Any, view: View, own: Sequence[int]) -> Self:
        """The move that means a (legal) command; arguments as for :meth:`command`."""
        raise NotImplementedError

    @classmethod
    def legal_rows(cls, view: View) -> list[int]:
        """Rows of its table for which it is legal; :meth:`draw` needs one."""
        table, column = cls.LEGAL
        return np.flatnonzero(getattr(getattr(view, table), column) > 0.0).tolist()

    @classmethod
    def draw(cls, drawing: Drawing, view: View) -> Self:
        """A random move that is mostly legal."""
        raise NotImplementedError

    @classmethod
    def draw_any(cls, drawing: Drawing, among: Among) -> Self:
        """A random one that is often not legal.

        Args:
            among: drawn for kernels.
        """
        raise NotImplementedError


def rows_among(among: Among | AmongJobs, view: View) -> NDArray[np.float64]:
    """Rows of kernels, which begin with a launch id, or of jobs, which begin with tenant and number."""
    if among == "none":
        return np.zeros((0, 0))
    table: ViewTable = getattr(view, TABLES.get(among, among))
    if among == "reshapable":
        return np.asarray(table.array[table.forms > 0.0])
    rows = getattr(table, among) == 1.0 if among in LEGAL else slice(None)
    return np.asarray(table.array[rows])


def kernel_at(among: Among, pick: int, view: View) -> int | None:
    """Launch id of row ``pick`` (counted round) of those ``among``; ``None``: there is none."""
    if among == "none":
        return UNKNOWN + pick
    ids = rows_among(among, view)
    return int(ids[pick % len(ids), 0]) if len(ids) else None


def place_of(among: Among | AmongJobs, view: View, *first: int) -> int:
    """The place of the row that begins with these numbers."""
    return int(np.flatnonzero((rows_among(among, view)[:, : len(first)] == first).all(axis=1))[0])


def partition_of(sms: Sms | None) -> Partition | None:
    return None if sms is None else Partition(*sms)


def sms_of(partition: Partition | None) -> Sms | None:
    return None if partition is None else (partition.first, partition.sms)
