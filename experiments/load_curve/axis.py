"""Which field of a scenario is varied, and over which values: ``load=0.6:1.5:0.1``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.experiments.settings import replaced
from gpusched_env.scenarios.load import RATES
from gpusched_env.scenarios.scenario import Scenario

OPTION = "--sweep"
RIGHT = "expected FIELD=START:STOP:STEP, such as load=0.6:1.5:0.1, or FIELD=A,B,..., such as load=0.6,0.8,1.0"
MOST = 200
"""Values at most: a step that is much too small is a slip of the pen."""
ASKS_MORE = ("load", *RATES)
"""Fields whose higher values ask more of the GPU."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A field and its values, ascending, at least two."""

    field: str
    """A path as ``--set`` takes it: ``load``, ``tenants.search.arrivals.rate_per_s``."""
    values: tuple[float, ...]

    @property
    def asks_more(self) -> bool:
        """Whether higher values ask more of the GPU, so that there is a capacity."""
        return self.field.rpartition(".")[2] in ASKS_MORE

    def at(self, scenario: Scenario, value: float) -> Scenario:
        """``scenario`` with the field at ``value``.

        Raises:
            InputError: it has no such field, or not with such a value.
        """
        number: float = int(value) if value.is_integer() else value
        return replaced(scenario, [(self.field, number)], OPTION)


def parse_axis(text: str) -> Axis:
    """What stands behind ``--sweep``.

    Raises:
        InputError: it is of another form.
    """
    field, equals, values = text.partition("=")
    if not equals or not field:
        raise InputError(f"{OPTION} {text}: {RIGHT}")
    if ":" not in values:
        return _axis(field, [_number(part, text) for part in values.split(",")], f"{OPTION} {text}")
    parts = values.split(":")
    if len(parts) != 3:
        missing = "the step is missing" if len(parts) == 2 else f"{len(parts)} parts where 3 belong"
        raise InputError(f"{OPTION} {text}: {missing}; {RIGHT}")
    start, stop, step = (_number(part, text) for part in parts)
    if step <= 0.0 or stop < start:
        raise InputError(f"{OPTION} {text}: the step must be above 0 and STOP not below START; {RIGHT}")
    steps = math.floor((stop - start) / step + 1e-9)
    # As it would be written by hand: 0.6 and twice 0.1 are 0.8, not 0.8000000000000000444.
    found = [round(start + step * i, 10) for i in range(min(steps, MOST) + 1)]
    return _axis(field, found, f"{OPTION} {text}")


def axis_of(sweep: Mapping[str, Sequence[float]]) -> Axis:
    """What ``compare(sweep={"load": [0.6, 0.8]})`` means.

    Raises:
        InputError: it is of another form.
    """
    right = 'expected one field with its values, such as sweep={"load": [0.6, 0.8, 1.0]}'
    if len(sweep) != 1:
        raise InputError(f"sweep={sweep!r}: {right}")
    ((field, values),) = sweep.items()
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError) as error:
        raise InputError(f"sweep={sweep!r}: {right} ({error})") from error
    return _axis(field, numbers, f"sweep={sweep!r}")


def _axis(field: str, values: Sequence[float], where: str) -> Axis:
    if not all(map(math.isfinite, values)) or len(set(values)) < max(2, len(values)):
        raise InputError(f"{where}: at least two values are needed, all of them finite and different")
    if len(values) > MOST:
        raise InputError(f"{where}: more than {MOST} values; take a larger step")
    return Axis(field, tuple(sorted(values)))


def _number(part: str, text: Any) -> float:
    try:
        return float(part)
    except ValueError as error:
        raise InputError(f"{OPTION} {text}: {part!r} is no number; {RIGHT}") from error
