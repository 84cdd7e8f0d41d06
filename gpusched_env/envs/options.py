"""Scenario overrides for one episode, given to ``reset``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpusched_env.envs.actions import ActionLayout
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.scenarios.scenario import Scenario, override

KNOWN = ("scenario",)


def episode_scenario(base: Scenario, options: dict[str, Any], layout: ActionLayout) -> Scenario:
    """``base`` with the changes of ``options["scenario"]``, as long as it still fits the spaces.

    Raises:
        InputError: unknown option, invalid value, more tenants than slots, or another action space.
    """
    if not isinstance(options, Mapping):
        raise InputError(f"reset options must be a mapping, got {options!r}")
    for key in options:
        if key not in KNOWN:
            raise InputError(f"reset option {key!r} is not known; {did_you_mean(str(key), KNOWN)}")
    scenario = override(base, **scenario_fields(options.get("scenario", {}), "reset option scenario"))
    if len(scenario.tenants) > layout.slots:
        raise InputError(
            f"reset option scenario: {len(scenario.tenants)} tenants do not fit into {layout.slots} slots; "
            "make the environment with more slots"
        )
    theirs = layout.in_scenario(scenario)
    if theirs != layout or ("reject" in scenario.commands) != ("reject" in base.commands):
        raise InputError(
            "reset option scenario: commands, stream_priorities, streams, preemption and lookahead "
            "shape the action space; give them to gym.make instead"
        )
    return scenario


def scenario_fields(fields: Any, what: str) -> Mapping[str, Any]:
    """``fields`` if they can be those of a scenario, by name; ``what``: the argument that has them.

    Raises:
        InputError: they cannot.
    """
    if not isinstance(fields, Mapping) or not all(isinstance(name, str) for name in fields):
        raise InputError(f"{what} must be a mapping of scenario fields, by their names, got {fields!r}")
    return fields
