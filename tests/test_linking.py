"""Functions that only compiled functions call are compiled once, and end up in those that Python calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gpusched_env.compiling import called, law
from gpusched_env.linking import WholeCompiler
from tests.refusals import refused


@law
def doubled(number: float) -> float:
    """A law: also a function of Python."""
    return 2.0 * number


@called
def below(number: Any) -> Any:
    """Calls nothing that its callers do not call as well."""
    return doubled(number) + 1.0


@called
def shared(number: Any) -> Any:
    """Reached by two ways, of which one is longer."""
    return below(number) * 10.0


@called
def total(numbers: Any) -> Any:
    """Of an array."""
    found = 0.0
    for number in numbers[1:]:
        found += shared(number) + below(number)
    return found


NUMBERS = np.array([100.0, 1.0, 2.0])
EXPECTED = (3.0 * 10.0 + 3.0) + (5.0 * 10.0 + 5.0)


def test_a_whole_computes_what_its_parts_say() -> None:
    whole = njit(pipeline_class=WholeCompiler)(lambda numbers: total(numbers) + doubled(numbers[0]))
    assert whole(NUMBERS) == EXPECTED + 200.0


def test_functions_compiled_by_numbas_own_rules_can_call_parts() -> None:
    plain = njit(lambda numbers: total(numbers))
    assert plain(NUMBERS) == EXPECTED


def test_a_part_stays_the_same_for_a_second_caller() -> None:
    first = njit(pipeline_class=WholeCompiler)(lambda number: shared(number))
    second = njit(pipeline_class=WholeCompiler)(lambda number: shared(number) - below(number))
    assert first(1.0) == 30.0
    compiled = [*shared.overloads.values()]  # type: ignore[attr-defined]
    assert second(1.0) == 27.0
    assert [*shared.overloads.values()] == compiled, "compiled once more"  # type: ignore[attr-defined]


def test_python_cannot_call_a_part() -> None:
    """It has no machine code of its own: an error, not a crash."""
    with refused(KeyError, "functions"):
        shared(1.0)
