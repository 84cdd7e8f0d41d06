"""Schedulers of child launches by name, written by hand, tuned (``tuned:NAME``) or learned; devices by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gpusched_env.experiments.games.own import NamedSchedulers
from gpusched_env.experiments.lib.names import device_from
from gpusched_env.games.child_launches.agents.learned import NAME, LearnedLaunches
from gpusched_env.games.child_launches.baselines.registry import LAUNCH_SCHEDULERS
from gpusched_env.games.child_launches.device import LaunchDevice
from gpusched_env.games.child_launches.scheduler import LaunchScheduler

NAMED: Final = NamedSchedulers[LaunchScheduler](NAME, LAUNCH_SCHEDULERS, LearnedLaunches)
new_launch_scheduler: Final = NAMED.new


def new_launch_device(source: str | Callable[[], LaunchDevice]) -> LaunchDevice:
    """A device from its name or factory.

    Raises:
        InputError: no device of that name.
    """
    from gpusched_env.games.child_launches.devices import make_launch_device

    return device_from(source, make_launch_device)
