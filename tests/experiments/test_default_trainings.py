"""What trainings with defaults come to: read from their folders, ended by the limit, and put on a page."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from gpusched_env.agents.training.folder import CurveEntry, LearningCurve
from gpusched_env.experiments import default_trainings
from gpusched_env.experiments.default_trainings import SUMMARY, found_in, train_all
from gpusched_env.experiments.lib.pages import page


def validation(timesteps: int, cost: float) -> CurveEntry:
    return CurveEntry(timesteps=timesteps, cost=cost, costs=[cost], best=True)


def begun(folder: Path, reference: str = "pass-through") -> None:
    """A training that has been validated twice and is not complete."""
    folder.mkdir(parents=True, exist_ok=True)
    points = [validation(1000, 3.0), validation(2000, 1.5), validation(3000, 2.5)]
    curve = LearningCurve(seeds=[0], validations=points, baselines={reference: 2.0, "other": 1.0})
    (folder / "validation.json").write_bytes(msgspec.json.encode(curve))


def test_the_best_validation_counts(tmp_path: Path) -> None:
    assert found_in(tmp_path, "Toy") is None
    begun(tmp_path)
    found = found_in(tmp_path, "Toy")
    assert found is not None
    assert (found.best, found.best_after, found.decisions, found.complete) == (1.5, 2000, 3000, False)
    assert (found.cost, found.change, found.algorithm) == (2.0, pytest.approx(-0.25), "maskable-ppo")
    (tmp_path / "result.json").write_text("{}")
    again = found_in(tmp_path, "Toy")
    assert again is not None
    assert again.complete
    text = page("default-trainings.md.j2", trainings=[found, again])
    assert "| Toy | maskable-ppo | 1.5 | 2 | -25.0 % | 2,000 | 3,000, stopped early |" in text
    assert text.endswith("| 3,000 |\n")


def test_child_launches_have_a_plain_gpu_of_their_own(tmp_path: Path) -> None:
    begun(tmp_path, "baseline-dp")
    found = found_in(tmp_path, "DynamicParallelism")
    assert found is not None
    assert (found.reference, found.cost, found.algorithm) == ("baseline-dp", 2.0, "cma-es")


def test_the_limit_ends_what_runs_and_keeps_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[str] = []
    processes = []

    def start(name: str, out: Path) -> subprocess.Popen[bytes]:
        began.append(name)
        begun(out / name)
        code = (
            "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
        )
        process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE)
        assert process.stdout is not None
        with process.stdout as told:
            told.readline()
        processes.append(process)
        return process

    monkeypatch.setattr(default_trainings, "start", start)
    monkeypatch.setattr(default_trainings, "GRACE_S", 0.1)
    (tmp_path / "KernelGraph").mkdir()
    (tmp_path / "KernelGraph" / "result.json").write_text("{}")
    train_all(tmp_path, ["KernelGraph", "Toy", "ThreeTenants"], limit_s=0.5, jobs=1)
    assert began == ["Toy"], "the complete one is left alone, and there is one at a time"
    assert [process.returncode for process in processes] == [-9]
    assert [one["name"] for one in msgspec.json.decode((tmp_path / SUMMARY).read_bytes())] == ["Toy"]


def test_what_ends_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(name: str, out: Path) -> subprocess.Popen[bytes]:
        begun(out / name)
        return subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)

    monkeypatch.setattr(default_trainings, "start", start)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    train_all(tmp_path, ["Toy", "ThreeTenants"], limit_s=60.0, jobs=1)
    assert [one["name"] for one in msgspec.json.decode((tmp_path / SUMMARY).read_bytes())] == ["Toy", "ThreeTenants"]
