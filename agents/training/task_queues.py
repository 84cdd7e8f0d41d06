"""The training of the rule of forms: random graphs, CMA-ES, validation on other random graphs.

A cost is an application's time over that of the bulk-synchronous form with 32 tasks a block; means of it are geometric.
The problems of the suite, which results are about, are never played.
"""

from __future__ import annotations

import statistics
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.policy_file import Weights
from gpusched_env.agents.task_queues.config import FormTraining
from gpusched_env.agents.task_queues.learned import FormsByRule
from gpusched_env.agents.task_queues.policy_file import FormPolicyInfo
from gpusched_env.agents.task_queues.rule import SHAPES
from gpusched_env.agents.training.environments import DRAWN_SEEDS, VALIDATION_SEED
from gpusched_env.agents.training.game_evolution import GameEvolution, GamePopulation, log_mean
from gpusched_env.agents.training.validation import ValidationResult
from gpusched_env.devices.task_queues import make_task_device
from gpusched_env.errors import DeadlockError
from gpusched_env.task_queues.form import Form
from gpusched_env.task_queues.problem import TaskProblem
from gpusched_env.task_queues.session import TaskSession, run_tasks_of
from gpusched_env.task_queues.suite import random_task_problem

DEVICE: Final = "compiled"
OVERFLOWED: Final = 10.0
"""What a run costs whose queue overflows: more than any that ends."""


class RandomTasks(NamedTuple):
    """A random problem, and how long it takes level by level."""

    problem: TaskProblem
    whole_us: float


class Played(NamedTuple):
    """A run under the rule."""

    cost: float
    decisions: int
    changes: int


def random_tasks(seed: int) -> RandomTasks:
    """Of a seed."""
    problem = random_task_problem(seed)
    session = TaskSession(problem, make_task_device(DEVICE))
    session.begin(Form("bulk-synchronous"))
    return RandomTasks(problem, session.finish() / 1e6)


def play_tasks(value: NDArray[np.float32], tasks: RandomTasks) -> Played:
    """A problem under the rule; ``value``: its weights."""
    scheduler, device = FormsByRule(value), make_task_device(DEVICE)
    try:
        cost = run_tasks_of(scheduler, tasks.problem, device).time_us / tasks.whole_us
    except DeadlockError:
        cost = OVERFLOWED
    return Played(cost, scheduler.decisions, int(device.totals["changes"]))


def validation_seeds(config: FormTraining) -> list[int]:
    """Of the random problems that a training of this configuration is validated on."""
    return [VALIDATION_SEED + number for number in range(config.validation_seeds)]


class FormJudge:
    """See :class:`gpusched_env.agents.training.validation.Judge`."""

    def __init__(self, config: FormTraining) -> None:
        self.seeds = validation_seeds(config)
        self._tasks = [random_tasks(seed) for seed in self.seeds]

    def judge(self, decide: NDArray[np.float32]) -> ValidationResult:
        """``decide``: the weights of the rule."""
        played = [play_tasks(decide, tasks) for tasks in self._tasks]
        costs = [run.cost for run in played]
        cost = statistics.geometric_mean(costs)
        figures = {
            "speedup": 1.0 / cost,
            "decisions": float(sum(run.decisions for run in played)),
            "changes": statistics.fmean(run.changes for run in played),
        }
        return ValidationResult(costs, cost, figures, None)

    def close(self) -> None:
        """There are no threads."""


class FormEvolution(GameEvolution):
    """Of the rule of forms."""

    INFO = FormPolicyInfo
    SHAPES = SHAPES
    _config: FormTraining

    def _population(self) -> FormPopulation:
        return FormPopulation(self._config)

    def _candidate(self, weights: Weights) -> NDArray[np.float32]:
        return weights["value"]

    def _mean_of(self, relative: NDArray[np.float64]) -> NDArray[np.float64]:
        return log_mean(relative)


class FormPopulation(GamePopulation[RandomTasks]):
    """Random problems."""

    def drawn(self, rng: np.random.Generator, count: int) -> list[RandomTasks]:
        return [random_tasks(int(seed)) for seed in rng.integers(*DRAWN_SEEDS, count)]

    def play(self, weights: NDArray[np.float32], problem: RandomTasks) -> tuple[float, int]:
        played = play_tasks(weights, problem)
        return played.cost, played.decisions
