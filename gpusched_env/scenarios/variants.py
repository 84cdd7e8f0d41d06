"""The variants of a scenario that its workload sets describe: whole scenarios, or the changes that make them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import Scenario, override
from gpusched_env.scenarios.workload_sets import SetName, Variant

_VARIANT = re.compile(r"-(train|held_out)-\d+$")
"""What :func:`scenario_variants` puts behind a scenario's name."""


def family(name: str) -> str:
    """The name of the scenario that ``name`` is, or is a variant of."""
    return _VARIANT.sub("", name)


def scenario_variants(scenario: Scenario, which: SetName) -> list[Scenario]:
    """Every variant of one workload set, in the file's order, as a scenario of its own.

    A variant is called ``<scenario>-<set>-<number>``, its summary says what replaces what, and it has no
    workload sets itself. Tenants, commands and priorities are those of the scenario, so that observations and
    actions keep their shapes.

    Raises:
        InputError: the scenario has no workload sets, or ``which`` is not one of them.
    """
    changes = variant_changes(scenario, which)
    found = []
    for i, change in enumerate(changes):
        variant = override(scenario, **change)
        given = ", ".join(f"{name}: {fields['workload']}" for name, fields in change["tenants"].items())
        found.append(
            msgspec.structs.replace(
                variant,
                name=f"{scenario.name}-{which}-{i}",
                summary=f"{scenario.summary}; {given}" if given else scenario.summary,
                workload_sets=None,
            )
        )
    return found


def variant_changes(scenario: Scenario, which: SetName) -> list[dict[str, Any]]:
    """What :func:`~gpusched_env.scenarios.scenario.override` takes to make each variant of a workload set.

    An environment of the scenario takes the same for an episode: ``env.reset(options={"scenario": change})``,
    with a ``change`` drawn anew for each episode in domain randomisation.

    Raises:
        InputError: as :func:`scenario_variants`.
    """
    sets = scenario.workload_sets
    if which not in ("train", "held_out"):
        raise InputError(f"workload set {which!r} is not known; known are train and held_out")
    if sets is None:
        raise InputError(f"scenario {scenario.name} has no workload_sets")
    variants: tuple[Variant, ...] = getattr(sets, which)
    return [_change(scenario, variant) for variant in variants]


def _change(scenario: Scenario, variant: Variant) -> dict[str, Any]:
    tenants = {name: msgspec.to_builtins(new) for name, new in variant.items()}
    change: dict[str, Any] = {"tenants": tenants}
    for fields in tenants.values():
        neighbours = fields.pop("neighbours", None)
        if neighbours is not None:
            assert scenario.cores is not None, "checked with the sets"
            change["cores"] = beside(change.get("cores", msgspec.to_builtins(scenario.cores)), neighbours)
    return change


def beside(cores: dict[str, Any], neighbours: Sequence[Any]) -> dict[str, Any]:
    """``cores`` of a scenario, as plain data, with these processes on those that run no tenant's host."""
    left = iter(neighbours)
    rows = [core if core["host"] is not None else {**core, "processes": next(left)} for core in cores["cores"]]
    return {**cores, "cores": rows}
