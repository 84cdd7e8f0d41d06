"""``gpusched lab bench --threads``: the loop is the same with any number of threads, figures are medians of rounds."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpusched_env.experiments.benchmarks import threads
from gpusched_env.experiments.benchmarks.environments import RandomLoop
from gpusched_env.experiments.benchmarks.threads import Speed, markdown, results_dict, thread_speeds
from gpusched_env.experiments.benchmarks.timing import Elapsed
from gpusched_env.experiments.cli import main


def test_any_number_of_threads_plays_the_same() -> None:
    loops = [RandomLoop(5, count, scenario="MultiTenantBurst", autoreset_mode="SAME_STEP") for count in (1, 3)]
    for loop in loops:
        assert loop.play(200).count == 1000
    one, three = (loop.env for loop in loops)
    first, second = (env.step(np.zeros(5, np.int64)) for env in (one, three))
    np.testing.assert_equal(first, second)
    infos = first[-1]
    assert not infos["illegal_actions"].any(), "all actions are legal"
    assert len(np.unique(infos["time_us"])) > 1, "episodes drift apart"
    for env in (one, three):
        env.close()


def test_figures_are_medians_of_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    # Three rounds of two numbers of threads, the second round three times as slow.
    seconds = {1: [4.0, 12.0, 4.0], 2: [2.0, 6.0, 2.5]}

    class Loop:
        def __init__(self, copies: int, count: int, **options: str) -> None:
            self.env = SimpleNamespace(close=lambda: None)
            self.turns = iter([0.0, *seconds[count]])

        def play(self, steps: int) -> Elapsed:
            return Elapsed(steps, next(self.turns), 0.0, 0.0)

    monkeypatch.setattr(threads, "RandomLoop", Loop)
    told: list[int] = []
    speeds = thread_speeds([1, 2], 10, 3, scenarios=["Toy"], steps=100, on_progress=told.append)
    assert speeds == [Speed("Toy", 10, 1, 250.0, 1.0), Speed("Toy", 10, 2, 400.0, 2.0)]
    assert told == [1, 2, 3, 4, 5, 6]
    assert "| 2 | 400 (2.00 x) |" in markdown(results_dict(speeds, 3))


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    """The exit status of ``gpusched lab bench``."""
    monkeypatch.setattr(sys, "argv", ["gpusched", "bench", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Brief(RandomLoop):
        def play(self, steps: int) -> Elapsed:
            return super().play(2)

    monkeypatch.setattr(threads, "RandomLoop", Brief)
    monkeypatch.chdir(tmp_path)
    files = ("--json", "threads.json", "--docs", "threads.md")
    assert not command(monkeypatch, "--threads", "1,2", "--copies", "4", "--rounds", "1", *files)
    data = json.loads((tmp_path / "threads.json").read_text())
    measured = [(speed["scenario"], speed["threads"]) for speed in data["speeds"]]
    assert measured == [(scenario, count) for scenario in threads.SCENARIOS for count in (1, 2)]
    assert (tmp_path / "threads.md").read_text().startswith("# Threads")
    assert "PriorityFill" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", ["0", "1,,2", "two"])
def test_numbers_of_threads_are_checked(
    wrong: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "--threads", wrong) == 2
    assert f"--threads is '{wrong}'" in capsys.readouterr().err
