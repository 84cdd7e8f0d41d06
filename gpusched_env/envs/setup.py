"""What single and vector environments are made of, from the arguments that they share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpusched_env.envs.actions import ActionLayout
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import Scenario, load_scenario, override


def resolve_scenario(scenario: str | Path | Scenario, overrides: Mapping[str, Any]) -> Scenario:
    """The scenario that an environment is made for: a shipped one by name, a YAML file or an object, with changes.

    Raises:
        InputError: no such scenario, or an override that is not valid.
    """
    base = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    return override(base, **overrides) if overrides else base


def lay_out(scenario: Scenario, *, slots: int | None, running_slots: int) -> ActionLayout:
    """The action space of an environment; its observations have the same rows.

    Args:
        slots: tenant rows; ``None``: as many as ``scenario`` has tenants.
        running_slots: rows for launched kernels.

    Raises:
        InputError: too few rows, or a scenario that offers no launches.
    """
    tenants = len(scenario.tenants)
    if running_slots < 1:
        raise InputError(f"running_slots is {running_slots}, must be at least 1")
    if slots is not None and slots < tenants:
        raise InputError(f"slots is {slots}, but scenario {scenario.name} has {tenants} tenants")
    return ActionLayout.of(scenario, slots if slots is not None else tenants, running_slots)


def check_wait(wait_us: float) -> float:
    """``wait_us`` if it can be the longest wait of action 0.

    Raises:
        InputError: it is not positive.
    """
    if not wait_us > 0:
        raise InputError(f"wait_us is {wait_us}, must be positive")
    return wait_us
