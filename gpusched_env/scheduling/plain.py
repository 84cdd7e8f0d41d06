"""Commands in plain numbers: what is checked is what is carried out, whatever a scheduler has made its commands of.

A number may be of a class that says something else each time it is asked, and a command of one whose fields change. So
a command is taken apart once, before it is checked.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gpusched_env.errors import IllegalCommand
from gpusched_env.scheduling.commands import (
    CODES,
    MODES,
    ORDERS,
    POLICIES,
    Command,
    Launch,
    Partition,
    TilePolicy,
    Wait,
)

OPTIONAL: Final = ("priority", "stream", "partition")
"""Fields that may be ``None``."""
WORDS: Final[dict[str, tuple[str, ...]]] = {"mode": MODES, "order": ORDERS}
TIMES: Final = ("until_us", "pause_us")
FLAGS: Final = ("wait_kernel", "always")
MOST: Final = 2**53
"""Numbers of this size and more are not exact in a view."""


def plain(command: Command) -> Command:
    """``command`` with numbers, words and flags of Python's own.

    Raises:
        IllegalCommand: it is no command, or a field has another kind of value.
    """
    if type(command) is Launch and type(command.launch) is int and abs(command.launch) < MOST:
        if command.priority is None and command.stream is None and command.partition is None:
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
        return Partition(*(whole(command, name, side) for side in sides))
    return _policy(command, value) if name == "policy" else whole(command, name, value)


def whole(command: object, name: str, value: Any) -> int:
    """Numbers of launches, streams and SMs are whole; compiled code would cut off what is behind the point."""
    if not (isinstance(value, int | np.integer) or (isinstance(value, float | np.floating) and value.is_integer())):
        raise IllegalCommand(f"{command}: {name} must be given in whole numbers, got {value!r}")
    number = int(value)
    if not -MOST < number < MOST:
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
    stride, steps = whole(command, "stride", value.stride), whole(command, "steps", value.steps)
    if min(stride, steps) < 1:
        raise IllegalCommand(f"{command}: stride and steps of a policy must be whole numbers from 1 on")
    return TilePolicy(value.kind, stride, steps, _flag(command, "reorder", value.reorder))
