"""How long problems of task queues take in the form that costs are measured by."""

from __future__ import annotations

import functools

from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.problem import Form
from gpusched_env.games.task_queues.session import TaskSession
from gpusched_env.games.task_queues.suite import kept_problem


@functools.lru_cache(64)
def level_by_level_us(name: str, seed: int, gpus: int = 1) -> float:
    """How long a problem takes bulk-synchronously with 32 tasks a block, on so many GPUs."""
    session = TaskSession(kept_problem(name, seed, gpus), make_task_device("compiled"))
    session.begin(Form("bulk-synchronous"))
    return session.finish() / 1e6
