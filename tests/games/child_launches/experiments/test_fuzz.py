"""Fuzzing of child launches finds faults, makes them small, plays them again, and raises no false alarm."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpusched_env.errors import InputError
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.fuzz.run import counterexample, fuzz, replay
from gpusched_env.experiments.fuzz.stored import read_counterexample, write_counterexample
from gpusched_env.games.child_launches.device import LaunchDevice
from gpusched_env.games.child_launches.devices import make_launch_device
from gpusched_env.games.child_launches.experiments.fuzz_cases import LaunchCounterexample, draw_launches
from gpusched_env.games.child_launches.experiments.fuzzing import CHILD_LAUNCHES
from tests.games.child_launches.experiments import broken_launch_devices as broken
from tests.refusals import refused

BROKEN = Path(broken.__file__)
FAULTS: list[tuple[type[LaunchDevice], int, str]] = [
    (broken.LastSm, 1, "view"),
    (broken.NewestFirst, 12, "view"),
    (broken.Keeps, 126, "error DeadlockError"),
    (broken.Uncounted, 3, "view"),
    (broken.Forgetful, 5, "view"),
    (broken.Silent, 0, "error DeadlockError"),
]
"""A device, an episode of seed 0 that shows its fault, and the kind of difference that it shows first."""


@pytest.mark.parametrize(("device", "episode", "kind"), FAULTS, ids=[device.__name__ for device, _, _ in FAULTS])
def test_faults_are_found(device: type[LaunchDevice], episode: int, kind: str) -> None:
    tally = fuzz(device, fuzzing=CHILD_LAUNCHES, first=episode, episodes=1)
    assert {number: difference.kind for number, difference in tally.differences.items()} == {episode: kind}


def test_the_devices_do_not_differ_and_everything_happens() -> None:
    tally = fuzz("compiled", fuzzing=CHILD_LAUNCHES, episodes=120)
    assert tally.differences == {}
    assert tally.counts["child launches"] > 1500
    assert {
        "nested requests", "requests of children of children", "full queues", "full pool", "refused launches",
        "spilled launches", "deadlock", "back to a snapshot", "refusals", "an unfinished run before", "free launches",
        "several lanes call", "several kernels", "child blocks side by side", "children of several blocks",
        "aggregated launches", "queues of a block", "queues of a child", "parents wait", "parents leave", "one SM",
        "queues held until children end", "launches with an interval", "a whole window of children",
    } <= set(tally.features)  # fmt: skip


def test_cases_depend_on_their_numbers_only() -> None:
    assert draw_launches(3, 14) == draw_launches(3, 14) != draw_launches(3, 15)


def test_a_counterexample_is_small_and_plays_again(tmp_path: Path) -> None:
    tally = fuzz(broken.NewestFirst, fuzzing=CHILD_LAUNCHES, first=13, episodes=1)
    example = counterexample(tally, 13, fuzzing=CHILD_LAUNCHES, seconds=20)
    [kernel] = example.case.kernels
    # Two children at once are what it takes.
    assert 2 <= example.case.problem().asking <= 4
    assert len(kernel.threads) <= 3
    write_counterexample(example, tmp_path / "example.json")
    stored = read_counterexample(tmp_path / "example.json", LaunchCounterexample)
    assert stored == example
    # A problem that comes out of a file is the same one, options and all.
    assert dataclasses.asdict(stored.case.machine) == dataclasses.asdict(example.case.machine)
    assert replay(stored, broken.NewestFirst, "reference", fuzzing=CHILD_LAUNCHES) == example.difference
    assert replay(stored, "compiled", "reference", fuzzing=CHILD_LAUNCHES) is None


def test_the_command(tmp_path: Path) -> None:
    device, out = f"{BROKEN}:Silent", tmp_path / "found"
    options = ["--episodes", "1", "--workers", "1", "--shrink-s", "0", "--out", str(out)]
    result = CliRunner().invoke(app, ["lab", "fuzz", "--launches", "--device", device, *options])
    assert result.exit_code == 1
    assert f"gpusched lab fuzz --launches --replay {out / 'seed0-episode0.json'}" in result.output
    again = ["fuzz", "--launches", "--replay", str(out / "seed0-episode0.json")]
    assert CliRunner().invoke(app, [*again, "--trust"]).exit_code == 1
    assert CliRunner().invoke(app, [*again, "--device", "compiled"]).exit_code == 0
    assert CliRunner().invoke(app, ["lab", "fuzz", "--launches", *options]).exit_code == 0


def test_workers_find_the_same() -> None:
    tallies = [fuzz("compiled", fuzzing=CHILD_LAUNCHES, episodes=20, workers=workers) for workers in (1, 2)]
    assert tallies[0].counts == tallies[1].counts
    assert tallies[0].features == tallies[1].features


def test_unknown_devices_are_refused() -> None:
    with refused(InputError, "'compield'", "did you mean"):
        make_launch_device("compield")
    with refused(InputError, "unknown"):
        fuzz("compield", fuzzing=CHILD_LAUNCHES, episodes=1)
