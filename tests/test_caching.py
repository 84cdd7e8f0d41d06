"""What compiled functions are kept in: nothing that is wrong with it is an error, or run."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core.compiler import CompileResult

import gpusched_env
from gpusched_env.caching import KeptFunctions, open_to_others
from gpusched_env.compiling import cached


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that ``NUMBA_CACHE_DIR`` names."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))
    return folder


def compiled() -> Any:
    """A function as a new process would have it."""

    def twice(number: float) -> float:
        return number + number

    return cached()(twice).whole  # type: ignore[attr-defined]


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder that other users can read."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


TWICE = """
from gpusched_env.compiling import cached

@cached()
def twice(number):
    return number + number

assert twice(1.5) == 3.0
print(sum(twice.whole.stats.cache_hits.values()), "hits", flush=True)
"""
SLOWLY = """
import sys
from numba.core import event

class Waiting(event.Listener):
    def on_start(self, event):
        print("compiling", flush=True)
        sys.stdin.readline()

    def on_end(self, event):
        pass

event.register("numba:compile", Waiting())
"""
"""Before :data:`TWICE`: it compiles once a line comes in."""


RUN = """
import os, runpy, sys
import numba
from gpusched_env.compiling import cached

# Everything is imported that another user may not be allowed to read.
numba.njit(lambda number: number + number)(1.5)
if sys.argv[2:]:
    os.setuid(int(sys.argv[2]))
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def start(source: Path, user: int | None = None) -> subprocess.Popen[str]:
    """A process that runs a file, and of what it compiles keeps nothing at a user's home."""
    root = str(Path(gpusched_env.__file__).parents[1])
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": root, "HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none"}
    piped = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", RUN, str(source), *([] if user is None else [str(user)])],
        env=environment, stdin=piped, stdout=piped, stderr=piped, text=True,
    )  # fmt: skip


def ask_twice(source: Path, user: int | None = None) -> tuple[str, str]:
    return start(source, user).communicate()


def hits(function: Callable[[float], float], number: float = 1.5) -> int:
    assert function(number) == 2 * number
    return sum(function.stats.cache_hits.values())  # type: ignore[attr-defined]


def test_it_is_compiled_once(cache: Path) -> None:
    assert hits(compiled()) == 0
    assert hits(compiled()) == 1
    assert [path.suffix for path in cache.rglob("*.nb?")] == [".nbc"]


