"""Hand-written schedulers by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from gpusched_env.baselines.exclusive import Exclusive
from gpusched_env.baselines.fifo import Fifo
from gpusched_env.baselines.mps import Mps
from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.baselines.priority_streams import PriorityStreams
from gpusched_env.baselines.random_choice import RandomChoice
from gpusched_env.baselines.sjf import ShortestJobFirst
from gpusched_env.baselines.time_slicing import TimeSlicing
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.scheduling.scheduler import Scheduler

_SCHEDULERS: dict[str, Callable[..., Scheduler]] = {
    "pass-through": PassThrough,
    "priority-streams": PriorityStreams,
    "time-slicing": TimeSlicing,
    "mps": Mps,
    "exclusive": Exclusive,
    "fifo": Fifo,
    "sjf": ShortestJobFirst,
    "random": RandomChoice,
}


def scheduler_names() -> list[str]:
    """Names that :func:`make_scheduler` knows: the GPU's own mechanisms first, then policies."""
    return list(_SCHEDULERS)


def describe(name: str) -> str:
    """One line on what a scheduler does.

    Raises:
        InputError: no scheduler of that name.
    """
    return (inspect.getdoc(_find(name)) or "").partition("\n")[0]


def make_scheduler(name: str, **options: Any) -> Scheduler:
    """A new scheduler.

    Args:
        name: one of :func:`scheduler_names`.
        options: keyword arguments of the scheduler's class (``share`` of ``mps``).

    Raises:
        InputError: no scheduler of that name, or an option that it does not have or accept.
    """
    make = _find(name)
    known = list(inspect.signature(make).parameters)
    for option in options:
        if option not in known:
            hint = did_you_mean(option, known) if known else "it has no options"
            raise InputError(f"scheduler {name!r} has no option {option!r}; {hint}")
    return make(**options)


def _find(name: str) -> Callable[..., Scheduler]:
    if name not in _SCHEDULERS:
        raise InputError(f"unknown scheduler {name!r}; {did_you_mean(name, _SCHEDULERS)}")
    return _SCHEDULERS[name]
