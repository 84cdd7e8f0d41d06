"""Laws in plain Python and compiled: what their tests share."""

from __future__ import annotations

import inspect
import struct
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

some = st.floats(1e-3, 1e6)
share = st.floats(0.0, 1.0)
amount = st.integers(1, 1 << 18)
few = st.integers(0, 4096)
times_ps = st.integers(0, 1 << 50)


def laws_of(*modules: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Functions that are defined in modules, with their names."""
    for module in modules:
        for name, value in inspect.getmembers(module, inspect.isfunction):
            if value.__module__ == module.__name__:
                yield name, value


def check_law(law: Callable[..., Any], arguments: st.SearchStrategy[tuple[Any, ...]]) -> None:
    """It gives the same in plain Python and in compiled code, bit by bit."""
    call = compiled(law)

    @settings(deadline=None)
    @given(arguments)
    def check(args: tuple[Any, ...]) -> None:
        assert bits(law(*args)) == bits(call(*as_arrays(args)))

    check()


def bits(value: Any) -> list[tuple[str, bytes]]:
    """A number, or those of a tuple, exactly."""
    if isinstance(value, tuple):
        return [number for part in value for number in bits(part)]
    return [(type(value).__name__, struct.pack("<d", value))]


def compiled(law: Callable[..., Any]) -> Callable[..., Any]:
    @njit
    def call(*args: Any) -> Any:
        return law(*args)

    return call


def as_arrays(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(np.array(value) if isinstance(value, list) else value for value in args)
