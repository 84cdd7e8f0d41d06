"""The fuzzer finds faults, makes them small, plays them again, and raises no false alarm."""

from __future__ import annotations

import functools
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
    KernelCounterexample,
    Script,
)
from gpusched_env.experiments.fuzz.draw import draw_case
from gpusched_env.experiments.fuzz.duel import play
from gpusched_env.experiments.fuzz.moves.preempt import PreemptMove
from gpusched_env.experiments.fuzz.run import FuzzTally, counterexample, fuzz, write_counterexamples
from gpusched_env.experiments.fuzz.stored import Difference, read_counterexample, write_counterexample
from gpusched_env.experiments.lib.names import new_device
from gpusched_env.scheduling.contract import Device
from tests.experiments import broken_devices as broken
from tests.experiments.pinned import PINNED, pinned_cases

BROKEN = Path(broken.__file__)
FAULTS: list[tuple[type[Device], int, str]] = [
    (broken.Misordered, 31, "view"),
    (broken.Asleep, 189, "time"),
    (broken.LateCopies, 4, "view"),
    (broken.Hasty, 3, "time"),
    (broken.Careless, 12, "error IllegalCommand"),
    (broken.Resentful, 12, "time"),
    (broken.Leaky, 2, "view"),
    (broken.Forgetful, 52, "time"),
    (broken.Wasteful, 7, "costs"),
    (broken.Crowded, 2, "error IndexError"),
    (broken.Mixed, 7, "timeline"),
    (broken.Unordered, 267, "view"),
]
"""A device, a short episode (:mod:`.pinned`) that shows its fault, and the kind of difference that it shows first."""
FULL = (12, 16, 19, 29, 30, 31, 33, 41, 64, 84, 87, 91, 105, 113, 189, 259, 284, 408)
"""Short ones in which, together, everything happens."""
LONG = (1, 14, 22, 23, 25, 26, 27, 28, 38, 42, 43, 44, 46, 50)
"""Those of the first 60 of seed 0 that take longest."""


@pytest.mark.parametrize(("device", "episode", "kind"), FAULTS, ids=[device.__name__ for device, _, _ in FAULTS])
def test_faults_are_found(device: type[Device], episode: int, kind: str) -> None:
    tally = fuzz(device, fuzzing=PINNED, first=episode, episodes=1)
    assert {number: difference.kind for number, difference in tally.differences.items()} == {episode: kind}


def test_a_run_stops_after_enough_differences() -> None:
    tally = fuzz(broken.Wasteful, first=16, episodes=5, enough=2)
    assert list(tally.differences) == [16, 17]
    assert tally.episodes == 2


def test_equal_devices_do_not_differ() -> None:
    tally = FuzzTally("reference", "reference", seed=0)
    for episode in FULL:
        tally.add(episode, play(pinned_cases()[episode], ReferenceDevice, ReferenceDevice))
    assert tally.differences == {}
    # What is compared is not empty.
    assert tally.counts["kernels finished"] > 100
    assert tally.counts["blocks of finished kernels"] > 10_000
    assert {
        "refused commands", "back to a snapshot", "kernels side by side", "several waves", "urgent streams",
        "preempt commands", "partition commands", "preempted kernels that finished", "rejected jobs", "deadlock",
        "running graphs", "running children", "synchronise commands",
        "tiles of several slices", "pending launches wait for pending ones",
        "illegal actions", "workload done", "horizon", "kernels end at the same time", "blocks saved on some SMs",
        "windows", "kernels that overtake others in a window", "preempted kernels of a window that finished",
        "rejected jobs with a window", "hosts that only launch", "programs captured into graphs", "persistent threads",
    } <= set(tally.features)  # fmt: skip


@pytest.fixture(scope="module")
def found() -> Callable[[type[Device]], tuple[FuzzTally, KernelCounterexample]]:
    """What a device's episode in the list above shows, and the counterexample that it becomes."""

    @functools.cache
    def find(device: type[Device]) -> tuple[FuzzTally, KernelCounterexample]:
        episode = next(number for other, number, _ in FAULTS if other is device)
        tally = fuzz(device, fuzzing=PINNED, first=episode, episodes=1)
        return tally, counterexample(tally, episode, fuzzing=PINNED, seconds=math.inf)

    return find


Found = Callable[[type[Device]], tuple[FuzzTally, KernelCounterexample]]


def test_a_counterexample_is_small(found: Found) -> None:
    """Two equal tenants whose kernels meet in the queue are all that it takes to see the order."""
    _, example = found(broken.Misordered)
    case = example.case
    assert len(case.scenario.tenants) == 2
    assert isinstance(case.player, Script)
    assert len(case.player.moves) <= 2
    assert sum(len(v.ops) for w in case.workloads.values() for v in w.variants) <= 2
    assert play(case, broken.Misordered, ReferenceDevice).difference == example.difference
    assert play(case, ReferenceDevice, ReferenceDevice).difference is None


