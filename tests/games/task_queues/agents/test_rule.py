"""The rule of forms: chosen by hand-made weights, in the environment and as a scheduler; its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from gpusched_env.agents.policy_file import write_game_policy
from gpusched_env.errors import InputError
from gpusched_env.games.task_queues.agents.rule import (
    OF_FORMS,
    READS,
    SHAPES,
    FormPolicyInfo,
    FormsByRule,
    GraphTerm,
    LearnedForms,
    TaskFormTerm,
    choose,
    finished,
    graph_terms,
)
from gpusched_env.games.task_queues.baselines.forms import ByApplication
from gpusched_env.games.task_queues.device import TaskKnowledge, TaskView, knowledge_of, view_before
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.environment.env import FORMS, TaskFeature, TaskQueueEnv, encode
from gpusched_env.games.task_queues.problem import ENDING_FORM, KINDS, Form, TaskProblem
from gpusched_env.games.task_queues.session import run_tasks_of
from gpusched_env.games.task_queues.suite import random_task_problem, task_problem

BFS = KINDS["bfs"]


def nothing() -> NDArray[np.float32]:
    return np.zeros(SHAPES["value"], np.float32)


def made_up(seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=SHAPES["value"]).astype(np.float32)


def seen(problem: TaskProblem, **changed: object) -> NDArray[np.float32]:
    """An observation in the middle of a run with persistent blocks."""
    fields = {
        "now_us": 100.0, "queued": 99, "unwritten": 3, "idle": 20, "workers": 80, "tasks": 1000, "overwork": 1.5,
        "mean_degree": 2.0, "most_degree": 4, "depth": 30, "form": FORMS[0], **changed,
    }  # fmt: skip
    return encode(TaskView(**fields), knowledge_of(problem))  # type: ignore[arg-type]


def test_terms_by_hand() -> None:
    problem = task_problem("bfs-road")
    knowledge = knowledge_of(problem)
    degree = knowledge.edges / knowledge.vertices
    by_hand = [1.0, np.log10(knowledge.vertices) - 4.0, np.log10(degree) - 1.0, np.log10(5 / degree) - 1.0]
    assert graph_terms(seen(problem)) == pytest.approx(by_hand, abs=0.01)
    assert (graph_terms(encode(view_before(knowledge, FORMS[0]), knowledge)) == graph_terms(seen(problem))).all()
    assert OF_FORMS[FORMS.index(Form("persistent", "warp", 256))].tolist() == [1, 0, 1, 1, 1, 1, 0, 0]
    assert OF_FORMS[FORMS.index(Form("discrete", threshold=32))].tolist() == [0, 0, 0, 0, 0, 0, 1, 2]


@pytest.mark.parametrize(
    ("form", "queued", "unwritten", "idle", "is_finished"),
    [
        (FORMS[0], 0, 0, 80, True),
        (FORMS[0], 0, 0, 79, False),
        (FORMS[0], 1, 0, 80, False),
        (FORMS[0], 0, 1, 80, False),
        (Form("discrete"), 0, 0, 0, True),
    ],
)
def test_a_run_is_finished_when_nothing_is_left(
    form: Form, queued: int, unwritten: int, idle: int, is_finished: bool
) -> None:
    columns = seen(task_problem("bfs-road"), form=form, queued=queued, unwritten=unwritten, idle=idle)
    assert finished(columns) == is_finished
    assert (FORMS[choose(made_up(0), columns)] == ENDING_FORM) == is_finished


def test_without_weights_it_goes_by_the_application() -> None:
    for seed in range(4):
        problem, device = random_task_problem(seed), make_task_device("compiled")
        runs = [run_tasks_of(each, problem, device).time_ps for each in (FormsByRule(nothing()), ByApplication())]
        assert runs[0] == runs[1]


def test_it_chooses_by_application_and_by_the_graph() -> None:
    value = nothing()
    value[BFS, GraphTerm.DEGREE, TaskFormTerm.PERSISTENT] = -5.0
    few, many = task_problem("bfs-road"), task_problem("bfs-social")
    assert FORMS[choose(value, seen(few))].strategy == "persistent"
    assert FORMS[choose(value, seen(many))].strategy != "persistent"
    assert FORMS[choose(value, seen(task_problem("colouring-hubs")))] == Form("persistent", "block", 256)


def test_a_second_queue_is_for_searches() -> None:
    value = nothing()
    value[:, GraphTerm.ONE, TaskFormTerm.THRESHOLD] = 2.0
    value[:, GraphTerm.ONE, TaskFormTerm.NEAR] = 0.1
    assert FORMS[choose(value, seen(task_problem("bfs-road")))].threshold == 32
    assert FORMS[choose(value, seen(task_problem("colouring-mesh")))].threshold == 0


class FromTheFirst(FormsByRule):
    """Begins in the form in which the environment does."""

    def reset(self, knowledge: TaskKnowledge, rng: np.random.Generator) -> Form:
        super().reset(knowledge, rng)
        return FORMS[0]


@pytest.mark.parametrize("seed", range(6))
def test_it_does_the_same_in_the_environment(seed: int) -> None:
    env = TaskQueueEnv()
    env.reset(seed=seed)
    columns, _, over, _, info = env.step(0)
    while not over:
        columns, _, over, _, info = env.step(choose(made_up(seed), columns))
    run = run_tasks_of(FromTheFirst(made_up(seed)), random_task_problem(seed), make_task_device("compiled"))
    assert run.time_us == pytest.approx(info["time_us"])
    assert int(run.totals["changes"]) == info["changes"]


def test_both_devices_give_the_same() -> None:
    problem, rule = random_task_problem(5), FormsByRule(made_up(3))
    compiled, reference = (run_tasks_of(rule, problem, make_task_device(name)) for name in ("compiled", "reference"))
    assert compiled.time_ps == reference.time_ps


def test_files_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "rule.npz"
    write_game_policy(path, FormPolicyInfo(algorithm="none"), {"value": made_up(1)})
    assert LearnedForms(path).describe() == "none, a rule of forms of 12 terms, 0 decisions"
    np.testing.assert_array_equal(FormPolicyInfo.read(path)[1]["value"], made_up(1))
    for changed, error in (
        ({"terms": ("ONE",)}, "other terms than there are now"),
        ({"reads": ("WISH",)}, "reads WISH, which observations do not have"),
    ):
        write_game_policy(path, FormPolicyInfo(algorithm="none", **changed), {"value": made_up(1)})  # type: ignore[arg-type]
        with pytest.raises(InputError, match=error):
            FormPolicyInfo.read(path)
    write_game_policy(path, FormPolicyInfo(algorithm="none"), {"value": np.zeros((2, 3), np.float32)})
    with pytest.raises(InputError, match=str(path)):
        FormPolicyInfo.read(path)


def test_what_it_reads_is_shown() -> None:
    assert set(READS) <= set(TaskFeature.__members__)
