"""The parameters in the names of generated workloads: ``irregular(family=physics,seed=3)``."""

from __future__ import annotations

from typing import TypeVar

from gpusched_env.errors import InputError
from gpusched_env.reading import checked, parse_yaml

T = TypeVar("T")


def parameters_of(name: str, kind: type[T], example: str) -> T:
    """What a generated workload's name asks for.

    Args:
        name: of the workload.
        kind: a :class:`msgspec.Struct` of the parameters.
        example: a name that can be read, for errors.

    Raises:
        InputError: it cannot be read, or a parameter is unknown, missing or out of range.
    """
    where = f"workload {name!r}"
    inside = name.strip().removeprefix(example.partition("(")[0]).strip()
    if not (inside.startswith("(") and inside.endswith(")")):
        raise InputError(f"{where}: expected {example}, with parentheses around its parameters")
    given = {}
    for part in filter(None, (part.strip() for part in inside[1:-1].split(","))):
        parameter, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise InputError(f"{where}: {part!r} is no parameter; expected NAME=VALUE, such as seed=3")
        if parameter in given:
            raise InputError(f"{where}: {parameter} is given twice")
        given[parameter] = parse_yaml(value, where)
    return checked(given, kind, where)
