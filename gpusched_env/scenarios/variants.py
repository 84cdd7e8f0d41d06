"""The variants of a scenario that its workload sets describe: whole scenarios, or the changes that make them."""

from __future__ import annotations

import re
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
    return [
        replaced(scenario, {name: msgspec.to_builtins(new) for name, new in variant.items()}) for variant in variants
    ]


def replaced(scenario: Scenario, tenants: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What :func:`~gpusched_env.scenarios.scenario.override` takes for substitutes of tenants.

    Args:
        scenario: whose they are.
        tenants: by name, fields of :class:`~gpusched_env.scenarios.workload_sets.Substitute`.
    """
    change: dict[str, Any] = {"tenants": {name: dict(fields) for name, fields in tenants.items()}}
    cores = msgspec.to_builtins(scenario.cores)
    for fields in change["tenants"].values():
        if "neighbours" in fields:
            left = iter(fields.pop("neighbours"))
            rows = [core if core["host"] is not None else {**core, "processes": next(left)} for core in cores["cores"]]
            change["cores"] = cores = {**cores, "cores": rows}
    return change