def test_what_a_difference_needs_is_kept(found: Found) -> None:
    """No wake-up after a preemption shows only where there is one."""
    _, example = found(broken.Asleep)
    assert isinstance(example.case.player, Script)
    assert sum(isinstance(move, PreemptMove) for move in example.case.player.moves) == 1
    assert (example.difference.kind, example.repeats) == ("time", True)


def test_a_window_stays_where_it_takes_one(found: Found) -> None:
    """One launch, whose memory does not matter, and the smallest window."""
    _, example = found(broken.Hasty)
    window = example.case.scenario.window
    assert window is not None
    assert (window.size, window.streams, window.depth) == (1, 1, 1)
    ops = [op for work in example.case.workloads.values() for variant in work.variants for op in variant.ops]
    assert [(op.reads, op.writes) for op in ops] == [((), ())]


def test_a_snapshot_that_a_difference_does_not_need_goes() -> None:
    tally = fuzz(broken.Wasteful, fuzzing=PINNED, first=2, episodes=1)
    assert pinned_cases()[2].snapshot is not None
    example = counterexample(tally, 2, fuzzing=PINNED, seconds=math.inf)
    assert (example.difference.kind, example.case.snapshot) == ("costs", None)


def test_a_difference_that_does_not_repeat_is_stored_as_seen() -> None:
    tally = fuzz(broken.Wasteful, fuzzing=PINNED, first=7, episodes=1)
    tally.device = ReferenceDevice
    example = counterexample(tally, 7, fuzzing=PINNED, seconds=math.inf)
    assert not example.repeats
    assert example.difference == tally.differences[7]
    assert example.case == pinned_cases()[7].self_contained()


def test_one_counterexample_of_each_kind(tmp_path: Path) -> None:
    tally = fuzz(broken.Crowded, fuzzing=PINNED, first=2, episodes=5)
    assert [d.kind for d in tally.differences.values()] == ["error IndexError"] * len(tally.differences)
    assert len(tally.differences) > 1
    names = write_counterexamples(tally, tmp_path, fuzzing=PINNED, seconds=0.0)
    assert names == ["seed0-episode2.json"]
    assert [file.name for file in tmp_path.iterdir()] == names


def test_workers_find_the_same() -> None:
    device = f"{BROKEN}:Crowded"
    alone = fuzz(device, first=3, episodes=5, workers=1)
    together = fuzz(device, first=3, episodes=5, workers=2)
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
    """``gpusched lab fuzz`` in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, ["lab", "fuzz", "--workers", "1", *arguments])


def test_the_command_reports_and_stores_counterexamples(run: Callable[..., Result], tmp_path: Path) -> None:
    broken_one = f"{BROKEN}:Wasteful"
    result = run("--episodes", "2", "--first", "16", "--device", broken_one, "--out", "found", "--shrink-s", "0")
    assert result.exit_code == 1
    assert "2 episodes, 2 with a difference" in result.output
    assert "random moves" in result.output
    (file,) = (tmp_path / "found").iterdir()
    assert f"gpusched lab fuzz --replay found/{file.name}" in result.output
    assert read_counterexample(file, KernelCounterexample).difference.kind == "costs"
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
    case = draw_case(0, 7).self_contained()
    example = KernelCounterexample(**names, seed=0, episode=7, difference=difference, case=case)
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
    result = run("--episodes", "2", "--first", "16", "--device", "reference")
    assert result.exit_code == 0
    assert "reference against reference, seed 0: 2 episodes, no difference" in result.output
    assert list(tmp_path.iterdir()) == []


def test_unknown_devices_are_refused_before_anything_runs(run: Callable[..., Result]) -> None:
    result = run("--device", "quick")
    assert isinstance(result.exception, InputError)
    assert "unknown device 'quick'" in str(result.exception)


# ---- the compiled device -------------------------------------------------------------------------


if "compiled" in device_names():

    @pytest.mark.long
    def test_compiled_does_as_the_reference() -> None:
        compiled = functools.partial(new_device, "compiled")
        drawn = [draw_case(0, episode) for episode in sorted(set(range(60)).difference(LONG))]
        for case in [*drawn, *pinned_cases().values()]:
            assert play(case, compiled, ReferenceDevice).difference is None

    @pytest.mark.slow
    def test_compiled_does_as_the_reference_for_long() -> None:
        tally = fuzz("compiled", "reference", episodes=2000, seed=1, workers=2)
        assert tally.differences == {}
        assert tally.broken == ""
