"""The command line on bad days: killed, without room, without a home, in a narrow or an old-fashioned terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import gpusched_env
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.ranking.result import read_ranking
from gpusched_env.experiments.ranking.run import rank
from tests.compiled import compile_all
from tests.conftest import Run

PROGRAM = [sys.executable, "-c", "from gpusched_env.experiments.cli import main; main()"]
COMPARE = ["compare", "Toy", "--schedulers", "sjf,fifo", "--seeds", "2", "--workers", "1"]
RANK = ["lab", "rank", "Toy", "--schedulers", "sjf,fifo,random", "--seeds", "20", "--workers", "1"]
FILES = {"jobs.parquet", "kernels.parquet", "report.html", "result.json", "timelines.npz"}


def environment(**more: str | None) -> dict[str, str]:
    """That of this process with the package on its path; ``None`` removes a variable."""
    found = {**os.environ, "PYTHONPATH": str(Path(gpusched_env.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    for name, value in more.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = value
    return found


def run(*arguments: str, cwd: Path, before: str = "", after: str = "", **env: str | None) -> tuple[int, str, str]:
    """Exit status, output and errors of a command; ``before`` and ``after`` are shell text around it."""
    line = f'{before} "$@" {after}'
    done = subprocess.run(
        ["bash", "-c", line, "bash", *PROGRAM, *arguments],
        cwd=cwd, env=environment(**env), capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def errors(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("error:")]


def kill_when(seen: Callable[[], bool], *arguments: str, cwd: Path) -> None:
    """Start a command and kill it, with its workers, once ``seen`` is true."""
    process = subprocess.Popen([*PROGRAM, *arguments], cwd=cwd, env=environment(), start_new_session=True)
    while not seen():
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_killed_comparison_leaves_nothing_for_ever(tmp_path: Path) -> None:
    out = tmp_path / "results" / "toy"

    def staged() -> bool:
        return any(out.parent.glob(".toy.*.partial"))

    kill_when(staged, *COMPARE, "--out", str(out), cwd=tmp_path)
    assert staged()
    assert not out.exists()
    assert CliRunner().invoke(app, [*COMPARE, "--out", str(out)]).exit_code == 0
    assert {file.name for file in out.iterdir()} == FILES
    assert not staged(), "what a dead process left is removed"


def test_a_killed_ranking_goes_on_to_the_same_result(tmp_path: Path) -> None:
    def begun() -> bool:
        return (tmp_path / "killed.json").exists()

    kill_when(begun, *RANK, "--json", "killed.json", cwd=tmp_path)
    assert not read_ranking(tmp_path / "killed.json").complete
    assert run(*RANK, "--json", "killed.json", "--resume", cwd=tmp_path)[0] == 0
    assert CliRunner().invoke(app, [*RANK, "--json", str(tmp_path / "whole.json")]).exit_code == 0
    killed, whole = (read_ranking(tmp_path / f"{name}.json") for name in ("killed", "whole"))
    assert killed.episodes == whole.episodes
    assert not list(tmp_path.glob(".*.partial"))


@pytest.mark.parametrize(
    ("arguments", "target"),
    [((*COMPARE, "--out", "out"), "out"), ((*RANK, "--json", "ranking.json"), "ranking.json")],
)
def test_a_full_disk_is_one_line_and_leaves_nothing(arguments: tuple[str, ...], target: str, tmp_path: Path) -> None:
    # No file may become larger than a KiB.
    status, _, text = run(*arguments, cwd=tmp_path, before="ulimit -f 1;")
    assert status == 2
    (line,) = errors(text)
    assert target in line
    assert "File too large" in line
    left = list(tmp_path.iterdir())
    # A ranking grows: its first version, without episodes, still had room.
    assert not left or read_ranking(left[0]).episodes == []


@pytest.mark.parametrize(
    "arguments",
    [
        (
            "list",
            "scenarios",
        ),
        ("--help",),
        ("--version",),
        (*COMPARE, "--out", "out"),
    ],
)
def test_a_full_standard_output_is_one_line_that_names_it(arguments: tuple[str, ...], tmp_path: Path) -> None:
    status, _, text = run(*arguments, cwd=tmp_path, after=">/dev/full")
    assert status == 2
    assert text.splitlines()[-1] == "error: the standard output cannot be written (No space left on device)"
    assert "Exception ignored" not in text
    assert not list(tmp_path.iterdir())
    assert run(*arguments, cwd=tmp_path, after=">/dev/full 2>&1")[0] == 2


@pytest.mark.parametrize("place", ["/proc/results", "/dev/null/results"])
def test_a_place_that_cannot_be_written_is_found_before_anything_runs(place: str, tmp_path: Path) -> None:
    status, output, text = run(*COMPARE, "--out", place, cwd=tmp_path)
    assert status == 2
    assert place in errors(text)[0]
    assert "cannot be written" in errors(text)[0]
    assert not output


@pytest.mark.parametrize(
    "arguments",
    [
        (
            "list",
            "schedulers",
        ),
        ("compare", "--help"),
        tuple(COMPARE),
    ],
)
def test_a_reader_that_hangs_up_is_no_error(arguments: tuple[str, ...], tmp_path: Path) -> None:
    _, _, text = run(*arguments, cwd=tmp_path, after="| true")
    assert "Broken pipe" not in text
    assert "Exception" not in text


@pytest.mark.long
@pytest.mark.parametrize(
    "env",
    [{"HOME": None, "COLUMNS": "20"}, {"HOME": "/nonexistent", "LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0"}],
    ids=str,
)
def test_without_a_home_in_an_old_or_a_narrow_terminal(env: dict[str, str | None], tmp_path: Path) -> None:
    status, output, text = run(*COMPARE, "--out", "out", cwd=tmp_path, **env)
    assert status == 0, text
    assert "sjf" in output
    assert {file.name for file in (tmp_path / "out").iterdir()} == FILES


@pytest.fixture(scope="module")
def compiled() -> None:
    """LLVM ends the process when it runs out of memory."""
    compile_all()


@pytest.mark.parametrize("kib", [300_000, 600_000, 1_048_575])
def test_too_little_memory_to_start_is_said_at_once(kib: int, tmp_path: Path) -> None:
    status, _, complaint = run(*COMPARE, "--out", "out", cwd=tmp_path, before=f"ulimit -v {kib};")
    assert status == 2
    (line,) = errors(complaint)
    assert f"{kib // 1024} MiB of address space" in line
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("kib", [1_048_576, 1_200_000])
def test_little_memory_never_half_writes_a_result(kib: int, tmp_path: Path) -> None:
    command = ["bash", "-c", f'ulimit -v {kib}; exec "$@"', "bash", *PROGRAM, *COMPARE, "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode == 0:
        assert {file.name for file in (tmp_path / "out").iterdir()} == FILES
    else:
        assert done.stderr
        assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_two_processes_share_a_cold_cache(tmp_path: Path) -> None:
    env = environment(NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    commands = [[*PROGRAM, *COMPARE, "--out", str(tmp_path / name)] for name in ("one", "two")]
    processes = [subprocess.Popen(command, cwd=tmp_path, env=env) for command in commands]
    assert [process.wait() for process in processes] == [0, 0]
    one, two = ((tmp_path / name / "jobs.parquet").read_bytes() for name in ("one", "two"))
    assert one == two


@pytest.mark.slow
def test_nothing_can_be_cached(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code = 'import gpusched_env; print(repr(gpusched_env.run_episode("Toy", "sjf")))'
    env = environment(NUMBA_CACHE_DIR=str(tmp_path / "file" / "cache"))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert "<Episode of Toy, seed 0: 0.51 ms, cost 1.14>" in done.stdout, done.stderr
    assert done.stderr.count("what was compiled cannot be kept") == 1


def test_paths_with_spaces_and_signs(tmp_path: Path) -> None:
    folder = tmp_path / "größe & co 日本"
    folder.mkdir()
    (folder / "mine é.yaml").write_text(
        "name: Mine\ngpu: toy-4sm\nhorizon_us: 2000\nreward: {turnaround: 1}\n"
        "tenants:\n  - {name: 'ten ant', workload: toy_batch, arrivals: {kind: closed-loop}, jobs: 2}\n"
    )
    (folder / "own one.py").write_text(
        "from gpusched_env.baselines.fifo import Fifo\n\n\nclass Mine(Fifo):\n    '''Of a file.'''\n"
    )
    arguments = [
        "compare",
        "mine é.yaml",
        "--schedulers",
        "fifo,own one.py:Mine",
        "--seeds",
        "2",
        "--out",
        "resul täte",
    ]
    status, _, text = run(*arguments, "--traces", cwd=folder)
    assert status == 0, text
    written = {file.name for file in (folder / "resul täte").iterdir()}
    assert written == {*FILES, "fifo.perfetto-trace", "own-one.py-Mine.perfetto-trace"}


@pytest.mark.parametrize(
    "spec",
    ["", "(", "mps(", "mps)", "mps(share)", "mps(share=)", "mps(=5)", "mps(share=x)", "mps(share=5,share=6)", ":", "a:",
     ":B", "no.py:Such", "learned:", "learned:nothing.npz", "learned:/", "../..:X", "mps(share=1e999)", "\x00:\x00",
     "ü"],
)  # fmt: skip
def test_wrong_schedulers_are_one_line(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpusched_env.errors import InputError
    from gpusched_env.experiments.compare import compare

    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        compare("Toy", [spec], seeds=1, workers=1)
    assert len(str(caught.value)) < 2_000
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", ["truncated", "flipped", "other", "empty", "text"])
def test_damaged_result_files_are_not_continued(
    damage: str, gpusched: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ranking.json"
    rank("Toy", ["sjf"], 2, path=path, workers=1)
    whole = path.read_bytes()
    damaged = {
        "truncated": whole[: len(whole) // 2],
        "flipped": whole.replace(b'"cost":', b'"cost":"', 1),
        "other": b'{"schema":"gpusched-curves/1"}',
        "empty": b"",
        "text": b"\xff\xfe\x00ranking",
    }[damage]
    path.write_bytes(damaged)
    assert gpusched("lab", "rank", "Toy", "--schedulers", "sjf", "--seeds", "3", "--json", str(path), "--resume") == 2
    assert "ranking.json" in errors(capsys.readouterr().err)[0]
    assert path.read_bytes() == damaged, "it stays as it was"