@pytest.mark.parametrize("content", [b"", b"\x80\x05", b"nothing of the kind", bytes(100)])
def test_a_damaged_file_is_compiled_anew(content: bytes, cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    hits(compiled())
    (file,) = cache.rglob("*.nbc")
    file.write_bytes(content)
    assert hits(compiled()) == 0
    assert capfd.readouterr().err == f"gpusched: {file}: is damaged; compiling it anew\n"
    assert hits(compiled()) == 1, "and kept again"


def test_any_flipped_bit_is_damage(cache: Path) -> None:
    """In machine code it would end the interpreter, as it would in what says how much memory there is to be."""
    hits(compiled())
    (file,) = cache.rglob("*.nbc")
    whole = file.read_bytes()
    for place in range(0, len(whole), len(whole) // 50):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        assert hits(compiled()) == 0


@pytest.mark.parametrize("damaged", [0, 1])
def test_code_for_other_types_is_not_run(damaged: int, cache: Path) -> None:
    both = compiled()
    hits(both, 1.5)
    hits(both, 3)
    files = sorted(cache.rglob("*.nbc"))
    files[damaged].write_bytes(files[1 - damaged].read_bytes())
    again = compiled()
    assert (again(3), again(1.5)) == (6, 3.0)
    assert isinstance(again(3), int)
    fresh = compiled()
    assert (hits(fresh, 1.5), hits(fresh, 3)) == (1, 2)


def test_a_full_disk_is_no_error(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert hits(compiled()) == 0
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert f"tried {cache}" in said
    assert "NUMBA_CACHE_DIR=" in said


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="root is to lose its rights")
@pytest.mark.parametrize("warm", [True, False])
def test_what_root_has_compiled_serves_others(warm: bool, open_path: Path) -> None:
    """In a folder that they cannot write to; where there is nothing, one line says so."""
    source = open_path / "twice.py"
    source.write_text(TWICE)
    if warm:
        assert ask_twice(source) == ("0 hits\n", "")
    printed, said = ask_twice(source, user=12345)
    assert printed == f"{int(warm)} hits\n"
    assert said.count("\n") == (0 if warm else 1)
    assert warm or f"tried {source.parent / '__pycache__'} (" in said
    assert not list(source.parent.rglob("*.nbc")) or warm


def test_one_process_compiles_and_the_others_wait(tmp_path: Path) -> None:
    source = tmp_path / "twice.py"
    source.write_text(SLOWLY + TWICE)
    first = start(source)
    assert first.stdout is not None
    assert first.stdout.readline() == "compiling\n"
    others = [start(source) for _ in range(2)]
    for other in others:
        assert other.stderr is not None
        waiting = f"gpusched: waiting for process {first.pid}, which is compiling the same ...\n"
        assert other.stderr.readline() == waiting
    print("go", file=first.stdin, flush=True)
    assert first.communicate()[0] == "0 hits\n"
    assert [other.communicate()[0] for other in others] == ["1 hits\n"] * 2


def test_a_killed_process_is_waited_for_no_longer(tmp_path: Path) -> None:
    source = tmp_path / "twice.py"
    source.write_text(SLOWLY + TWICE)
    first, second = start(source), None
    assert first.stdout is not None
    assert first.stdout.readline() == "compiling\n"
    second = start(source)
    assert second.stderr is not None
    assert "waiting" in second.stderr.readline()
    first.kill()
    first.communicate()
    print("go", file=second.stdin, flush=True)
    assert second.communicate()[0] == "compiling\n0 hits\n"


def test_a_failed_compilation_is_waited_for_no_longer(cache: Path) -> None:
    with pytest.raises(numba.errors.TypingError):
        compiled()(None)
    (lock,) = cache.rglob("*.lock")
    with lock.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Payload:
    """Leaves a file when it is unpickled."""

    def __init__(self, ran: Path) -> None:
        self.ran = ran

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.ran,)


@pytest.mark.parametrize("place", ["folder", "above"])
def test_what_others_can_write_to_is_left_alone(
    place: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    hits(compiled())
    (file,) = cache.rglob("*.nbc")
    ran = tmp_path / "ran"
    monkeypatch.setattr(CompileResult, "_reduce", lambda _: Payload(ran))
    monkeypatch.setattr(KeptFunctions, "_found", lambda *_: None)
    hits(compiled())
    monkeypatch.undo()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(cache))
    shared = file.parent if place == "folder" else cache
    shared.chmod(0o777)
    before = sorted(cache.rglob("*"))
    assert hits(compiled()) == 0
    assert f"(others can write to {shared.resolve()})" in capfd.readouterr().err
    assert not ran.exists()
    assert sorted(cache.rglob("*")) == before
    shared.chmod(0o700)
    with pytest.raises(TypeError):
        compiled()(1.5)
    assert ran.exists(), "else the payload is none, and the test cannot fail"


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root gives folders away")
def test_folders_of_somebody_else_are_left_alone(cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    hits(compiled())
    os.chown(cache, 12345, 12345)
    assert hits(compiled()) == 0
    assert f"others can write to {cache}" in capfd.readouterr().err


def test_folders_of_ones_own_are_trusted(tmp_path: Path) -> None:
    """Also below one like ``/tmp``, where everybody can write and nobody can replace what is of another."""
    below = tmp_path / "tmp" / "mine"
    below.mkdir(parents=True)
    (tmp_path / "tmp").chmod(0o1777)
    assert open_to_others(below) is None
    (tmp_path / "tmp").chmod(0o777)
    assert open_to_others(below) == (tmp_path / "tmp").resolve()
    (tmp_path / "tmp").chmod(0o1777)
    below.chmod(0o1777)
    assert open_to_others(below) == below.resolve(), "others could put files there"


ASK = """
from gpusched_env import build_problem, load_scenario
print([program.alone_us for program in build_problem(load_scenario("InferenceBesideTraining")).programs])
"""


@pytest.mark.slow
def test_eight_processes_share_a_cold_cache(cache: Path, tmp_path: Path) -> None:
    root = str(Path(gpusched_env.__file__).parents[1])
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": root}
    command = [sys.executable, "-W", "error", "-c", ASK]
    processes = [subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE) for _ in range(8)]
    printed = {process.communicate()[0] for process in processes}
    assert [process.returncode for process in processes] == [0] * 8
    assert len(printed) == 1
    assert b"[" in printed.pop()
    assert not list(cache.rglob("*.tmp.*"))
