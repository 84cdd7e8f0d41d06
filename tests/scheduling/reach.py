"""Everything that can be reached from an object without leaving it: what a scheduler could find in what it is given."""

from __future__ import annotations

import enum
import functools
import types
import weakref
from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np

PLAIN = (str, bytes, bool, int, float, complex, type(None), np.generic)
CODE = (type, types.ModuleType, types.BuiltinFunctionType, types.MethodWrapperType)


def reachable(root: Any, name: str = "it") -> Iterator[tuple[str, Any]]:
    """Every object with the path to it: attributes, slots, items, elements, closures, what references lead to.

    Types, modules and the globals of functions are the code, which everybody has.
    """
    todo: list[tuple[str, Any]] = [(name, root)]
    # Kept alive while it runs, so that no id is used twice.
    seen: dict[int, Any] = {}
    while todo:
        path, found = todo.pop()
        if isinstance(found, (*CODE, enum.Enum)) or id(found) in seen:
            continue
        if not isinstance(found, PLAIN):
            seen[id(found)] = found
        yield path, found
        if not isinstance(found, PLAIN):
            todo += [(f"{path}{step}", value) for step, value in _within(found)]


def _within(found: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(found, np.ndarray):
        yield ".base", found.base
        yield from ((f"[{i}]", value) for i, value in enumerate(found.ravel().tolist()))
    elif isinstance(found, Mapping):
        for key, value in found.items():
            yield "'s key", key
            yield f"[{key!r}]", value
    elif isinstance(found, (list, tuple, Set)) and not hasattr(found, "_fields"):
        yield from ((f"[{i}]", value) for i, value in enumerate(found))
    elif isinstance(found, weakref.ref):
        yield "()", found()
    elif isinstance(found, types.FunctionType):
        yield from ((f".closure[{i}]", cell.cell_contents) for i, cell in enumerate(found.__closure__ or ()))
        yield ".defaults", found.__defaults__
    elif isinstance(found, types.MethodType):
        yield ".__self__", found.__self__
    elif isinstance(found, functools.partial):
        yield from ((".func", found.func), (".args", found.args), (".keywords", found.keywords))
    else:
        for name in {*dir(found), *getattr(found, "__dict__", ())}:
            if not name.startswith("__"):
                try:
                    yield f".{name}", getattr(found, name)
                except Exception:
                    # A property that does not apply; whoever reads it gets nothing either.
                    continue
