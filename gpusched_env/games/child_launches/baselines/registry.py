"""Schedulers of child launches by name."""

from __future__ import annotations

from typing import Final

from gpusched_env.baselines.registered import Registered
from gpusched_env.games.child_launches.baselines.aggregation import Aggregation
from gpusched_env.games.child_launches.baselines.dtbl import Dtbl
from gpusched_env.games.child_launches.baselines.spawn import SpawnScheduler
from gpusched_env.games.child_launches.baselines.threshold import Flat, OfflineSearch, Threshold
from gpusched_env.games.child_launches.scheduler import LaunchScheduler

LAUNCH_SCHEDULERS: Final = Registered[LaunchScheduler](
    "scheduler of child launches",
    {
        "flat": Flat,
        "baseline-dp": Threshold,
        "offline-search": OfflineSearch,
        "spawn": SpawnScheduler,
        "dtbl": Dtbl,
        "aggregation": Aggregation,
    },
)
make_launch_scheduler: Final = LAUNCH_SCHEDULERS.make


def honest_launch_names(*, hardware: bool = True) -> list[str]:
    """Schedulers that do not try the application beforehand.

    ``hardware``: also those that need hardware which no GPU of today has.
    """
    honest = [name for name in LAUNCH_SCHEDULERS.names() if not LAUNCH_SCHEDULERS.is_clairvoyant(name)]
    return [name for name in honest if hardware or not getattr(LAUNCH_SCHEDULERS.maker(name), "hardware", False)]
