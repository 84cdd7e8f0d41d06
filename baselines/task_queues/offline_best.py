"""The best fixed form of a problem, found by trying all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpusched_env.baselines.task_queues.fixed import FixedForm
from gpusched_env.devices.task_queues.compiled.device import CompiledTaskDevice
from gpusched_env.errors import DeadlockError
from gpusched_env.task_queues.form import FETCHES, Form, Strategy, Worker
from gpusched_env.task_queues.problem import TaskProblem

TRIED: tuple[tuple[Strategy, Worker], ...] = (
    ("persistent", "block"),
    ("persistent", "warp"),
    ("discrete", "block"),
    ("bulk-synchronous", "block"),
)
THRESHOLDS = ((2, 1), (4, 1), (8, 4), (32, 8))
"""And by how much they grow."""


def forms_of(problem: TaskProblem) -> Iterator[Form]:
    """All that are tried."""
    for strategy, worker in TRIED:
        for fetch in FETCHES:
            yield Form(strategy, worker, fetch)
    if problem.application == "bfs":
        for threshold, delta in THRESHOLDS:
            yield Form("discrete", "block", 32, threshold=threshold, delta=delta)


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
