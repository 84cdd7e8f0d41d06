"""The training of the rule of forms: every form is run on random graphs, and the rule is fitted to what each costs.

A cost is an application's time over that of the bulk-synchronous form with 32 tasks a block; means of it are geometric.
A round draws problems and runs them in every form, with early ends. Weights are fitted to all problems so far: least is
the expected logarithm of the cost, over that of the quickest form, if forms are drawn with the softmax of their values.
The problems of the suite, which results are about, are never played; validations have random problems of their own.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from gpusched_env.agents.policy_file import Weights
from gpusched_env.agents.training.environments import DRAWN_SEEDS, SEEDS_EACH, TRAINING_SEED, validation_seeds
from gpusched_env.agents.training.game_evolution import keep_game_policy
from gpusched_env.agents.training.validation import Judge, TrainingRun, ValidationResult
from gpusched_env.errors import DeadlockError
from gpusched_env.games.task_queues.agents.rule import OF_FORMS, SHAPES, USUAL, FormPolicyInfo, FormsByRule, graph_terms
from gpusched_env.games.task_queues.agents.trainer import FormTraining
from gpusched_env.games.task_queues.device import knowledge_of, view_before
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.environment.env import FIRST, FORMS, encode
from gpusched_env.games.task_queues.problem import ENDING_FORM, TaskProblem
from gpusched_env.games.task_queues.session import run_tasks_of, time_in
from gpusched_env.games.task_queues.suite import random_task_problem

DEVICE: Final = "compiled"
OVERFLOWED: Final = 10.0
"""What a run costs whose queue overflows, or a form that the application does not have: more than any that ends."""


class RandomTasks(NamedTuple):
    """A random problem, and how long it takes level by level."""

    problem: TaskProblem
    whole_us: float


class RulePlay(NamedTuple):
    """A run under the rule."""

    cost: float
    decisions: int


class FormTrial(NamedTuple):
    """A problem in every form."""

    kind: int
    """The kind of application."""
    terms: NDArray[np.float32]
    """Terms of the graph."""
    costs: NDArray[np.float64]
    """Costs by form."""


def random_tasks(seed: int) -> RandomTasks:
    """The random problem of a seed."""
    problem = random_task_problem(seed)
    return RandomTasks(problem, time_in(problem, ENDING_FORM, make_task_device(DEVICE), early=False))


def try_forms(seed: int) -> FormTrial:
    """Run the random problem of a seed in every form."""
    problem, whole_us = random_tasks(seed)
    device, knowledge = make_task_device(DEVICE), knowledge_of(problem)
    costs = [
        time_in(problem, form, device, early=True) / whole_us
        if form.threshold == 0 or problem.application == "bfs"
        else math.inf
        for form in FORMS
    ]
    terms = graph_terms(encode(view_before(knowledge, FIRST), knowledge))
    return FormTrial(problem.kind, terms, np.minimum(costs, OVERFLOWED))


def play_tasks(value: NDArray[np.float32], tasks: RandomTasks) -> RulePlay:
    """A problem under the rule; ``value``: its weights."""
    scheduler = FormsByRule(value)
    try:
        cost = run_tasks_of(scheduler, tasks.problem, make_task_device(DEVICE)).time_us / tasks.whole_us
    except DeadlockError:
        cost = OVERFLOWED
    return RulePlay(cost, scheduler.decisions)


class FormJudge(Judge):
    """Of the rule of forms."""

    def __init__(self, config: FormTraining) -> None:
        self.seeds = validation_seeds(config)
        self._tasks = [random_tasks(seed) for seed in self.seeds]

    def judge(self, decide: NDArray[np.float32]) -> ValidationResult:
        """``decide``: the weights of the rule."""
        played = [play_tasks(decide, tasks) for tasks in self._tasks]
        costs = [run.cost for run in played]
        cost = statistics.geometric_mean(costs)
        figures = {"speedup": 1.0 / cost, "decisions": float(sum(run.decisions for run in played))}
        return ValidationResult(costs, cost, figures, None)


class FormLearner:
    """Fits the rule, round by round."""

    def __init__(self, course: TrainingRun, config: FormTraining, state: dict[str, Any] | None) -> None:
        """``state``: of the checkpoint to go on from."""
        self._course, self._config = course, config
        self._tried: list[FormTrial] = []
        self._value = np.zeros(SHAPES["value"], np.float32)
        if state is not None:
            self._tried = [FormTrial(*each) for each in state["tried"]]
            self._value = state["value"]

    @property
    def timesteps(self) -> int:
        """Number of forms tried."""
        return len(FORMS) * len(self._tried)

    def run(self) -> None:
        """Go on to the end."""
        course = self._course
        with ThreadPoolExecutor(self._config.threads) as pool:
            while self.timesteps < course.config.timesteps and not course.stopped:
                course.boundary(self, self.timesteps)
                self._round(pool)
        course.end(self, self.timesteps)

    def decider(self) -> NDArray[np.float32]:
        return self._value

    def keep(self) -> None:
        keep_game_policy(self._course, FormPolicyInfo, self.timesteps, self._weights)

    def state(self) -> dict[str, Any]:
        return {"tried": [tuple(each) for each in self._tried], "value": self._value}

    @property
    def _weights(self) -> Weights:
        return {"value": self._value}

    def _round(self, pool: ThreadPoolExecutor) -> None:
        settings = self._config.settings
        rng = np.random.default_rng((TRAINING_SEED + SEEDS_EACH * self._config.seed, len(self._tried)))
        for trial in pool.map(try_forms, map(int, rng.integers(*DRAWN_SEEDS, settings["episodes"]))):
            self._tried.append(trial)
            self._course.tell(self.timesteps)
        self._value, excess = fitted(self._tried, settings["sharpness"], settings["penalty"], settings["steps"])
        figures = {"forms/problems": float(len(self._tried)), "forms/excess": excess}
        self._course.board.scalars(figures, self.timesteps)


def fitted(
    tried: Sequence[FormTrial], sharpness: float, penalty: float, steps: int
) -> tuple[NDArray[np.float32], float]:
    """Weights of the rule, and the mean excess over the quickest form with which it goes by them.

    Args:
        tried: problems in every form.
        sharpness: factor on values before their softmax.
        penalty: on the mean square of the weights.
        steps: of gradient descent (Adam).
    """
    logarithms = np.log([each.costs for each in tried])
    excess = torch.tensor(logarithms - logarithms.min(axis=1, keepdims=True), dtype=torch.float32)
    terms = torch.tensor(np.array([each.terms for each in tried]))
    kinds = torch.tensor([each.kind for each in tried])
    of_forms = torch.tensor(OF_FORMS)
    usual = torch.zeros(excess.shape).scatter_(1, torch.tensor(USUAL)[kinds][:, None], 1.0)
    value = torch.zeros(SHAPES["value"], requires_grad=True)
    optimiser = torch.optim.Adam([value], lr=0.05)

    def values() -> torch.Tensor:
        return usual + torch.einsum("ng,ngf,af->na", terms, value[kinds], of_forms)

    for _ in range(steps):
        chances = torch.softmax(sharpness * values(), dim=1)
        loss = (chances * excess).sum(1).mean() + penalty * value.square().mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        chosen = values().argmax(1)
        return value.detach().numpy().copy(), float(excess.gather(1, chosen[:, None]).mean())
