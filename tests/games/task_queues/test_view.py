"""What a scheduler of tasks sees: nothing is hidden in places that workers have grabbed."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.environment.env import FORMS
from gpusched_env.games.task_queues.problem import BEST_FORM_OF_APPLICATION, ENDING_FORM
from gpusched_env.games.task_queues.session import TaskSession
from gpusched_env.games.task_queues.suite import random_task_problem

PLAIN = [form for form in FORMS if form.threshold == 0]


@pytest.mark.parametrize("gpus", [1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_queued_tasks_are_those_in_no_step(seed: int, gpus: int) -> None:
    """At random times, with random changes of form; in the end none is left."""
    if gpus > 1 and random_task_problem(seed).application == "colouring":
        seed += 100
    rng = np.random.default_rng(seed)
    problem = random_task_problem(seed, gpus)
    session = TaskSession(problem, make_task_device("compiled"))
    session.begin(PLAIN[int(rng.integers(len(PLAIN)))])
    while not session.advance(float(rng.uniform(5.0, 200.0))):
        view = session.view
        waiting = problem.first_tasks + int(session.device.totals["pushed"]) - view.tasks
        assert 0 <= view.queued <= waiting
        if rng.random() < 0.2:
            session.change(PLAIN[int(rng.integers(len(PLAIN)))])
    assert session.view.queued == session.view.unwritten == 0


@pytest.mark.parametrize("seed", range(12))
def test_a_persistent_run_that_is_finished_has_nothing_left(seed: int) -> None:
    problem = random_task_problem(seed)
    session = TaskSession(problem, make_task_device("compiled"))
    session.begin(BEST_FORM_OF_APPLICATION[problem.application])
    while not session.advance(10.0) and not session.view.finished:
        pass
    tasks = session.view.tasks
    if not session.over:
        session.change(ENDING_FORM)
        session.finish()
    assert session.view.tasks == tasks
