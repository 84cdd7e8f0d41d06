"""The command line: what it prints and writes, its exit statuses, and that it starts quickly."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpusched_env.workload.workload import OpKind, Segment, read_workload
from tests.conftest import Run
from tests.workload.execution_traces import launched, node, operator, operators, tensor
from tests.workload.kineto_traces import write


@pytest.fixture
def compare(gpusched: Run, fake: Callable[[str], str]) -> Run:
    """``gpusched compare Toy`` with a fake device and scheduler."""

    def run(*options: str, device: str = "FakeDevice") -> int:
        return gpusched(
            *("compare", "Toy", "--schedulers", f"{fake('Patient')},{fake('Eager')}", "--simulator", fake(device)),
            *("--workers", "1", *options),
        )

    return run


def test_compare_prints_a_table_and_writes_everything(
    compare: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare("--seeds", "2", "--seed", "5", "--json", "copy.json") == 0
    printed = capsys.readouterr()
    assert "fakes.py:Patient" in printed.out
    assert "Written to results/Toy" in printed.out
    assert printed.err == ""
    written = (tmp_path / "results" / "Toy" / "result.json").read_text()
    assert (tmp_path / "copy.json").read_text() == written
    result = json.loads(written)
    assert result["seeds"] == [5, 6]
    assert result["provenance"]["command"].startswith("gpusched compare Toy --schedulers ")


def test_results_are_never_replaced_unasked(
    compare: Run, gpusched: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("results/Toy", "results/Toy-2"):
        assert compare("--seeds", "1") == 0
        assert f"Written to {folder}:" in capsys.readouterr().out
    first = (tmp_path / "results" / "Toy" / "result.json").read_bytes()
    assert compare("--seeds", "2", "--out", "results/Toy") == 2
    assert "holds a result already; name another folder, or replace it with --overwrite" in capsys.readouterr().err
    assert (tmp_path / "results" / "Toy" / "result.json").read_bytes() == first
    assert compare("--seeds", "2", "--out", "results/Toy", "--overwrite") == 0
    assert (tmp_path / "results" / "Toy" / "result.json").read_bytes() != first
    (tmp_path / "kept.json").write_text("good")
    for command in (
        ("compare", "Toy", "--json", "kept.json"),
        ("lab", "rank", "Toy", "--json", "kept.json"),
        ("tune", "Toy", "--json", "kept.json"),
        ("lab", "validate", "--live", "Toy", "--json", "kept.json"),
        ("reproduce", "recordings", "--json", "kept.json"),
        ("lab", "bench", "--json", "kept.json"),
    ):
        assert gpusched(*command) == 2, command
        error = capsys.readouterr().err
        assert "kept.json: is there already; name another file, or replace it with --overwrite" in error, command
    assert (tmp_path / "kept.json").read_text() == "good"


def test_flags_and_settings_reach_the_scenario(compare: Run, tmp_path: Path) -> None:
    status = compare(
        *("--seeds", "1", "--out", "here", "--horizon-us", "300", "--decision-us", "2"),
        *("--set", "tenants.urgent.weight=9", "--set", "reward.energy=1", "--gpu", "h100-sxm"),
    )
    assert status == 0
    scenario = json.loads((tmp_path / "here" / "result.json").read_text())["scenario"]
    assert (scenario["horizon_us"], scenario["decision_us"], scenario["gpu"]) == (300.0, 2.0, "h100-sxm")
    assert scenario["tenants"][1]["weight"] == 9.0
    assert scenario["reward"]["energy"] == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--schedulers", "pass-thru"), "did you mean 'pass-through'"),
        (("--simulator", "cuda9"), "unknown device 'cuda9'"),
        (("--set", "horizn_us=1"), "did you mean 'horizon_us'"),
        (("--gpu", "h100sxm"), "did you mean 'h100-sxm'"),
        (("--out", "file"), "is a file; name a folder"),
        (("--json", "file/x.json"), "a file is in the way"),
        (("--window-us", "9", "3"), "must lie within"),
    ],
)
def test_wrong_input_is_one_red_line_and_writes_nothing(
    compare: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    (tmp_path / "file").write_text("")
    assert compare(*options) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert message in printed.err
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_an_unknown_scenario_is_named(gpusched: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpusched("compare", "Toyy") == 2
    assert "did you mean 'Toy'" in capsys.readouterr().err


def test_a_deadlock_has_its_own_status(compare: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(device="StuckDevice") == 3
    assert "kernel 3 waits for kernel 4" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_jobs_that_never_complete_still_make_a_report(compare: Run, tmp_path: Path) -> None:
    assert compare(device="IdleDevice") == 0
    assert (tmp_path / "results" / "Toy" / "report.html").stat().st_size > 1_000_000


@pytest.mark.long
def test_an_interrupt_keeps_and_marks_what_is_finished(fake: Callable[[str], str], tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", "from gpusched_env.experiments.cli import main; main()"),
            *("compare", "Toy", "--schedulers", fake("Patient"), "--simulator", fake("SlowDevice"), "--seeds", "3"),
            *("--workers", "2", "--out", str(tmp_path / "out"), "--json", str(tmp_path / "copy.json")),
        ],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Two workers: seed 2 starts when seed 0 has finished. Seeds 1 and 2 never end.
    while not (tmp_path / "started-2").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate()
    assert process.returncode == 130
    assert "1 of 3 episodes finished" in complaint
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["interrupted"] is True
    assert [s["seeds"] for s in result["schedulers"].values()] == [[0]]
    assert json.loads((tmp_path / "copy.json").read_text()) == result


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("scenarios", "Toy "),
        ("schedulers", "pass-through "),
        ("gpus", "h100-sxm "),
        ("workloads", "resnet50_infer_b1 "),
    ],
)
def test_listings_have_a_line_each(
    gpusched: Run, capsys: pytest.CaptureFixture[str], command: str, expected: str
) -> None:
    assert gpusched("list", command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(expected) and len(line) > len(expected) + 10 for line in lines)
    games = itertools.accumulate(line.startswith("Of ") for line in lines)
    assert len({(game, line.split()[0]) for game, line in zip(games, lines, strict=True)}) == len(lines)


def test_schedulers_are_listed_with_their_options(gpusched: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpusched("list", "schedulers") == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["mps"].endswith("client_priority=False) [reads: priorities; may: partition]")
    assert "(epsilon_us=3.0, queues=10, " in lines["fikit"]
    assert lines["random"].endswith(". [reads: nothing]")


def test_options_of_schedulers_reach_a_comparison(gpusched: Run, tmp_path: Path) -> None:
    schedulers = "fikit(interception_us=0),fikit(interception_us=50)"
    assert gpusched("compare", "Toy", "--schedulers", schedulers, "--seeds", "1", "--workers", "1", "--out", "o") == 0
    found = json.loads((tmp_path / "o" / "result.json").read_text())["schedulers"]
    assert list(found) == schedulers.split(",")
    free, dear = (found[name]["figures"]["cost"]["mean"] for name in found)
    assert dear > free + 0.1


def test_version(gpusched: Run, capsys: pytest.CaptureFixture[str]) -> None:
    from gpusched_env import __version__

    assert gpusched("--version") == 0
    assert capsys.readouterr().out == f"gpusched-env {__version__}\n"


def test_help_loads_no_heavy_library() -> None:
    code = (
        "import sys; sys.argv = ['gpusched', '--help']\n"
        "from gpusched_env.experiments.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numba', 'torch', 'pandas', 'plotly', 'pyarrow', 'perfetto', 'matplotlib', 'simpy'}\n"
        "print('loaded:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "compare" in done.stdout
    assert done.stdout.splitlines()[-1] == "loaded: []"


def test_import_trace_writes_a_workload_and_says_what_it_holds(
    gpusched: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = {"grid": [264, 1, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 0}
    args = {"device": 0, "stream": 7, "correlation": 1, **shape}
    events = [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 10, "dur": 5, "args": {"correlation": 1}},
        {"ph": "X", "cat": "kernel", "name": "saxpy", "ts": 20.0, "dur": 30.0, "args": args},
    ]
    (tmp_path / "net.pt.trace.json").write_text(json.dumps({"traceEvents": events}))
    assert gpusched("import", "trace", "net.pt.trace.json", "--gpu", "h100-sxm", "--name", "mine") == 0
    printed = capsys.readouterr().out
    assert "1 an iteration, 1 distinct" in printed
    assert "mine.workload.json.gz" in printed
    workload = read_workload(tmp_path / "mine.workload.json.gz")
    assert (workload.name, workload.kernels[0].name, workload.kernels[0].duration_us) == ("mine", "saxpy", 30.0)
    assert gpusched("import", "trace", "net.pt.trace.json", "--gpu", "h100-sxm", "--out", "plain.json") == 0
    assert read_workload(tmp_path / "plain.json").kernels == workload.kernels


def test_import_trace_joins_an_execution_trace(gpusched: Run, tmp_path: Path) -> None:
    trace = write(tmp_path / "net.json", [operator(1, "aten::neg"), *launched(1, 1)])
    operators(tmp_path, node(1, "aten::neg", [tensor(5, [4])], [tensor(6, [4])]))
    assert gpusched("import", "trace", trace.name, "--execution-trace", "operators.json", "--out", "mine.json") == 0
    (op,) = (op for op in read_workload(tmp_path / "mine.json").variants[0].ops if op.kind is OpKind.KERNEL)
    assert (op.reads, op.writes) == ((Segment(5, 0, 16),), (Segment(6, 0, 16),))


def test_a_trace_that_cannot_be_imported_leaves_no_file(
    gpusched: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "half.json").write_text('{"traceEvents": [')
    assert gpusched("import", "trace", "half.json") == 2
    assert "half.json" in capsys.readouterr().err
    assert gpusched("import", "trace", "half.json", "--out", "x.txt") == 2
    assert "must end in .json" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["half.json"]
