"""Old paths of modules that have moved."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gpusched_env.closure import source
from gpusched_env.games.child_launches.problem import LaunchProblem
from gpusched_env.moved import MOVED, place_of

PROBLEM = "gpusched_env.dynamic_parallelism.problem"
NEW = "gpusched_env.games.child_launches.problem"


@pytest.fixture(autouse=True)
def as_if_new() -> Iterator[None]:
    """No old path was imported before, and none stays."""
    forget()
    yield
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if place_of(name) != name]:
        del sys.modules[name]


@pytest.mark.parametrize("old", MOVED)
def test_each_line_leads_from_where_nothing_is_to_a_module(old: str) -> None:
    assert source(old) is None
    assert source(MOVED[old]) is not None
    assert place_of(MOVED[old]) == MOVED[old]


def test_an_old_path_is_the_module_and_says_where_it_is() -> None:
    with pytest.warns(DeprecationWarning, match="has moved") as warned:
        old = importlib.import_module(PROBLEM)
    assert old is importlib.import_module(NEW)
    assert old.__name__ == NEW
    assert [str(warning.message) for warning in warned] == [
        "gpusched_env.dynamic_parallelism has moved: import gpusched_env.games.child_launches",
        f"{PROBLEM} has moved: import {NEW}",
    ]


def test_the_longest_line_says_where_a_module_is() -> None:
    with pytest.warns(DeprecationWarning, match="has moved") as warned:
        old = importlib.import_module("gpusched_env.workload.dynamic_parallelism.graphs")
    assert old is importlib.import_module("gpusched_env.workload.graphs")
    assert str(warned[-1].message).endswith("has moved: import gpusched_env.workload.graphs")


def test_the_warning_is_at_the_line_of_the_import() -> None:
    with pytest.warns(DeprecationWarning, match="has moved") as warned:
        import gpusched_env.dynamic_parallelism.view  # noqa: F401
    assert {warning.filename for warning in warned} == {__file__}


def test_what_was_pickled_under_an_old_path_loads() -> None:
    stored = pickle.dumps(LaunchProblem, protocol=0).replace(NEW.encode(), PROBLEM.encode())
    with pytest.warns(DeprecationWarning, match="has moved"):
        assert pickle.loads(stored) is LaunchProblem


def test_a_module_that_is_nowhere() -> None:
    with pytest.raises(ModuleNotFoundError), pytest.warns(DeprecationWarning, match="has moved"):
        importlib.import_module("gpusched_env.dynamic_parallelism.nowhere")


def test_an_old_path_runs() -> None:
    command = [sys.executable, "-m", "gpusched_env.experiments.measure.dynamic_parallelism", "--help"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "100"})
    assert "Measure the cost of launches" in ran.stdout
