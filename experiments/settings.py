"""``--set key=value``: settings as text, and dotted paths into a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.reading import parse_yaml
from gpusched_env.scenarios.scenario import Scenario, override


def parse_settings(settings: Sequence[str]) -> list[tuple[str, Any]]:
    """Keys and values of settings ``KEY=VALUE``; values are YAML.

    Raises:
        InputError: one of another form.
    """
    found = []
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise InputError(f"--set {setting}: expected KEY=VALUE")
        found.append((key, parse_yaml(text, f"--set {setting}")))
    return found


def apply_settings(scenario: Scenario, settings: Sequence[str]) -> Scenario:
    """``scenario`` with fields replaced.

    Args:
        scenario: left as it is.
        settings: ``path=value`` with a YAML value. The path's parts are field names, separated by dots;
            ``tenants.NAME`` is the tenant of that name, a number is a position in a list:
            ``horizon_us=2e6``, ``reward.energy=0.1``, ``tenants.inference.arrivals.rate_per_s=200``,
            ``tenants.inference.arrivals={kind: closed-loop}``.

    Raises:
        InputError: no ``=``, a path that leads nowhere, or a value that does not validate.
    """
    return replace_fields(scenario, parse_settings(settings), "--set")


def replace_fields(scenario: Scenario, changes: Sequence[tuple[str, Any]], option: str) -> Scenario:
    """``scenario`` with the fields at these paths replaced; ``option`` is named in errors.

    Raises:
        InputError: as from :func:`apply_settings`.
    """
    # Lists, where the scenario has tuples: their items can be replaced.
    data = msgspec.json.decode(msgspec.json.encode(scenario))
    changed = set()
    for path, value in changes:
        parts = path.split(".")
        holder: Any = data
        where = f"{option} {path}={value}"
        for depth, part in enumerate(parts[:-1]):
            holder = holder[_key(holder, part, parts[:depth], where)]
        holder[_key(holder, parts[-1], parts[:-1], where)] = value
        changed.add(parts[0])
    return override(scenario, **{key: data[key] for key in sorted(changed)})


def _key(holder: Any, part: str, above: Sequence[str], where: str) -> str | int:
    """The key or position of ``holder`` that ``part`` means; ``where``: for errors."""
    place = ".".join(above) or "the scenario"
    if isinstance(holder, dict):
        # Which fields an arrival process has depends on its kind: the scenario's own check decides.
        if part in holder or "kind" in holder:
            return part
        raise InputError(f"{where}: {place} has no {part!r}; {did_you_mean(part, holder)}")
    if isinstance(holder, (list, tuple)):
        names = [item["name"] for item in holder if isinstance(item, dict) and "name" in item]
        if part in names:
            return names.index(part)
        if part.isdigit() and int(part) < len(holder):
            return int(part)
        hint = did_you_mean(part, names) if names else f"its length is {len(holder)}"
        raise InputError(f"{where}: {place} has no {part!r}; {hint}")
    raise InputError(f"{where}: {place} is the value {holder!r}, it has no {part!r}")
