"""The worker pool: results, errors, and that nothing is left running."""

from __future__ import annotations

import importlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gpusched_env.errors import GpuschedError, InputError
from gpusched_env.experiments.workers import run_tasks

TASKS = """
import os, pathlib, time

class OddError(Exception):
    def __init__(self, one, two):
        super().__init__(one + two)

def square(argument, report):
    report(0.5)
    return argument * argument

def note_and_sleep(argument, report):
    pathlib.Path(argument).write_text(str(os.getpid()))
    time.sleep(3600)

def fail(argument, report):
    raise OddError("cannot be ", "pickled")
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


def test_progress_is_passed_on_in_process(tasks: ModuleType) -> None:
    seen: list[tuple[int, float]] = []
    list(run_tasks(tasks.square, [3], 1, lambda index, share: seen.append((index, share))))
    assert seen == [(0, 0.5)]


def test_an_error_that_does_not_pickle_still_arrives(tasks: ModuleType) -> None:
    with pytest.raises(GpuschedError, match="OddError: cannot be pickled") as caught:
        list(run_tasks(tasks.fail, [1, 2], 2))
    assert any("pool_tasks.py" in note for note in caught.value.__notes__)


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
    with pytest.raises(InputError, match="use one worker"):
        list(run_tasks(lambda argument, report: math.nan, [1, 2], 2))
