"""The fuzzer finds faults, makes them small, plays them again, and raises no false alarm."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gpusched_env.devices import device_names
from gpusched_env.devices.reference.device import ReferenceDevice
from gpusched_env.errors import InputError
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.fuzz.case import (
    Counterexample,
    Difference,
    Script,
    read_counterexample,
    write_counterexample,
)
from gpusched_env.experiments.fuzz.draw import draw_case
from gpusched_env.experiments.fuzz.duel import play
from gpusched_env.experiments.fuzz.moves import PreemptMove
from gpusched_env.experiments.fuzz.run import counterexample, fuzz, write_counterexamples
from gpusched_env.scheduling.device import Device
from tests.experiments import broken_devices as broken

BROKEN = Path(broken.__file__)
FAULTS: list[tuple[type[Device], str]] = [
    (broken.Misordered, "view"),
    (broken.Asleep, "time"),
    (broken.LateCopies, "time"),
    (broken.Careless, "error IllegalCommand"),
    (broken.Resentful, "time"),
    (broken.Leaky, "view"),
    (broken.Forgetful, "view"),
    (broken.Wasteful, "costs"),
    (broken.Crowded, "error IndexError"),
    (broken.Mixed, "timeline"),
]
"""A device, and the kind of difference that it shows first."""


@pytest.mark.parametrize(("device", "kind"), FAULTS, ids=[device.__name__ for device, _ in FAULTS])
def test_faults_are_found_within_a_few_episodes(device: type[Device], kind: str) -> None:
    tally = fuzz(device, episodes=100, enough=1)
    assert [difference.kind for difference in tally.differences.values()] == [kind]
    assert tally.episodes == max(tally.differences) + 1


def test_equal_devices_do_not_differ() -> None:
    tally = fuzz("reference", episodes=60, seed=1)
    assert tally.differences == {}
    assert (tally.episodes, tally.interrupted) == (60, False)
    # What is compared is not empty.
    assert tally.counts["kernels finished"] > 100
    assert tally.counts["blocks of finished kernels"] > 10_000
    assert {
        "refused commands", "back to a snapshot", "kernels side by side", "several waves", "urgent streams",
        "preempt commands", "partition commands", "preempted kernels that finished", "rejected jobs", "deadlock",
        "running graphs", "running children", "pending launches wait for pending ones",
        "illegal actions", "workload done", "horizon", "kernels end at the same time", "blocks saved on some SMs",
    } <= set(tally.features)  # fmt: skip


def test_a_counterexample_is_small() -> None:
    """Two equal tenants whose kernels meet in the queue are all that it takes to see the order."""
    tally = fuzz(broken.Misordered, episodes=60, enough=1)
    example = counterexample(tally, *tally.differences, broken.Misordered, "reference", seconds=math.inf)
    case = example.case
    assert len(case.scenario.tenants) <= 3
    assert isinstance(case.player, Script)
    assert len(case.player.moves) <= 2
    assert sum(len(v.ops) for w in case.workloads.values() for v in w.variants) <= 4
    assert play(case, broken.Misordered, ReferenceDevice).difference == example.difference
    assert play(case, ReferenceDevice, ReferenceDevice).difference is None


def test_what_a_difference_needs_is_kept() -> None:
    """No wake-up after a preemption shows only where there is one."""
    tally = fuzz(broken.Asleep, episodes=60, enough=1)
    example = counterexample(tally, *tally.differences, broken.Asleep, "reference", seconds=math.inf)
    assert isinstance(example.case.player, Script)
    assert sum(isinstance(move, PreemptMove) for move in example.case.player.moves) == 1
    assert (example.difference.kind, example.repeats) == ("time", True)


def test_a_difference_that_does_not_repeat_is_stored_as_seen() -> None:
    tally = fuzz(broken.Wasteful, episodes=60, enough=1)
    (episode,) = tally.differences
    example = counterexample(tally, episode, ReferenceDevice, "reference", seconds=math.inf)
    assert not example.repeats
    assert example.difference == tally.differences[episode]
    assert example.case == draw_case(0, episode).self_contained()


def test_one_counterexample_of_each_kind(tmp_path: Path) -> None:
    tally = fuzz(broken.Crowded, episodes=60, enough=3)
    assert {d.kind for d in tally.differences.values()} == {"error IndexError"}
    names = write_counterexamples(tally, broken.Crowded, "reference", tmp_path, seconds=0.0)
    assert names == [f"seed0-episode{min(tally.differences)}.json"]
    assert [file.name for file in tmp_path.iterdir()] == names


def test_workers_find_the_same() -> None:
    device = f"{BROKEN}:Crowded"
    alone = fuzz(device, episodes=8, workers=1, enough=100)
    together = fuzz(device, episodes=8, workers=2, enough=100)
    assert together.differences == alone.differences != {}
    assert (together.counts, together.features) == (alone.counts, alone.features)


def test_a_process_that_dies_is_told_with_its_episodes() -> None:
    tally = fuzz(f"{BROKEN}:Dying", episodes=10, first=5, workers=2)
    assert "ended unexpectedly" in tally.broken
    assert tally.under_way == [5, 6]


def test_an_episode_that_hangs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tally = fuzz(f"{BROKEN}:Slow", episodes=10, first=4, workers=2, limit_s=0.5)
    assert "ended unexpectedly" in tally.broken
    assert tally.under_way == [4, 5]


def test_an_interrupt_keeps_what_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def interrupt() -> None:
        while not (tmp_path / "started").exists():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    tally = fuzz(broken.Slow, episodes=10, first=3)
    thread.join()
    assert (tally.interrupted, tally.episodes, tally.under_way) == (True, 0, [3])


# ---- the command ---------------------------------------------------------------------------------


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """``gpusched fuzz`` in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, ["fuzz", "--workers", "1", *arguments])


