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
