"""Schedulers of task queues by name."""

from __future__ import annotations

from typing import Final

from gpusched_env.baselines.registered import Registered
from gpusched_env.games.task_queues.baselines.forms import (
    BulkSynchronous,
    ByApplication,
    Discrete,
    DiscretePriority,
    FrontierSwitch,
    Guideline,
    OfflineBest,
    PersistentBlocks,
    PersistentWarps,
)
from gpusched_env.games.task_queues.session import TaskScheduler

TASK_SCHEDULERS: Final = Registered[TaskScheduler](
    "scheduler of task queues",
    {
        "bulk-synchronous": BulkSynchronous,
        "atos-persistent-block": PersistentBlocks,
        "atos-persistent-warp": PersistentWarps,
        "atos-discrete": Discrete,
        "atos-discrete-priority": DiscretePriority,
        "atos-guideline": Guideline,
        "by-application": ByApplication,
        "frontier-switch": FrontierSwitch,
        "offline-best": OfflineBest,
    },
)
