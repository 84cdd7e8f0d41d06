"""Schedulers of child launches by name: hand-written ones, ``tuned:NAME``, ``learned``, ``learned:PATH``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpusched_env.agents.dynamic_parallelism.learned import NAME, LearnedLaunches
from gpusched_env.agents.training.folder import policy_file
from gpusched_env.baselines.dynamic_parallelism.registry import make_launch_scheduler
from gpusched_env.baselines.tuning import PREFIX as TUNED
from gpusched_env.baselines.tuning import tuned_spec
from gpusched_env.dynamic_parallelism.scheduler import LaunchScheduler
from gpusched_env.experiments.lib.names import is_learned

DYNAMIC_PARALLELISM: Final = NAME
"""In place of a scenario's name."""


def new_launch_scheduler(name: str) -> LaunchScheduler:
    """A scheduler from its name.

    Raises:
        InputError: there is none, or no agent.
    """
    if is_learned(name):
        _, _, path = name.partition(":")
        return LearnedLaunches(policy_file(Path(path)) if path else None)
    return make_launch_scheduler(tuned_spec(name, DYNAMIC_PARALLELISM) if name.startswith(TUNED) else name)
