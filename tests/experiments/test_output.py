"""Result folders: nothing half-written, nothing of others touched, trouble found before the simulation."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.files import ResultFolder, file_name, held, result_file, writing
from gpusched_env.experiments.lib.pages import write_page
from tests.refusals import refused

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
    assert comparison.save(tmp_path / "a" / "b", traces=True) == FILES
    assert listing(tmp_path / "a" / "b") == FILES
    assert listing(tmp_path / "a") == ["b"]
    assert (tmp_path / "a" / "b").stat().st_mode & 0o700 == 0o700


def test_an_earlier_result_is_replaced_and_other_files_stay(comparison: Comparison, tmp_path: Path) -> None:
    for name in ("result.json", "gone.perfetto-trace", "notes.txt"):
        (tmp_path / name).write_text("old")
    comparison.save(tmp_path, traces=True, overwrite=True)
    assert listing(tmp_path) == sorted([*FILES, "notes.txt"])
    assert (tmp_path / "notes.txt").read_text() == "old"
    assert (tmp_path / "result.json").read_text() != "old"


def test_a_failure_leaves_everything_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "result.json").write_text("old")
    for target in (tmp_path / "old", tmp_path / "new" / "deep"):
        with contextlib.suppress(ZeroDivisionError), ResultFolder(target, overwrite=True) as results:
            (results.staging / "result.json").write_text("half")
            raise ZeroDivisionError
    assert listing(tmp_path) == ["old"]
    assert (tmp_path / "old" / "result.json").read_text() == "old"


@pytest.mark.parametrize("place", ["file", "file/below", "file/far/below"])
def test_a_folder_that_cannot_be_written_is_found_on_entering(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with refused(InputError, "--out", "file"), ResultFolder(tmp_path / place):
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
    with refused(InputError, "--json", "folder"), result_file(tmp_path, "--json"):
        pytest.fail("the simulation would have started")
    with refused(InputError, "--json", "way"), result_file(tmp_path / "file/x", "--json"):
        pytest.fail("the simulation would have started")


def test_names_of_schedulers_become_names_of_files() -> None:
    assert file_name("pass-through") == "pass-through"
    assert file_name("some/where/own.py:Greedy") == "some-where-own.py-Greedy"
    assert file_name("learned:a/best.npz") != file_name("learned:b/best.npz")


def test_a_result_that_is_there_stays_unless_it_is_to_be_replaced(comparison: Comparison, tmp_path: Path) -> None:
    comparison.save(tmp_path / "a")
    (tmp_path / "a" / "result.json").write_text("good")
    with refused(InputError, "--overwrite", "folder"):
        comparison.save(tmp_path / "a")
    assert (tmp_path / "a" / "result.json").read_text() == "good"
    comparison.save(tmp_path / "a", overwrite=True)
    assert (tmp_path / "a" / "result.json").read_text() != "good"


def test_a_folder_that_nobody_named_is_a_new_one(tmp_path: Path) -> None:
    for expected in ("Toy", "Toy-2", "Toy-3"):
        with ResultFolder(tmp_path / "Toy", numbered=True) as results:
            (results.staging / "result.json").write_text(expected)
            results.publish()
        assert results.path == tmp_path / expected
    assert [(tmp_path / name / "result.json").read_text() for name in listing(tmp_path)] == listing(tmp_path)


def test_two_runs_at_once_get_two_folders(tmp_path: Path) -> None:
    with ResultFolder(tmp_path / "Toy", numbered=True) as slow, ResultFolder(tmp_path / "Toy", numbered=True) as fast:
        for name, results in (("fast", fast), ("slow", slow)):
            (results.staging / "result.json").write_text(name)
            results.publish()
    assert (fast.path.name, slow.path.name) == ("Toy", "Toy-2")
    assert (tmp_path / "Toy" / "result.json").read_text() == "fast"
    assert (tmp_path / "Toy-2" / "result.json").read_text() == "slow"


def test_result_files_are_refused_and_pages_replaced(tmp_path: Path) -> None:
    path, docs = tmp_path / "x.json", tmp_path / "x.md"
    path.write_text("good")
    docs.write_text(f"{PAGE}old")
    with refused(InputError, "--json", "x.json", "--overwrite"), writing(("--json", path), ("--docs", docs)):
        pytest.fail("the simulation would have started")
    assert (path.read_text(), docs.read_text()) == ("good", f"{PAGE}old")
    with writing(("--json", path), ("--docs", docs), overwrite=True) as write:
        write("--json", "new")
        assert path.read_text() == "good", "it is replaced when everything is written"
        write("--docs", "new")
    assert (path.read_text(), docs.read_text()) == ("new", "new")
    with refused(InputError, "--docs", "x.json"), writing(("--docs", path), overwrite=True):
        pytest.fail("a page would have replaced a result")


PAGE = "# A page\n\n<!-- Generated by `gpusched draw --docs`; do not edit. -->\n"


def test_a_page_replaces_an_earlier_one_of_its_command_and_what_is_beside_that(tmp_path: Path) -> None:
    docs = tmp_path / "deep" / "x.md"
    for content in ("old", "new"):
        write_page(docs, {"x.md": f"{PAGE}{content}", "x.svg": content}, [tmp_path / "r.json"])
    assert docs.read_text() == f"{PAGE}new"
    assert (docs.parent / "x.svg").read_text() == "new"


@pytest.mark.parametrize(
    ("there", "docs", "inputs", "message"),
    [
        ({}, "x.csv", [], "x.csv: a page is written as Markdown"),
        ({"x.md": "notes"}, "x.md", [], "x.md: is there already and no page of a command"),
        (
            {"x.md": PAGE.replace("draw", "rank-page")},
            "x.md",
            [],
            "there already and a page of gpusched lab page rankings",
        ),
        ({"x.md": PAGE, "x.svg": "figure"}, "x.md", ["x.svg"], "x.svg is one of the files that it is made from"),
        ({"x.svg": "figure"}, "x.md", [], "x.svg, which belongs beside it, is there already"),
    ],
)
def test_a_page_replaces_nothing_else(
    there: dict[str, str], docs: str, inputs: list[str], message: str, tmp_path: Path
) -> None:
    for name, content in there.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        write_page(tmp_path / docs, {docs: PAGE, "x.svg": "new"}, [tmp_path / name for name in inputs])
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == there


def test_a_file_that_another_run_writes_is_refused_until_that_ends_however_it_does(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    hold = "from pathlib import Path\nfrom gpusched_env.experiments.lib.files import held\n"
    hold += f"with held(Path({str(path)!r}), '--json'):\n    print('held', flush=True)\n    input()\n"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with refused(InputError, "--json", "r.json"), held(path, "--json"):
            pass
        other.kill()
    with held(path, "--json"), refused(InputError, "run"), held(path, "--json"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_two_runs_into_one_folder(tmp_path: Path) -> None:
    with (
        ResultFolder(tmp_path / "a"),
        refused(InputError, "--out", "run"),
        ResultFolder(tmp_path / "a"),
    ):
        pass
    with ResultFolder(tmp_path / "a"):
        pass
