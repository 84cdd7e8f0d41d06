"""Commands that are killed in the middle and given again: what comes out is as if nothing had happened.

Of comparisons, rankings and trainings see ``test_command_line.py`` here, and ``tests/agents/training/test_resume.py``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from gpusched_env.experiments.cli import main
from gpusched_env.scenarios.scenario import load_scenario
from tests.robustness.test_command_line import errors, kill_when, run

TUNE = ("tune", "few.yaml", "--schedulers", "exclusive,preemptive-priority", "--trials", "12", "--workers", "1")
SWEEP = (
    *("lab", "search", "Toy", "--algo", "a2c", "--trials", "3", "--timesteps", "64", "--envs", "4"),
    *("--set", "n_steps=8", "--set", "validation_seeds=1"),
)
TRAIN = (
    *("train", "Toy", "--algo", "a2c", "--timesteps", "64", "--envs", "4", "--baselines", "none"),
    *("--set", "n_steps=8", "--set", "validation_seeds=1"),
)
LOADS = ("compare", "Toy", "--schedulers", "sjf,fifo", "--seeds", "2", "--workers", "1", "--sweep", "load=0.5,1,2")


def few(folder: Path) -> None:
    """``PriorityFill`` with two training workloads, for 20 ms."""
    scenario = load_scenario("PriorityFill", horizon_us=20_000.0)
    assert scenario.workload_sets is not None
    sets = msgspec.structs.replace(scenario.workload_sets, train=scenario.workload_sets.train[:2])
    plain = msgspec.to_builtins(msgspec.structs.replace(scenario, workload_sets=sets))
    (folder / "few.yaml").write_text(yaml.safe_dump(yaml.safe_load(json.dumps(plain))))


@pytest.mark.long
def test_a_killed_search_for_options_goes_on_to_the_same_result(tmp_path: Path) -> None:
    few(tmp_path)
    kill_when((tmp_path / "killed.json").exists, *TUNE, "--json", "killed.json", cwd=tmp_path)
    begun = json.loads((tmp_path / "killed.json").read_bytes())["trials"]["preemptive-priority"]
    assert 1 <= len(begun) < 12
    assert run(*TUNE, "--json", "killed.json", "--resume", cwd=tmp_path)[0] == 0
    assert run(*TUNE, "--json", "whole.json", cwd=tmp_path)[0] == 0
    killed, whole = (json.loads((tmp_path / f"{name}.json").read_bytes()) for name in ("killed", "whole"))
    assert killed["trials"] == whole["trials"]
    assert not list(tmp_path.glob(".*.partial"))


@pytest.mark.long
def test_a_killed_sweep_keeps_its_trials_and_replaces_the_one_under_way(tmp_path: Path) -> None:
    """Later trials draw other hyper-parameters than those of a sweep that was not killed, as ``--help`` says."""
    kill_when((tmp_path / "killed" / "trials" / "0001").exists, *SWEEP, "--out", "killed", cwd=tmp_path)
    assert not (tmp_path / "killed" / "sweep.json").exists()
    assert run(*SWEEP, "--out", "killed", cwd=tmp_path)[0] == 0
    assert run(*SWEEP, "--out", "whole", cwd=tmp_path)[0] == 0
    killed, whole = (trials(tmp_path / name) for name in ("killed", "whole"))
    assert [trial["state"] for trial in killed] == ["complete", "failed", "complete", "complete"]
    assert [trial["state"] for trial in whole] == ["complete"] * 3
    assert {**killed[0], "folder": None} == {**whole[0], "folder": None}
    assert len({str(trial["drawn"]) for trial in killed}) == 4


def trials(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "sweep.json").read_bytes())["trials"]
    return found


@pytest.mark.long
def test_a_killed_comparison_over_a_load_leaves_nothing_for_ever(tmp_path: Path) -> None:
    def staged() -> list[Path]:
        return list(tmp_path.glob(".curve.*.partial"))

    kill_when(lambda: bool(staged()), *LOADS, "--out", "curve", cwd=tmp_path)
    assert staged()
    assert not (tmp_path / "curve").exists()
    assert run(*LOADS, "--out", "curve", cwd=tmp_path)[0] == 0
    assert (tmp_path / "curve" / "result.json").exists()
    assert not staged(), "what a dead process left is removed"


@pytest.mark.long
@pytest.mark.parametrize(("command", "again"), [(TRAIN, ("--resume",)), (SWEEP, ())], ids=["train", "sweep"])
def test_what_a_full_disk_ended_goes_on(command: tuple[str, ...], again: tuple[str, ...], tmp_path: Path) -> None:
    # No file may become larger than 200 KiB: a database has room then, a checkpoint and a model have none.
    status, _, text = run(*command, "--out", "out", cwd=tmp_path, before="ulimit -f 200;")
    assert status == 2
    (line,) = errors(text)
    assert "File too large" in line
    assert run(*command, "--out", "out", *again, cwd=tmp_path)[0] == 0


@pytest.mark.parametrize("command", [TRAIN, SWEEP], ids=["train", "sweep"])
def test_a_folder_that_cannot_be_made_is_one_line(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpusched", *command, "--out", "/dev/null/out"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    (line,) = errors(capsys.readouterr().err)
    assert "/dev/null/out" in line
