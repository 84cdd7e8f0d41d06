"""What compiled functions are kept in: nothing that is wrong with it is an error, or run."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core.caching import FunctionCache

import gpusched_env
from gpusched_env.caching import open_to_others
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

    return cached()(twice)


def hits(function: Callable[[float], float], number: float = 1.5) -> int:
    assert function(number) == 2 * number
    return sum(function.stats.cache_hits.values())  # type: ignore[attr-defined]


def test_it_is_compiled_once(cache: Path) -> None:
    assert hits(compiled()) == 0
    assert hits(compiled()) == 1
    assert {path.suffix for path in cache.rglob("*.nb?")} == {".nbi", ".nbc"}


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("content", [b"", b"\x80\x05", b"nothing of the kind", pickle.dumps(numba.__version__)])
def test_a_damaged_file_is_compiled_anew(suffix: str, content: bytes, cache: Path) -> None:
    hits(compiled())
    (file,) = cache.rglob(f"*{suffix}")
    file.write_bytes(content)
    assert hits(compiled()) == 0
    assert hits(compiled()) == 1, "and kept again"


@pytest.mark.parametrize("damaged", [0, 1])
def test_code_for_other_types_is_not_run(damaged: int, cache: Path) -> None:
    """As two processes leave it that compile for different types at once and take the same file."""
    both = compiled()
    hits(both, 1.5)
    hits(both, 3)
    files = sorted(cache.rglob("*.nbc"))
    files[damaged].write_bytes(files[1 - damaged].read_bytes())
    again = compiled()
    assert (again(3), again(1.5)) == (6, 3.0)
    assert isinstance(again(3), int)
    # With the damaged file the others were forgotten: what was read before it is compiled and kept once more.
    once_more = compiled()
    assert (once_more(3), once_more(1.5)) == (6, 3.0)
    fresh = compiled()
    assert (hits(fresh, 1.5), hits(fresh, 3)) == (1, 2)


def test_a_full_disk_is_no_error(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FunctionCache, "save_overload", full)
    assert hits(compiled()) == 0


class Payload:
    """Leaves a file when it is unpickled."""

    def __init__(self, ran: Path) -> None:
        self.ran = ran

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.ran,)


@pytest.mark.parametrize("place", ["folder", "above"])
def test_what_others_can_write_to_is_left_alone(place: str, cache: Path, tmp_path: Path) -> None:
    hits(compiled())
    (index,) = cache.rglob("*.nbi")
    ran = tmp_path / "ran"
    index.write_bytes(pickle.dumps(Payload(ran)))
    shared = index.parent if place == "folder" else cache
    shared.chmod(0o777)
    before = sorted(cache.rglob("*"))
    with pytest.warns(RuntimeWarning, match="others can write to it") as told:
        function = compiled()
    assert str(told[0].message).startswith(f"{shared.resolve()}: ")
    assert hits(function) == 0
    assert not ran.exists()
    assert sorted(cache.rglob("*")) == before
    shared.chmod(0o700)
    assert hits(compiled()) == 0
    assert ran.exists(), "else the payload is none, and the test cannot fail"


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root gives folders away")
def test_folders_of_somebody_else_are_left_alone(cache: Path) -> None:
    hits(compiled())
    os.chown(cache, 12345, 12345)
    with pytest.warns(RuntimeWarning, match="others can write to it"):
        assert hits(compiled()) == 0


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
