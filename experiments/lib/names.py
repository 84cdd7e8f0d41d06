"""Schedulers and devices by name: the registered ones, or a user's own as ``module:Name`` or ``file.py:Name``.

A scheduler's options may follow its name: ``mps(share=50)``, ``file.py:Name(depth=3)``. ``learned`` is the trained
agent that is shipped for the scenario (:mod:`gpusched_env.experiments.lib.trained`). ``tuned:NAME`` is a registered
scheduler with the options that were best on the scenario's training workloads (:mod:`gpusched_env.baselines.tuning`).
``interval:NAME`` is a rule that is asked every 250 us who goes first (:mod:`gpusched_env.baselines.at_intervals`).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

from gpusched_env.baselines.at_intervals import PREFIX as INTERVAL
from gpusched_env.baselines.at_intervals import AtIntervals, rule_and_interval
from gpusched_env.baselines.registered import parse_spec, with_options
from gpusched_env.baselines.registry import describe, honest_names, make_scheduler, scheduler_names
from gpusched_env.baselines.tuning import PREFIX as TUNED
from gpusched_env.baselines.tuning import tuned_names, tuned_spec, tuning_for
from gpusched_env.errors import InputError, did_you_mean, leaving_is_an_error
from gpusched_env.experiments.lib.trained import LEARNED, is_learned, trained
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scheduling.contract import Device, Scheduler, is_clairvoyant

DeviceSource = str | Callable[[], Device]
SchedulerSource = str | Scheduler | Callable[[], Scheduler]
"""A name, an object, or something that makes one (a class, a function without arguments)."""
D = TypeVar("D")

USUAL = (
    *("pass-through", "priority-streams", "time-slicing", "mps", "sjf", "edf", "clockwork", "plan"),
    *("preemptive-priority", "orion", "reef", "lithos"),
)
"""A dozen that differ: what a GPU does by itself, orders of jobs, plans, preemption, care for neighbours, shares."""
USUAL_WITH = {
    "throttle": ("open-loop", "conservative", "gslice", "gpucolo"),
    "synchronise": ("cusync", "cusync-in-forms", "stream-k"),
    "budget": ("unlocked", "bwlock", "static-budgets"),
}
"""Those that belong to the dozen where a scenario allows a command."""
GROUPS = ("default", "all", "tuned")
"""Names that stand for several: what is compared by default, all that know no more than a scheduler can, and all that
tuning changed."""
LONGEST_SHOWN = 60
"""Characters of an unknown name that errors quote."""
DEVICE_METHODS = ("reset", "apply", "advance")


def default_schedulers(scenario: Scenario) -> list[str]:
    """Names to compare where none are given: of :func:`all_schedulers` a dozen that differ, the best with tuned
    options, and the shipped agent.
    """
    shown = [*USUAL, *(name for command in scenario.commands for name in USUAL_WITH.get(command, ()))]
    by_hand = honest_names(scenario.window is not None)
    return [name for name in all_schedulers(scenario) if name in shown or name not in by_hand or scenario.window]


def all_schedulers(scenario: Scenario) -> list[str]:
    """All hand-written ones with their defaults, the best of them with tuned options, and the shipped agent, where
    there are any.

    Clairvoyant ones have to be named.
    """
    from gpusched_env.agents.shipped import is_shipped_for

    found = honest_names(scenario.window is not None)
    tuning = tuning_for(scenario.name)
    if tuning is not None and tuning.chosen not in found:
        found.append(tuning.chosen)
    return [*found, *([LEARNED] if is_shipped_for(scenario) else [])]


def expanded(names: Sequence[str], scenario: Scenario) -> list[str]:
    """``names`` with the members of :data:`GROUPS` on a scenario in place of a group's name."""
    members: dict[str, Callable[[], list[str]]] = {
        "default": lambda: default_schedulers(scenario),
        "all": lambda: all_schedulers(scenario),
        "tuned": lambda: tuned_names(scenario.name),
    }
    return with_groups(names, members)


def with_groups(names: Sequence[str], members: Mapping[str, Callable[[], list[str]]]) -> list[str]:
    """``names`` with the members of :data:`GROUPS` in place of a group's name, but those that stand before them."""
    found: list[str] = []
    for name in names:
        if name in GROUPS:
            found += [member for member in members[name]() if member not in found]
        else:
            found.append(name)
    return found


def check_scheduler(source: SchedulerSource, scenario: Scenario | None = None) -> None:
    """Find out early whether ``source`` is a scheduler and its options fit.

    Args:
        scenario: what it is to run on; a trained agent is asked whether it can.

    Raises:
        InputError: no scheduler of that name; option, import or attribute at fault; another scenario needed.
    """
    if isinstance(source, str) and not is_learned(source):
        name, _ = parse_spec(source.removeprefix(INTERVAL).removeprefix(TUNED))
        if ":" not in name and name not in (known := scheduler_names()):
            raise InputError(
                f"unknown scheduler {name[:LONGEST_SHOWN]!r}; {did_you_mean(name, [*known, LEARNED])} "
                "(one's own: package.module:Name or path/to/file.py:Name)"
            )
    scheduler: Any = new_scheduler(source, scenario)
    if scenario is not None and is_learned(source):
        scheduler.prepare(scenario)


