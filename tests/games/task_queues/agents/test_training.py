"""Trainings of the rule of forms: exact, resumable, and shipped as others are."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpusched_env.agents.manifest import check_agent, ship
from gpusched_env.agents.training import Trained, train
from gpusched_env.agents.training.config import defaults_for
from gpusched_env.agents.training.folder import read_config
from gpusched_env.agents.training.trainer import game_training_of
from gpusched_env.errors import InputError
from gpusched_env.experiments.results.curves import gather
from gpusched_env.games.task_queues.agents.rule import SHAPES, LearnedForms
from gpusched_env.games.task_queues.agents.trainer import FormTraining
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.environment.env import FORMS
from gpusched_env.games.task_queues.session import run_tasks_of

if TYPE_CHECKING:
    from gpusched_env.agents.training.progress import TrainingProgress

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def small(**values: Any) -> FormTraining:
    return game_training_of(
        FormTraining,
        {
            "timesteps": 144,
            "episodes": 2,
            "steps": 50,
            "validation_seeds": 2,
            "validate_every": 48,
            "checkpoint_every": 48,
            **values,
        },
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, Path]:
    out = tmp_path_factory.mktemp("forms") / "whole"
    return train(small(), out), out


def test_it_keeps_what_is_best_in_validation(whole: tuple[Trained, Path]) -> None:
    from gpusched_env.agents.training.environments import validation_seeds
    from gpusched_env.games.task_queues.training import random_tasks

    trained, out = whole
    costs = []
    for seed in validation_seeds(small()):
        tasks = random_tasks(seed)
        run = run_tasks_of(LearnedForms(out), tasks.problem, make_task_device("compiled"))
        costs.append(run.time_us / tasks.whole_us)
    assert trained.best.cost == pytest.approx(statistics.geometric_mean(costs))
    assert trained.best.cost <= trained.curve[0].cost
    assert len(trained.curve) >= 3
    assert read_config(out / "config.yaml") == small()


def test_a_stopped_search_goes_on_exactly(whole: tuple[Trained, Path], tmp_path: Path) -> None:
    def stop(progress: TrainingProgress) -> bool:
        return progress.timesteps < 48

    assert train(small(), tmp_path / "cut", watch=stop).stopped
    cut = train(small(timesteps=145), tmp_path / "cut", resume=True)
    assert cut.curve[-1].costs == whole[0].curve[-1].costs


def test_threads_make_no_difference(whole: tuple[Trained, Path], tmp_path: Path) -> None:
    assert train(small(threads=2), tmp_path / "run").curve == whole[0].curve


def test_its_curves_and_its_agent_go_where_others_do(whole: tuple[Trained, Path], tmp_path: Path) -> None:
    curves = gather([whole[1]])
    assert (curves.scenario, curves.training["policy"]) == ("TaskQueue", "forms")
    ship([whole[1]], tmp_path)
    assert check_agent(tmp_path, "TaskQueue").validation.cost == whole[0].best.cost


def test_settings_are_checked() -> None:
    assert game_training_of(FormTraining, defaults_for("TaskQueue")).settings["episodes"] == 50
    for values, message in (
        ({"episode": 3}, "did you mean 'episodes'"),
        ({"sharpness": 0}, "sharpness"),
        ({"algo": "ppo"}, "ppo"),
    ):
        with pytest.raises(InputError, match=message):
            game_training_of(FormTraining, values)


def test_the_fit_finds_what_depends_on_the_graph() -> None:
    """Large searches are quickest in form 5, small ones in form 16: the next to the usual one costs twice as much."""
    from gpusched_env.games.task_queues.training import FormTrial, fitted

    rng = np.random.default_rng(0)
    tried = []
    for _ in range(60):
        terms = np.array([1.0, rng.choice([-1.0, 1.0]), rng.normal(), rng.normal()], np.float32)
        costs = np.full(len(FORMS), 2.0)
        costs[5 if terms[1] > 0.0 else 16] = 1.0
        tried.append(FormTrial(0, terms, costs))
    value, excess = fitted(tried, sharpness=3.0, penalty=0.01, steps=500)
    assert excess == 0.0
    assert (value[1:] == 0.0).all(), "of other applications there is nothing to learn"


def test_an_overflow_costs_more_than_any_run() -> None:
    from gpusched_env.games.task_queues.training import OVERFLOWED, play_tasks, random_tasks

    tasks = next(tasks for tasks in map(random_tasks, range(99)) if tasks.problem.application == "colouring")
    full = replace(tasks.problem, capacity=len(tasks.problem.graph.degree))
    assert play_tasks(np.zeros(SHAPES["value"], np.float32), tasks._replace(problem=full)).cost == OVERFLOWED
