"""Schedulers of child launches by name, written by hand, tuned (``tuned:NAME``) or learned; devices by name."""

from __future__ import annotations

from collections.abc import Callable

from gpusched_env.agents.shipped import shipped_names
from gpusched_env.baselines.tuning import PREFIX as TUNED
from gpusched_env.baselines.tuning import tuned_names, tuned_spec
from gpusched_env.experiments.lib.names import device_from
from gpusched_env.experiments.lib.trained import LEARNED, agent_file, is_learned
from gpusched_env.games.child_launches.agents.learned import NAME, LearnedLaunches
from gpusched_env.games.child_launches.baselines.registry import LAUNCH_SCHEDULERS, make_launch_scheduler
from gpusched_env.games.child_launches.device import LaunchDevice
from gpusched_env.games.child_launches.scheduler import LaunchScheduler


def new_launch_scheduler(name: str) -> LaunchScheduler:
    """A scheduler from its name.

    Raises:
        InputError: there is none, or no agent.
    """
    if is_learned(name):
        return LearnedLaunches(agent_file(name))
    return make_launch_scheduler(tuned_spec(name, NAME) if name.startswith(TUNED) else name)


def default_launch_schedulers() -> list[str]:
    """All hand-written ones, those with tuned options, and the shipped agent if there is one."""
    shipped = [LEARNED] if NAME in shipped_names() else []
    return [*LAUNCH_SCHEDULERS.names(), *tuned_names(NAME), *shipped]


def new_launch_device(source: str | Callable[[], LaunchDevice]) -> LaunchDevice:
    """A device from its name or factory.

    Raises:
        InputError: no device of that name.
    """
    from gpusched_env.games.child_launches.devices import make_launch_device

    return device_from(source, make_launch_device)