def test_the_command_reports_and_stores_counterexamples(run: Callable[..., Result], tmp_path: Path) -> None:
    broken_one = f"{BROKEN}:Wasteful"
    result = run("--episodes", "5", "--device", broken_one, "--out", "found", "--shrink-s", "2")
    assert result.exit_code == 1
    assert "5 episodes, 5 with a difference" in result.output
    assert "random moves" in result.output
    (file,) = (tmp_path / "found").iterdir()
    assert f"gpusched fuzz --replay found/{file.name}" in result.output
    assert read_counterexample(file).difference.kind == "costs"
    again = run("--replay", str(file), "--trust")
    assert (again.exit_code, "costs.energy_j" in again.output) == (1, True)
    fine = run("--replay", str(file), "--device", "reference")
    assert (fine.exit_code, "no difference between reference and reference" in fine.output) == (0, True)


@pytest.mark.parametrize("part", ["device", "against"])
def test_a_replay_runs_no_code_that_the_file_names(run: Callable[..., Result], tmp_path: Path, part: str) -> None:
    """Neither a file nor a module, unless the user says so: here the code leaves a file behind."""
    ran = tmp_path / "ran"
    (tmp_path / "payload.py").write_text(
        f"from pathlib import Path\nfrom gpusched_env.devices.reference.device import ReferenceDevice as Device\n"
        f"Path({str(ran)!r}).touch()\n"
    )
    difference = Difference(kind="view", where="", step=0, time_us=0.0, expected="", found="")
    names = {"device": "reference", "against": "reference", part: f"{tmp_path / 'payload.py'}:Device"}
    case = draw_case(0, 3).self_contained()
    example = Counterexample(**names, seed=0, episode=3, difference=difference, case=case)
    write_counterexample(example, tmp_path / "case.json")

    refused = run("--replay", "case.json")
    assert isinstance(refused.exception, InputError)
    assert "runs its code. Add --trust" in str(refused.exception)
    assert not ran.exists()
    chosen = run("--replay", "case.json", f"--{part}", "reference")
    assert (chosen.exit_code, ran.exists()) == (0, False)
    trusted = run("--replay", "case.json", "--trust")
    assert (trusted.exit_code, ran.exists()) == (0, True)


def test_without_a_difference_nothing_is_stored(run: Callable[..., Result], tmp_path: Path) -> None:
    result = run("--episodes", "3", "--first", "10", "--device", "reference")
    assert result.exit_code == 0
    assert "reference against reference, seed 0: 3 episodes, no difference" in result.output
    assert list(tmp_path.iterdir()) == []


def test_unknown_devices_are_refused_before_anything_runs(run: Callable[..., Result]) -> None:
    result = run("--device", "quick")
    assert isinstance(result.exception, InputError)
    assert "unknown device 'quick'" in str(result.exception)


# ---- the compiled device -------------------------------------------------------------------------


if "compiled" in device_names():

    def test_compiled_does_as_the_reference() -> None:
        tally = fuzz("compiled", "reference", episodes=60)
        assert tally.differences == {}

    @pytest.mark.slow
    def test_compiled_does_as_the_reference_for_long() -> None:
        tally = fuzz("compiled", "reference", episodes=2000, seed=1, workers=2)
        assert tally.differences == {}
        assert tally.broken == ""
