"""From a case of task queues on which two devices differ to a simpler one on which they still do."""

from __future__ import annotations

from typing import Any

from gpusched_env.experiments.fuzz.trees import GONE, SECONDS, TreeShrinker, simpler_numbers
from gpusched_env.games.task_queues.experiments.fuzz.case import TaskCase
from gpusched_env.games.task_queues.experiments.fuzz.duel import MakeTaskDevice, play_tasks

ROUNDS = 5
LISTS = ("edges", "forms", "stay_ps")
FORMS = r"forms/\d+/(grid|threshold|delta|worker|strategy)"
OPTIONS = rf"gpus|link|link/batch|partition|pause_ps|capacity|source|polls|epsilon|relaunch|{FORMS}"
PRICES = r"machine/(?!gpu).*|link/.*"
NUMBERS = rf"gpus|vertices|source|polls|capacity|stay_ps/\d+|pause_ps|forms/\d+/(fetch|threshold|grid)|{PRICES}"


class TaskShrinker(TreeShrinker[TaskCase]):
    """Greedy, as those of the other devices."""

    def __init__(
        self, case: TaskCase, device: MakeTaskDevice, against: MakeTaskDevice, *, seconds: float = SECONDS
    ) -> None:
        super().__init__(case, lambda tried: play_tasks(tried, device, against).difference, seconds=seconds)

    def _simplify_all(self) -> None:
        for _ in range(ROUNDS):
            before: dict[str, Any] = self._tree
            for name in LISTS:
                self._shorten((name,))
            self._everywhere(OPTIONS, lambda _: [GONE])
            self._everywhere(NUMBERS, simpler_numbers)
            if self._tree == before:
                break
