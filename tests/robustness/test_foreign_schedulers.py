"""Schedulers from elsewhere: what is called of what a name leads to, and what becomes of one that leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.compare import compare
from gpusched_env.experiments.lib.names import new_device, new_scheduler
from gpusched_env.games.child_launches.experiments.fuzzing import CHILD_LAUNCHES
from gpusched_env.scheduling.contract import Scheduler
from tests.refusals import refused

LEAVES = """
import sys
from gpusched_env.baselines.registry import make_scheduler

class Leaves:
    def __init__(self):
        if WHERE == "constructor":
            sys.exit(0)
        self.inner = make_scheduler("fifo")

    def reset(self, knowledge, rng):
        if WHERE == "reset":
            sys.exit(0)
        self.inner.reset(knowledge, rng)

    def decide(self, view):
        if WHERE == "decide":
            sys.exit(0)
        return self.inner.decide(view)
"""


def leaving(path: Path, where: str) -> str:
    path.write_text(f"WHERE = {where!r}\n{LEAVES}", encoding="utf-8")
    return f"{path}:Leaves"


@pytest.mark.parametrize("where", ["constructor", "reset", "decide"])
def test_a_scheduler_that_exits_is_an_error(where: str, tmp_path: Path) -> None:
    source = leaving(tmp_path / "leaves.py", where)
    with refused(InputError, "sys.exit(0)"):
        compare("Toy", [source], seeds=1, workers=1)


def test_one_that_exits_in_a_worker_is_an_error_too(tmp_path: Path) -> None:
    with refused(InputError, "sys.exit(0)", "Leaves"):
        compare("Toy", [leaving(tmp_path / "leaves.py", "decide"), "pass-through"], seeds=2, workers=2)


def test_a_file_that_exits_is_an_error_each_time(tmp_path: Path) -> None:
    path = tmp_path / "exits.py"
    path.write_text("import sys\nsys.exit(3)\n", encoding="utf-8")
    for _ in range(2):
        with refused(InputError, "exits.py", "sys.exit(3)"):
            new_scheduler(f"{path}:Any")


@pytest.mark.parametrize(
    "source", ["os:system", "json:loads", "os:system(command='touch ran')", "os:getcwd", "builtins:dict", "os:environ"]
)
def test_what_is_no_scheduler_is_not_called(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with refused(InputError, "scheduler"):
        new_scheduler(source)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("make", [new_device, CHILD_LAUNCHES.new_device])
def test_what_is_no_device_is_not_called(make: Callable[[str], object]) -> None:
    with refused(InputError, "device"):
        make("os:getcwd")


def test_a_name_of_a_module_itself_is_no_scheduler(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text("class Other: pass\n", encoding="utf-8")
    for name in ("__class__", "__doc__", "Other"):
        with pytest.raises(InputError):
            new_scheduler(f"{path}:{name}")


def test_a_function_of_ones_own_file_makes_one(tmp_path: Path) -> None:
    path = tmp_path / "makes.py"
    path.write_text(
        "from gpusched_env.baselines.registry import make_scheduler\ndef mine():\n    return make_scheduler('fifo')\n",
        encoding="utf-8",
    )
    assert isinstance(new_scheduler(f"{path}:mine"), Scheduler)
