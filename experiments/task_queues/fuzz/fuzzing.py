"""What is fuzzed of task queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gpusched_env.experiments.fuzz.fuzzing import Fuzzing
from gpusched_env.experiments.lib.names import device_from
from gpusched_env.experiments.task_queues.fuzz.case import TaskCounterexample
from gpusched_env.experiments.task_queues.fuzz.draw import draw_tasks
from gpusched_env.experiments.task_queues.fuzz.duel import play_tasks
from gpusched_env.experiments.task_queues.fuzz.shrink import TaskShrinker
from gpusched_env.task_queues.device import TaskDevice


def new_task_device(source: str | Callable[[], TaskDevice]) -> TaskDevice:
    """A device from its name or factory.

    Raises:
        InputError: no device of that name.
    """
    from gpusched_env.devices.task_queues import make_task_device

    return device_from(source, make_task_device)


TASKS: Final = Fuzzing(new_task_device, draw_tasks, play_tasks, TaskShrinker, TaskCounterexample)
