"""Result folders: nothing half-written, nothing of others touched, trouble found before the simulation."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.files import ResultFolder, file_name, result_file
from gpusched_env.experiments.report.save import save_results

FILES = [
    "eager.perfetto-trace",
    "jobs.parquet",
    "kernels.parquet",
    "patient.perfetto-trace",
    "report.html",
    "result.json",
    "timelines.npz",
]


def listing(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_comparison_is_written_in_full(comparison: Comparison, tmp_path: Path) -> None:
    assert save_results(comparison, tmp_path / "a" / "b", traces=True) == FILES
    assert listing(tmp_path / "a" / "b") == FILES
    assert listing(tmp_path / "a") == ["b"]
    assert (tmp_path / "a" / "b").stat().st_mode & 0o700 == 0o700


def test_an_earlier_result_is_replaced_and_other_files_stay(comparison: Comparison, tmp_path: Path) -> None:
    for name in ("result.json", "gone.perfetto-trace", "notes.txt"):
        (tmp_path / name).write_text("old")
    save_results(comparison, tmp_path, traces=True)
    assert listing(tmp_path) == sorted([*FILES, "notes.txt"])
    assert (tmp_path / "notes.txt").read_text() == "old"
    assert (tmp_path / "result.json").read_text() != "old"


def test_a_failure_leaves_everything_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "result.json").write_text("old")
    for target in (tmp_path / "old", tmp_path / "new" / "deep"):
        with contextlib.suppress(ZeroDivisionError), ResultFolder(target) as results:
            (results.staging / "result.json").write_text("half")
            raise ZeroDivisionError
    assert listing(tmp_path) == ["old"]
    assert (tmp_path / "old" / "result.json").read_text() == "old"


@pytest.mark.parametrize("place", ["file", "file/below", "file/far/below"])
def test_a_folder_that_cannot_be_written_is_found_on_entering(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--out .*file"), ResultFolder(tmp_path / place):
        pytest.fail("the simulation would have started")
    assert listing(tmp_path) == ["file"]


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "x.json"
    with contextlib.suppress(ZeroDivisionError), result_file(path, "--json") as staging:
        staging.write_text("half")
        raise ZeroDivisionError
    assert listing(tmp_path) == []
    with result_file(path, "--json"):
        pass
    assert listing(tmp_path) == []
    with result_file(path, "--json") as staging:
        staging.write_text("whole")
    assert path.read_text() == "whole"
    assert listing(tmp_path / "sub") == ["x.json"]


def test_a_file_that_cannot_be_written_is_found_on_entering(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--json .*is a folder"), result_file(tmp_path, "--json"):
        pytest.fail("the simulation would have started")
    with pytest.raises(InputError, match=r"--json .*a file is in the way"), result_file(tmp_path / "file/x", "--json"):
        pytest.fail("the simulation would have started")


def test_names_of_schedulers_become_names_of_files() -> None:
    assert file_name("pass-through") == "pass-through"
    assert file_name("some/where/own.py:Greedy") == "some-where-own.py-Greedy"
    assert file_name("learned:a/best.npz") != file_name("learned:b/best.npz")
