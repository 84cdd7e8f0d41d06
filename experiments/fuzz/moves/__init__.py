"""Moves: commands that name kernels by their place in a view, so that they keep a meaning when a case changes.

A recorded list of commands is of no use once a tenant is taken out of a case: all later launch ids differ.
A move says "the second launchable kernel" instead.

Each command has a module here, with its name in scenarios: what the move means, and how random players draw it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, Union

from gpusched_env.experiments.fuzz.moves.move import AnyMove, CommandMove
from gpusched_env.experiments.fuzz.moves.others import Act, BadWait, WaitMove
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import COMMANDS, Command, Wait
from gpusched_env.scheduling.view import View

COMMAND_MOVES: Final[dict[str, type[CommandMove]]] = {
    command.NAME: import_module(f"{__name__}.{command.NAME}").MOVE for command in COMMANDS if command is not Wait
}
"""Classes of moves, by the command's name in scenarios."""
if TYPE_CHECKING:
    Move = CommandMove | WaitMove | BadWait | Act
else:
    Move = Union[(*COMMAND_MOVES.values(), WaitMove, BadWait, Act)]


def moves_of(problems: str) -> list[type[CommandMove]]:
    """Commands that some scenarios offer: of any problems, or those that :attr:`CommandMove.OF` names."""
    return [move for move in COMMAND_MOVES.values() if problems == move.OF]


def own_streams(problem: Problem) -> list[int]:
    """Rows of the scheduler's own streams."""
    return [row for row, stream in enumerate(problem.streams) if stream.tenant < 0]


def command_of(move: AnyMove, view: View, own: Sequence[int] = ()) -> Command | None:
    """The command that a move means in ``view``, as :meth:`AnyMove.command` has it."""
    return move.command(view, own)


def move_of(command: Command, view: View, own: Sequence[int] = ()) -> Move:
    """The move that means a (legal) ``command`` in ``view``; ``own``: rows of the scheduler's own streams."""
    return WaitMove.of(command) if isinstance(command, Wait) else COMMAND_MOVES[command.NAME].of(command, view, own)
