"""The worker pool: results, errors, and that nothing is left running."""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gpusched_env.errors import GpuschedError, InputError
from gpusched_env.experiments.lib.workers import Shared, run_all, run_tasks
from tests.refusals import refused

TASKS = """
import os, pathlib, time

def square(argument):
    return argument * argument

def note_and_sleep(argument):
    pathlib.Path(argument).write_text(str(os.getpid()))
    time.sleep(3600)

def fail(argument):
    raise ValueError(f"no luck with {argument}")
"""


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module that worker processes can import too: they take over ``sys.path``."""
    (tmp_path / "pool_tasks.py").write_text(TASKS)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("pool_tasks")
    yield module
    del sys.modules["pool_tasks"]


@pytest.mark.parametrize("workers", [1, 2])
def test_every_argument_has_its_result(tasks: ModuleType, workers: int) -> None:
    assert sorted(run_tasks(tasks.square, range(6), workers)) == [(i, i * i) for i in range(6)]


def test_a_task_of_a_notebook_is_sent_along() -> None:
    factor = 3
    assert sorted(run_tasks(lambda argument: factor * argument, range(4), 2)) == [(i, 3 * i) for i in range(4)]


def test_an_edited_module_is_imported_anew(tasks: ModuleType) -> None:
    assert run_all(tasks.square, [2, 3], 2) == [4, 9]
    path = Path(str(tasks.__file__))
    path.write_text(path.read_text().replace("argument * argument", "argument + 1"))
    assert run_all(importlib.reload(tasks).square, [2, 3], 2) == [3, 4]


def test_workers_are_where_the_parent_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
        monkeypatch.chdir(tmp_path / name)
        assert run_all(lambda path: Path(path).read_text(), ["file", "file"], 2) == [name, name]


def test_results_come_in_the_order_of_arguments(tasks: ModuleType) -> None:
    seen: list[tuple[int, float]] = []
    found = run_all(tasks.square, range(4), 2, lambda finished, share: seen.append((finished, share)))
    assert found == [0, 1, 4, 9]
    assert seen == [(1, 0.25), (2, 0.5), (3, 0.75), (4, 1.0)]


def test_what_tasks_share_is_made_once_a_process() -> None:
    made = []
    shared = Shared({"a": 1})
    for _ in range(3):
        assert shared.make(lambda key, made=made: made.append(key) or len(made), "a") >= 1  # type: ignore[misc]
    copy = pickle.loads(pickle.dumps(shared))
    assert copy.value == {"a": 1}
    assert pickle.loads(pickle.dumps(shared)) is copy, "unpacked once"
    assert pickle.loads(pickle.dumps(Shared({"a": 1}))) is not copy, "another call's"


def test_an_error_arrives_with_its_cause(tasks: ModuleType) -> None:
    with refused(ValueError, "luck"):
        list(run_tasks(tasks.fail, [1, 2], 2))
    assert sorted(run_tasks(tasks.square, range(3), 2)) == [(0, 0), (1, 1), (2, 4)], "the next tasks have workers"


def test_a_crash_is_no_lack_of_memory() -> None:
    for number, advice in ((signal.SIGSEGV, "it crashed"), (signal.SIGKILL, "lack of memory")):
        with pytest.raises(GpuschedError, match=rf"ended unexpectedly \({number.name}\); .*{advice}"):
            list(run_tasks(lambda number: os.kill(os.getpid(), number), [number] * 2, 2))


def test_stopping_early_ends_the_processes(tasks: ModuleType, tmp_path: Path) -> None:
    files = [tmp_path / "first", tmp_path / "second"]

    def interrupt_when_both_run() -> None:
        while not all(f.exists() and f.read_text() for f in files):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    running = run_tasks(tasks.note_and_sleep, [str(f) for f in files], 2)
    thread = threading.Thread(target=interrupt_when_both_run, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        next(running)
    thread.join()
    for file in files:
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)


def test_what_cannot_be_sent_is_refused() -> None:
    lock = threading.Lock()
    with refused(InputError, "worker"):
        list(run_tasks(lambda argument: lock.locked(), [1, 2], 2))
