"""Schedulers of child launches by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from gpusched_env.baselines.dynamic_parallelism.aggregation import Aggregation
from gpusched_env.baselines.dynamic_parallelism.dtbl import Dtbl
from gpusched_env.baselines.dynamic_parallelism.offline_search import OfflineSearch
from gpusched_env.baselines.dynamic_parallelism.spawn import SpawnScheduler
from gpusched_env.baselines.dynamic_parallelism.threshold import Flat, Threshold
from gpusched_env.baselines.spec import options_of, parse_spec, with_options
from gpusched_env.dynamic_parallelism.scheduler import LaunchScheduler
from gpusched_env.errors import InputError, did_you_mean

_SCHEDULERS: Final[dict[str, Callable[..., LaunchScheduler]]] = {
    "flat": Flat,
    "baseline-dp": Threshold,
    "offline-search": OfflineSearch,
    "spawn": SpawnScheduler,
    "dtbl": Dtbl,
    "aggregation": Aggregation,
}


CLAIRVOYANT: Final = frozenset(name for name, make in _SCHEDULERS.items() if getattr(make, "clairvoyant", False))
"""Those that try the application beforehand."""


def launch_scheduler_names() -> list[str]:
    """Names that :func:`make_launch_scheduler` knows."""
    return list(_SCHEDULERS)


def describe_launch_scheduler(name: str) -> str:
    """One line on what a scheduler does.

    Raises:
        InputError: no scheduler of that name.
    """
    return (inspect.getdoc(_find(name)) or "").partition("\n")[0]


def launch_scheduler_options(name: str) -> dict[str, Any]:
    """The options of a scheduler and their defaults.

    Raises:
        InputError: no scheduler of that name.
    """
    return options_of(_find(name))


def launch_scheduler_class(name: str) -> Callable[..., LaunchScheduler]:
    """The class or function that makes a scheduler.

    Raises:
        InputError: no scheduler of that name.
    """
    return _find(name)


def make_launch_scheduler(spec: str, **options: Any) -> LaunchScheduler:
    """A new scheduler of child launches.

    Args:
        spec: one of :func:`launch_scheduler_names`, which options may follow: ``spawn(warp_time=residency)``.
        options: more of them, as keyword arguments.

    Raises:
        InputError: no scheduler of that name, or an option that it does not have or accept.
    """
    name, given = parse_spec(spec)
    return with_options(_find(name), name, {**given, **options})


def _find(name: str) -> Callable[..., LaunchScheduler]:
    if name not in _SCHEDULERS:
        raise InputError(f"unknown scheduler of child launches {name!r}; {did_you_mean(name, _SCHEDULERS)}")
    return _SCHEDULERS[name]
