"""Results that are written to pipes, devices and loops of links: those stay what they are."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gpusched_env.agents.policy_file import write_members
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.files import ResultFolder, write_file
from tests.refusals import refused


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_a_result_goes_through_a_pipe_that_stays_one(pipe: Path) -> None:
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, {"cost": 1}, "--json")
    reader.join()
    assert b'"cost": 1' in read[0]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [path.name for path in pipe.parent.iterdir()] == ["pipe"]


def test_standard_output_is_a_file_to_write_to() -> None:
    code = (
        "from pathlib import Path; from gpusched_env.experiments.lib.files import write_file; "
        "write_file(Path('/dev/stdout'), 'written', '--json')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "written"


def test_the_device_of_nothing_stays_one() -> None:
    write_file(Path(os.devnull), "written", "--json")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_policy_replaces_no_pipe(pipe: Path) -> None:
    with refused(InputError, "regular"):
        write_members(pipe, b"{}", {})
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_links_that_lead_nowhere_are_one_error(tmp_path: Path) -> None:
    for name, target in (("a", "b"), ("b", "a")):
        (tmp_path / name).symlink_to(tmp_path / target)
    with refused(InputError, "--out"), ResultFolder(tmp_path / "a"):
        raise AssertionError("nothing is to run")
    with refused(InputError, "--json"):
        write_file(tmp_path / "a", "x", "--json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
