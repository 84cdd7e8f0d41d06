"""Schedulers of task queues by name: written by hand, tuned (``tuned:NAME``) or learned."""

from __future__ import annotations

from gpusched_env.agents.shipped import shipped_names
from gpusched_env.baselines.tuning import PREFIX as TUNED
from gpusched_env.baselines.tuning import tuned_names, tuned_spec
from gpusched_env.experiments.lib.trained import LEARNED, agent_file, is_learned
from gpusched_env.games.task_queues.agents.learned import NAME, LearnedForms
from gpusched_env.games.task_queues.baselines.registry import TASK_SCHEDULERS, make_task_scheduler
from gpusched_env.games.task_queues.session import TaskScheduler


def new_task_scheduler(name: str) -> TaskScheduler:
    """A scheduler from its name.

    Raises:
        InputError: there is none, or no agent.
    """
    if is_learned(name):
        return LearnedForms(agent_file(name))
    return make_task_scheduler(tuned_spec(name, NAME) if name.startswith(TUNED) else name)


def default_task_schedulers() -> list[str]:
    """All hand-written ones, those with tuned options, and the shipped agent if there is one."""
    shipped = [LEARNED] if NAME in shipped_names() else []
    return [*TASK_SCHEDULERS.names(), *tuned_names(NAME), *shipped]
