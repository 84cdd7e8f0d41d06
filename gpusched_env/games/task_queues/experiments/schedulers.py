"""Schedulers of task queues by name: written by hand, tuned (``tuned:NAME``) or learned."""

from __future__ import annotations

from typing import Final

from gpusched_env.experiments.games.own import NamedSchedulers
from gpusched_env.games.task_queues.agents.learned import NAME, LearnedForms
from gpusched_env.games.task_queues.baselines.registry import TASK_SCHEDULERS
from gpusched_env.games.task_queues.session import TaskScheduler

NAMED: Final = NamedSchedulers[TaskScheduler](NAME, TASK_SCHEDULERS, LearnedForms)
new_task_scheduler: Final = NAMED.new
