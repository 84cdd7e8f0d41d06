"""Commands in numbers: the record in which compiled code and action spaces know them.

Each number has a field of its own name (:attr:`~gpusched_env.scheduling.commands.command.AnyCommand.NUMBERS`). Commands
share a field where it means the same.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.scheduling.commands import CODES, COMMANDS, Command

FIELDS: Final = tuple(dict.fromkeys(name for command in COMMANDS for name in command.NUMBERS))
GIVEN: Final = np.dtype([(name, np.int64) for name in ("code", *FIELDS)])
"""A command: its ``code``, and the numbers of that command; other fields have no meaning."""
PLACES: Final[dict[type[Command], tuple[int, ...]]] = {
    command: tuple(1 + FIELDS.index(name) for name in command.NUMBERS) for command in COMMANDS
}
"""Where a command's numbers are in a :data:`GIVEN`, counted in words."""


def write_numbers(command: Command, words: NDArray[np.int64]) -> None:
    """Write a command into the words of a :data:`GIVEN`."""
    kind = type(command)
    words[0] = CODES[kind]
    for place, number in zip(PLACES[kind], command.numbers(), strict=True):
        words[place] = number


def command_of(given: np.void) -> Command:
    """The command that a :data:`GIVEN` has: the inverse of :func:`write_numbers`."""
    kind: type[Command] = COMMANDS[int(given["code"])]
    return kind.of(*(int(given[name]) for name in kind.NUMBERS))
