"""The best fixed form of a problem, found by trying all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gpusched_env.errors import DeadlockError
from gpusched_env.games.task_queues.baselines.fixed import FixedForm
from gpusched_env.games.task_queues.devices.compiled.device import CompiledTaskDevice
from gpusched_env.games.task_queues.form import FETCHES, Form, Strategy, Worker
from gpusched_env.games.task_queues.problem import TaskProblem

TRIED: tuple[tuple[Strategy, Worker], ...] = (
    ("persistent", "block"),
    ("persistent", "warp"),
    ("discrete", "block"),
    ("bulk-synchronous", "block"),
)
THRESHOLDS = ((2, 1), (4, 1), (8, 4), (32, 8))
"""And by how much they grow."""


FORMS_BY_NAME: Final = {
    form.name: form
    for form in (
        *(Form(strategy, worker, fetch) for strategy, worker in TRIED for fetch in FETCHES),
        *(Form("discrete", "block", 32, threshold=threshold, delta=delta) for threshold, delta in THRESHOLDS),
    )
}
"""All of them."""


def forms_of(problem: TaskProblem) -> Iterator[Form]:
    """Those that go with its application."""
    for form in FORMS_BY_NAME.values():
        if form.threshold == 0 or problem.application == "bfs":
            yield form


class OfflineBest(FixedForm):
    """The best of all fixed forms for this very graph, each of which it runs beforehand."""

    clairvoyant = True
    ranges = {}  # noqa: RUF012

    def see(self, problem: TaskProblem) -> None:
        """Run every form."""
        device, times = CompiledTaskDevice(), {}
        for form in forms_of(problem):
            device.begin(replace(problem, log=0), form)
            try:
                device.advance()
            except DeadlockError:  # The queue is too short for so much overwork.
                continue
            times[form] = device.time_ps
        self.form = min(times, key=times.__getitem__) if times else Form("bulk-synchronous")
