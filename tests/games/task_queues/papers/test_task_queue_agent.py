"""The page on forms of task queues: tuning on its own problems, foresight, and what it makes of costs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpusched_env.games.task_queues.agents.rule import SHAPES
from gpusched_env.games.task_queues.baselines.forms import ByApplication
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.environment.env import FORMS, RANDOM
from gpusched_env.games.task_queues.papers import task_queue_agent as page
from gpusched_env.games.task_queues.problem import BEST_FORM_OF_APPLICATION
from gpusched_env.games.task_queues.session import run_tasks_of
from gpusched_env.games.task_queues.suite import random_task_problem

QUICKEST = 3
"""On tuning problems; on judged ones it is the next."""


def invented() -> page.Paper:
    """The fourth form costs 0.5 on tuning problems and 0.8 on judged ones, the fifth 0.6; others 1; the agent 0.32."""
    runs = {}
    for number, each in enumerate(page.Paper.cells()):
        application, degree = ("bfs", "colouring")[number % 2], 1.0 + number % 40
        if isinstance(each, page.EveryForm):
            costs = [1.0] * (2 * len(FORMS))
            costs[QUICKEST] = 0.5 if each.seed in page.TUNING_SEEDS else 0.8
            costs[QUICKEST + 1] = 0.9 if each.seed in page.TUNING_SEEDS else 0.6
            runs[each] = page.FormCosts(application, degree, tuple(costs))
        else:
            runs[each] = page.FormCosts(application, degree, (0.32 if isinstance(each, page.ByAgent) else 0.55,))
    return page.Paper(runs)


def test_forms_are_chosen_on_tuning_problems_alone() -> None:
    paper = invented()
    random = page.judged(suite=False)
    assert paper.one == QUICKEST
    assert paper.costs("one form", random) == pytest.approx(0.8)
    assert paper.costs("by application", random) == pytest.approx(0.8)
    assert paper.costs("by application, afterwards", random) == pytest.approx(0.6)
    assert paper.costs("offline", random) == pytest.approx(0.6)
    assert paper.costs("offline, early", random) == pytest.approx(0.6)
    assert paper.beside("by application", random).mean == pytest.approx(0.32 / 0.8 - 1.0)
    assert "saves 8.3%" in paper.outcome()
    text = paper.markdown()
    assert "the agent costs -60%" in text
    assert FORMS[QUICKEST].name in text


def test_the_guideline_goes_by_the_degree() -> None:
    paper = invented()
    problems = page.judged(suite=False)
    costs = paper.guided(problems, (10.0, FORMS[QUICKEST].fetch, False))
    degrees = [paper.runs[page.EveryForm(*problem)].degree for problem in problems]
    assert FORMS[QUICKEST].strategy == "persistent"
    assert costs.tolist() == [0.8 if degree < 10.0 else 1.0 for degree in degrees]


@pytest.mark.parametrize("seed", [0, 3, 8])
def test_an_early_form_is_the_scheduler_that_has_one(seed: int) -> None:
    problem = random_task_problem(seed)
    form = BEST_FORM_OF_APPLICATION[problem.application]
    times = [
        run_tasks_of(ByApplication(ends=early), problem, make_task_device("compiled")).time_us
        for early in (False, True)
    ]
    assert [page.run_form(RANDOM, seed, form, early=early) for early in (False, True)] == pytest.approx(times)


def test_a_change_on_the_way_costs_no_more_than_none() -> None:
    found = page.EveryForm(RANDOM, 12).run("compiled")
    assert len(found.costs) == 2 * len(FORMS)
    assert page.WithOneChange(RANDOM, 12).run("compiled").costs[0] <= min(found.costs[len(FORMS) :])


def test_a_column_that_overflows_anywhere_is_not_chosen() -> None:
    assert page.best_column(np.array([[0.1, 0.5], [math.inf, 0.5]])) == 1
    assert math.prod(SHAPES["value"]) == 96, "as the page says"
