"""What makes a command illegal, on every device; commands in plain numbers and as a record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import procedure
from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import (
    CODES,
    COMMANDS,
    MODES,
    ORDERS,
    POLICIES,
    Command,
    Launch,
    Partition,
    TilePolicy,
    Wait,
)
from gpusched_env.scheduling.commands.command import OperationOf
from gpusched_env.scheduling.commands.world import is_offered
from gpusched_env.scheduling.showing import Shown

FIELDS: Final = tuple(dict.fromkeys(name for command in COMMANDS for name in command.NUMBERS))
COMMAND_RECORD: Final = np.dtype([(name, np.int64) for name in ("code", *FIELDS)])
"""A command: its ``code``, and the numbers of that command; other fields have no meaning."""
FIELD_INDEX: Final[dict[type[Command], tuple[int, ...]]] = {
    command: tuple(1 + FIELDS.index(name) for name in command.NUMBERS) for command in COMMANDS
}
"""Where a command's numbers are in a :data:`COMMAND_RECORD`, counted in words."""


def write_numbers(command: Command, words: NDArray[np.int64]) -> None:
    """Write a command into the words of a :data:`COMMAND_RECORD`."""
    kind = type(command)
    words[0] = CODES[kind]
    for place, number in zip(FIELD_INDEX[kind], command.numbers(), strict=True):
        words[place] = number


def command_of(given: np.void) -> Command:
    """The command that a :data:`COMMAND_RECORD` has: the inverse of :func:`write_numbers`."""
    kind: type[Command] = COMMANDS[int(given["code"])]
    return kind.of(*(int(given[name]) for name in kind.NUMBERS))


OPTIONAL: Final = ("priority", "stream", "partition")
"""Fields that may be ``None``."""
WORDS: Final[dict[str, tuple[str, ...]]] = {"mode": MODES, "order": ORDERS}
TIMES: Final = ("until_us", "pause_us")
FLAGS: Final = ("wait_kernel", "always")
EXACT_LIMIT: Final = 2**53
"""Numbers of this size and more are not exact in a view."""


def normalised_command(command: Command) -> Command:
    """``command`` with numbers, words and flags of Python's own.

    Raises:
        IllegalCommand: it is no command, or a field has another kind of value.
    """
    if type(command) is Launch and type(command.launch) is int and abs(command.launch) < EXACT_LIMIT:
        priority = command.priority
        plain = priority is None or (type(priority) is int and abs(priority) < EXACT_LIMIT)
        if plain and command.stream is None and command.partition is None:
            return command
    elif type(command) is Wait and type(command.until_us) is float:
        return command
    kind = type(command)
    if kind not in CODES:
        raise IllegalCommand(f"{command!r} is not a command")
    return kind(**{name: _field(command, name, getattr(command, name)) for name in kind.__slots__})


def _field(command: Command, name: str, value: Any) -> Any:
    if value is None and name in OPTIONAL:
        return None
    if name in WORDS:
        return _word(command, name, value)
    if name in FLAGS:
        return _flag(command, name, value)
    if name in TIMES:
        return _time(command, name, value)
    if name == "partition":
        sides = (value.first, value.sms) if type(value) is Partition else (None, None)
        return Partition(*(whole_number(command, name, side) for side in sides))
    return _policy(command, value) if name == "policy" else whole_number(command, name, value)


def whole_number(command: object, name: str, value: Any) -> int:
    """Numbers of launches, streams and SMs are whole; compiled code would cut off what is behind the point."""
    if not (isinstance(value, int | np.integer) or (isinstance(value, float | np.floating) and value.is_integer())):
        raise IllegalCommand(f"{command}: {name} must be given in whole numbers, got {value!r}")
    number = int(value)
    if not -EXACT_LIMIT < number < EXACT_LIMIT:
        raise IllegalCommand(f"{command}: {name} must be within 2^53")
    return number


def _time(command: Command, name: str, value: Any) -> float:
    if not isinstance(value, float | int | np.floating | np.integer):
        raise IllegalCommand(f"{command}: {name} must be a finite number of microseconds, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise IllegalCommand(f"{command}: {name} must be a finite number of microseconds") from None


def _flag(command: Command, name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise IllegalCommand(f"{command}: {name} must be True or False, got {value!r}")
    return bool(value)


def _word(command: Command, name: str, value: Any) -> str:
    if type(value) is not str or value not in WORDS[name]:
        raise IllegalCommand(f"{command}: {name} must be {', '.join(WORDS[name])}")
    return value


def _policy(command: Command, value: Any) -> TilePolicy:
    if type(value) is not TilePolicy or type(value.kind) is not str or value.kind not in POLICIES[1:]:
        raise IllegalCommand(f"{command}: policy must be a TilePolicy of kind {', '.join(POLICIES[1:])}")
    stride, steps = whole_number(command, "stride", value.stride), whole_number(command, "steps", value.steps)
    if min(stride, steps) < 1:
        raise IllegalCommand(f"{command}: stride and steps of a policy must be whole numbers from 1 on")
    return TilePolicy(value.kind, stride, steps, _flag(command, "reorder", value.reorder))


def check_command(command: Command, view: Shown, problem: Problem, operation_of: OperationOf) -> Command:
    """Whether ``command`` may be given where the device shows ``view``.

    Args:
        operation_of: asked only where a launch is refused that waits for another one, and of tiles.

    Returns:
        what is to be carried out: the command in plain numbers.

    Raises:
        IllegalCommand: names the command, why it is not legal now, and what would be.
    """
    command = normalised_command(command)
    offered = problem.scenario.commands
    if not isinstance(command, Wait) and command.NAME not in offered:
        raise IllegalCommand(f"{command}: scenario {problem.scenario.name} offers {', '.join(offered)} only")
    command.check(view, problem, operation_of)
    return command


def offered_bits(names: Iterable[str]) -> int:
    """Commands that a scenario offers, as :func:`~gpusched_env.scheduling.commands.world.is_offered` has them."""
    return sum(1 << CODES[command] for command in COMMANDS if command.NAME in names)


@procedure
def _none(w: Any) -> Any:
    return False


@procedure
def _no_columns(w: Any, tenant: int, row: Any) -> None:
    pass


def _either(code: int, anywhere: Callable[..., Any], others: Callable[..., Any]) -> Callable[..., Any]:
    @procedure
    def either(w: Any) -> Any:
        return (is_offered(w, code) and anywhere(w)) or others(w)

    return either


def _both(code: int, show: Callable[..., Any], others: Callable[..., Any]) -> Callable[..., Any]:
    @procedure
    def both(w: Any, tenant: int, row: Any) -> None:
        show(w, tenant, row, is_offered(w, code))
        others(w, tenant, row)

    return both


any_legal: Callable[..., Any] = _none
"""Whether a command other than waiting is legal in ``w``, of those that the scenario offers."""
show_tenant: Callable[..., Any] = _no_columns
"""Fill the columns of ``w``'s row of ``tenant`` in ``view.tenants`` that say which commands are legal for it."""
for _command in reversed(COMMANDS):
    if _command is not Wait:
        any_legal = _either(CODES[_command], _command.anywhere, any_legal)
    if _command.show is not None:
        show_tenant = _both(CODES[_command], _command.show, show_tenant)
