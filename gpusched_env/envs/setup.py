"""What environments are made of, from the arguments that they share, and what ``reset`` changes for one episode."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from gpusched_env.envs.actions import ActionLayout
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.reading import LONGEST_US
from gpusched_env.scenarios.scenario import Scenario, load_scenario, override
from gpusched_env.scheduling.timeline import DETAILS

MOST_ROWS: Final = 65_536
"""The most rows of a table of observations."""
ENV_BYTES: Final = 64 * 1024
"""What an environment of a small scenario takes at least."""


class Offered(NamedTuple):
    """What an environment is made for."""

    scenario: Scenario
    """The scenario, with the commands that can be given in it."""
    interval_us: float
    """How long a decision stands; 0: every launch is one."""
    rejects: bool
    """Whether an agent may reject jobs, or only a dispatcher."""


def offered(scenario: str | Path | Scenario, overrides: Mapping[str, Any], interval_us: Any) -> Offered:
    """What an environment offers of a scenario: a shipped one by name, a YAML file or an object, with changes.

    Without ``commands`` among the changes an agent launches, synchronises tiles, chooses forms and does nothing else:
    at random it would confine, preempt and reject until hardly a job is done, and nothing can be learned from that. A
    dispatcher rejects as it does always. Where decisions stand for an interval and tenants can be throttled, an agent
    throttles and confines those without objectives; where budgets of CPU cores can be set, it sets them.

    Args:
        interval_us: ``None``: the scenario's.

    Raises:
        InputError: no such scenario or interval, or a change that is not valid.
    """
    base = load_scenario(scenario, **overrides)
    interval_us = check_interval(base.interval_us if interval_us is None else interval_us)
    if "commands" in overrides or "launch" not in base.commands:
        return Offered(base, interval_us, rejects=True)
    usual: tuple[str, ...] = ("launch", "synchronise", "reshape")
    if interval_us > 0.0:
        usual = ("launch", "reject", "budget")
        if "throttle" in base.commands:
            usual = (*usual, "partition", "throttle")
    commands = tuple(command for command in base.commands if command in usual)
    return Offered(override(base, commands=commands), interval_us, rejects=False)


def lay_out(
    scenario: Scenario,
    *,
    slots: Any,
    running_slots: Any,
    interval_us: Any = 0.0,
    rejects: bool = True,
    futures: bool = False,
) -> ActionLayout:
    """The action space of an environment; its observations have the same rows.

    Args:
        slots: tenant rows; ``None``: as many as ``scenario`` has tenants.
        running_slots: rows for launched kernels.
        interval_us: how long a decision stands; 0: every launch is one.
        rejects: whether an agent may reject jobs, where ``scenario`` offers that.
        futures: whether observations tell what is lost in sampled futures, where decisions stand for an interval.

    Raises:
        InputError: too few rows, no such interval, ``futures`` is no bool, or a scenario that offers no launches.
    """
    tenants = len(scenario.tenants)
    for name, rows in (("slots", slots), ("running_slots", running_slots)):
        if rows is not None and not (is_integer(rows) and 1 <= rows <= MOST_ROWS):
            raise InputError(f"{name} is {rows!r}, must be an integer from 1 to {MOST_ROWS}")
    if slots is not None and slots < tenants:
        raise InputError(f"slots is {slots}, but scenario {scenario.name} has {tenants} tenants")
    if not isinstance(futures, bool):
        raise InputError(f"futures is {futures!r}, must be True or False")
    return ActionLayout.of(
        scenario,
        slots if slots is not None else tenants,
        running_slots,
        check_interval(interval_us),
        rejects=rejects,
        futures=futures,
    )


def check_interval(interval_us: Any) -> float:
    """``interval_us`` if a decision can stand so long; 0: every launch is one.

    Raises:
        InputError: it is no number of microseconds from 0.
    """
    if not (isinstance(interval_us, float | int | np.number) and 0 <= interval_us <= LONGEST_US):
        raise InputError(
            f"interval_us is {interval_us!r}, must be microseconds, at most {LONGEST_US:g}, or 0: every launch"
        )
    return float(interval_us)


def check_wait(wait_us: Any) -> float:
    """``wait_us`` if it can be the longest wait of action 0; never without an end, which would be a deadlock.

    Raises:
        InputError: it is not positive.
    """
    if not (isinstance(wait_us, float | int | np.number) and wait_us > 0):
        raise InputError(f"wait_us is {wait_us!r}, must be a positive number of microseconds")
    return min(float(wait_us), LONGEST_US)


def check_record(record: object) -> None:
    """Raises ``InputError`` if a timeline cannot keep ``record`` (``None``: what the environment chooses)."""
    if record is not None and record not in DETAILS:
        raise InputError(f"record is {record!r}; {did_you_mean(str(record), DETAILS)}")


def check_device(device: object) -> None:
    """Raises ``InputError`` if an object has not the methods of a device."""
    missing = [name for name in ("reset", "apply", "advance", "view") if not hasattr(device, name)]
    if missing:
        raise InputError(f"device is {device!r}, which has no {missing[0]}(): give a name or a device")


def check_count(num_envs: Any) -> None:
    """Raises ``InputError`` if there cannot be so many environments, or memory does not hold them."""
    if not is_integer(num_envs) or num_envs < 1:
        raise InputError(f"num_envs is {num_envs!r}, must be an integer from 1")
    memory = memory_bytes()
    if num_envs * ENV_BYTES > memory:
        raise InputError(
            f"num_envs is {num_envs}, but one takes {ENV_BYTES // 1024} KiB or more: this machine's memory holds "
            f"{memory // ENV_BYTES:,} at most"
        )


def is_integer(value: object) -> bool:
    """Whether a number is whole, as counts are; ``True`` is none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def memory_bytes() -> int:
    """Memory of this machine; 2^40 where it does not say."""
    names = getattr(os, "sysconf_names", {})
    if not {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(names):
        return 2**40
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


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