def new_scheduler(source: SchedulerSource, scenario: Scenario | None = None) -> Scheduler:
    """A scheduler from its name, class, function or object.

    Args:
        scenario: what it is for; tuned options are this scenario's.
    """
    if isinstance(source, str) and source.startswith(INTERVAL):
        rule, interval_us = rule_and_interval(source)
        return AtIntervals(new_scheduler(rule, scenario), interval_us)
    if isinstance(source, str) and source.startswith(TUNED):
        if scenario is None:
            raise InputError(f"{source}: tuned options are a scenario's own; write them out: NAME(OPTION=VALUE,...)")
        source = tuned_spec(source, scenario.name)
    made: Any = source
    if isinstance(source, str):
        if is_learned(source):
            return trained(source)
        name, options = parse_spec(source)
        if ":" not in name:
            return make_scheduler(source)
        made = _load(name)
        _check_referred(made, name, "scheduler", ("reset", "decide"))
        if options:
            made = with_options(made, name, options)
    if isinstance(made, type) or (callable(made) and not isinstance(made, Scheduler)):
        with leaving_is_an_error(f"{source!r} as it was made"):
            made = made()
    if not isinstance(made, Scheduler):
        raise InputError(f"{source!r} is no scheduler: it must have the methods reset(knowledge, rng) and decide(view)")
    return made


def _check_referred(made: Any, reference: str, role: str, methods: Sequence[str]) -> None:
    """Check what a name leads to: only what can be a scheduler or a device is called, not ``os:system``.

    Raises:
        InputError: it is neither a class with the methods, nor such an object, nor a function in one's own file.
    """
    if all(callable(getattr(made, method, None)) for method in methods):
        return
    if not (isinstance(made, FunctionType) and reference.rpartition(":")[0].endswith(".py")):
        raise InputError(
            f"{reference!r} is no {role}: it must be a class with the methods {', '.join(methods)}, or in a file of "
            "one's own a function that makes one"
        )


def name_of(source: SchedulerSource) -> str:
    """What a scheduler is called: by its name, or that of its class or function."""
    return source if isinstance(source, str) else str(getattr(source, "__name__", type(source).__name__))


def describe_scheduler(source: SchedulerSource) -> str:
    """One line about a scheduler."""
    target: Any = source
    if is_learned(source):
        return trained(source).describe()
    if isinstance(source, str) and source.startswith(INTERVAL):
        rule, interval_us = rule_and_interval(source)
        return f"Who goes first is asked every {interval_us:g} us: {describe_scheduler(rule)}"
    if isinstance(source, str):
        name, _ = parse_spec(source.removeprefix(TUNED))
        if ":" not in name:
            tuned = " With tuned options." if source.startswith(TUNED) else ""
            return f"{describe(name)}{tuned}"
        target = _load(name)
    documented = target if isinstance(target, type) or not isinstance(target, Scheduler) else type(target)
    lines = (documented.__doc__ or "").strip().splitlines()
    return lines[0].replace("``", "") if lines else ""


def sees_truth(source: SchedulerSource) -> bool:
    """Whether a scheduler is told the truth; its label is marked wherever results are shown."""
    plain = source.removeprefix(TUNED) if isinstance(source, str) else source
    return not is_learned(source) and is_clairvoyant(new_scheduler(plain))


def new_device(source: DeviceSource) -> Device:
    """A device from its name or factory.

    Raises:
        InputError: no device of that name.
    """
    from gpusched_env.devices import device_names, make_device

    def shipped(name: str) -> Device:
        if name not in device_names():
            raise InputError(f"unknown device {name!r}; {did_you_mean(name, device_names())}")
        return make_device(name)

    return device_from(source, shipped)


def device_from(source: str | Callable[[], D], shipped: Callable[[str], D]) -> D:
    """A device of any game, from a factory, from a reference to a class or function, or by its name from ``shipped``.

    Raises:
        InputError: a reference leads to no device.
    """
    if not isinstance(source, str):
        return source()
    if ":" not in source:
        return shipped(source)
    made = _load(source)
    _check_referred(made, source, "device", DEVICE_METHODS)
    device: D = made()
    return device


def is_own_or_listed(source: Any) -> bool:
    """Whether ``source`` is a scheduler, not a trained model: an object or what makes one, ``file.py:Name``, a name."""
    if not isinstance(source, str | Path):
        return True
    text = str(source)
    if is_learned(text) or Path(text).exists():
        return False
    name = text.partition("(")[0]
    return name.endswith(".py") or ".py:" in name or name in scheduler_names()


def _load(reference: str) -> Any:
    place, _, name = reference.rpartition(":")
    if place.endswith(".py"):
        module = load_file(Path(place), reference)
    else:
        try:
            module = importlib.import_module(place)
        except (ImportError, TypeError, ValueError) as error:
            raise InputError(f"{reference!r}: cannot import {place!r} ({error})") from error
    if not hasattr(module, name):
        public = [n for n in vars(module) if not n.startswith("_")]
        raise InputError(f"{reference!r}: {place} has no {name!r}; {did_you_mean(name, public)}")
    return getattr(module, name)


def load_file(path: Path, reference: str) -> Any:
    """The module in a file of one's own, run once for each time that it was written.

    Raises:
        InputError: there is none, or it fails; names ``reference``.
    """
    # An edited file is another module: worker processes and notebooks outlive an edit.
    written = path.stat().st_mtime_ns if path.is_file() else 0
    name = f"gpusched_file_{path.stem}_{written}"
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == str(path.resolve()):
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if not path.is_file() or spec is None or spec.loader is None:
        raise InputError(f"{reference!r}: no such file: {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with leaving_is_an_error(f"{path} as it was loaded"):
            spec.loader.exec_module(module)
    except (ImportError, SyntaxError, InputError) as error:
        del sys.modules[name]
        raise InputError(f"{reference!r}: cannot load {path} ({error})") from error
    return module
