"""The names of generated workloads, and the parameters in them: ``irregular(family=physics,seed=3)``."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

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


NAME: Final = "irregular"


class IrregularGraph(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to generate. What is left out is drawn from the seed."""

    family: Literal["physics", "dynamic", "cells", "wired"]
    """``physics``: steps of articulated bodies, chains of tiny kernels that add to shared state; ``dynamic``: a network
    that takes a few branches a layer, others for each input; ``cells``: searched cells of parallel separable
    convolutions that join; ``wired``: layers that sum a random few of those before."""
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    kernels: Annotated[int, Meta(ge=8, le=10_000)] | None = None
    """Number of kernels of an iteration; drawn from 100 to 450."""
    width: Annotated[int, Meta(ge=1, le=32)] | None = None
    """What may run side by side: independent sums of forces, branches, pairs of chains a cell, or layers within reach
    of the next; drawn from 1 to 8."""
    small: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Share of kernels of at most 40 blocks; drawn around that of the family's recordings."""


def is_irregular(name: str) -> bool:
    """Whether a workload's name is that of a generated one."""
    return name.partition("(")[0].strip() == NAME


def irregular_graph(name: str) -> IrregularGraph:
    """What ``irregular(family=physics,seed=3)`` asks for.

    Raises:
        InputError: it cannot be read, or a parameter is unknown, missing or out of range.
    """
    return parameters_of(name, IrregularGraph, f"{NAME}(family=physics,seed=3)")
