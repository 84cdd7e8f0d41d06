"""Units that are built in a second, for tests of how that is done."""

from __future__ import annotations

from numba import types

from gpusched_env.compiling import native, unit


@native()
def twice(number: float) -> float:
    return number + number


@native()
def broken(number: float) -> float:
    return number + unknown  # type: ignore[name-defined, no-any-return]  # noqa: F821


UNITS = (unit(twice, types.float64),)
BROKEN = (*UNITS, unit(broken, types.float64))
