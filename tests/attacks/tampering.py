"""Writing into all that can be reached from what a scheduler or an agent was given.

Frames, and objects of Python's own library, such as paths, lead to all of the interpreter and are left alone.
"""

from __future__ import annotations

import contextlib
import enum
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from tests.scheduling.reach import CODE, PLAIN

HUGE = 10**6
WRITERS: tuple[Callable[[Any, str, Any], None], ...] = (setattr, object.__setattr__, msgspec.structs.force_setattr)
OURS = ("gpusched_env", "tests", "builtins", "numpy", "gymnasium")


def tamper(given: Any) -> int:
    """Overwrite every array, item and attribute; how many could be written."""
    return sum(_overwrite(found) for found in list(_stored(given)))


def _stored(root: Any) -> Iterator[Any]:
    """Every object that is part of another, and what arrays are made over."""
    todo, seen = [root], {}
    while todo:
        found = todo.pop()
        own = type(found).__module__.partition(".")[0] in OURS
        if not own or isinstance(found, (*PLAIN, *CODE, enum.Enum, types.FunctionType)) or id(found) in seen:
            continue
        seen[id(found)] = found
        yield found
        if isinstance(found, np.ndarray):
            todo.append(found.base)
        elif isinstance(found, types.MethodType):
            todo.append(found.__self__)
        else:
            if isinstance(found, Mapping):
                todo += [*found.keys(), *found.values()]
            elif isinstance(found, list | tuple | set | frozenset):
                todo += found
            todo += [getattr(found, name, None) for name in _names(found)]


def _names(found: Any) -> list[str]:
    names = list(getattr(found, "__dict__", ()))
    for kind in type(found).__mro__:
        slots = getattr(kind, "__slots__", ())
        names += [name for name in ((slots,) if isinstance(slots, str) else slots) if not name.startswith("__")]
    return names


def _overwrite(found: Any) -> int:
    if isinstance(found, np.ndarray):
        return _fill(found)
    if isinstance(found, dict | list):
        places = list(found) if isinstance(found, dict) else range(len(found))
        for place in places:
            found[place] = _forged(found[place])
        return len(places)
    return 0 if isinstance(found, types.MethodType) else sum(_set(found, name) for name in _names(found))


def _fill(array: np.ndarray[Any, Any]) -> int:
    with contextlib.suppress(ValueError):
        array.flags.writeable = True
    try:
        array[...] = 1 if array.dtype.names or array.dtype.itemsize < 4 else HUGE
    except ValueError:
        assert not array.flags.writeable
        with contextlib.suppress(TypeError):
            memoryview(array).cast("B")[0] = 1
        return 0
    return 1


def _set(found: Any, name: str) -> int:
    forged = _forged(getattr(found, name, 0))
    for write in WRITERS:
        with contextlib.suppress(AttributeError, TypeError):
            write(found, name, forged)
            return 1
    with contextlib.suppress(TypeError, KeyError):
        vars(found)[name] = forged
        return 1
    return 0


def _forged(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return None
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return type(value)(HUGE)
    if isinstance(value, str):
        return "forged"
    return () if isinstance(value, tuple | np.ndarray) else None
