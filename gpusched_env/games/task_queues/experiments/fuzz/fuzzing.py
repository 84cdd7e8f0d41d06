"""What is fuzzed of task queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gpusched_env.experiments.fuzz.fuzzing import Fuzzing
from gpusched_env.experiments.lib.names import device_from
from gpusched_env.games.task_queues.device import TaskDevice
from gpusched_env.games.task_queues.experiments.fuzz.case import TaskCounterexample
from gpusched_env.games.task_queues.experiments.fuzz.draw import draw_tasks
from gpusched_env.games.task_queues.experiments.fuzz.duel import play_tasks
from gpusched_env.games.task_queues.experiments.fuzz.shrink import TaskShrinker


def new_task_device(source: str | Callable[[], TaskDevice]) -> TaskDevice:
    """A device from its name or factory.

    Raises:
        InputError: no device of that name.
    """
    from gpusched_env.games.task_queues.devices import make_task_device

    return device_from(source, make_task_device)


TASKS: Final = Fuzzing(new_task_device, draw_tasks, play_tasks, TaskShrinker, TaskCounterexample)
