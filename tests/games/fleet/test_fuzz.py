"""Fuzzing of fleets finds faults, makes them small, plays them again, and raises no false alarm."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpusched_env.errors import InputError
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.fuzz.run import counterexample, fuzz, replay
from gpusched_env.experiments.fuzz.stored import read_counterexample, write_counterexample
from gpusched_env.games.fleet.experiments.fuzz_cases import FleetCounterexample, draw_fleet
from gpusched_env.games.fleet.experiments.fuzzing import FLEETS
from tests.games.fleet import broken_fleets as broken
from tests.refusals import refused

BROKEN = Path(broken.__file__)
found_by = functools.partial(fuzz, fuzzing=FLEETS, enough=1)


@pytest.mark.parametrize(
    ("device", "kind"),
    [(broken.Restless, "state"), (broken.Late, "state"), (broken.Claiming, "state"), (broken.Idle, "counts")],
)
def test_faults_are_found(device: type[broken.PlainFleet], kind: str) -> None:
    [difference] = found_by(device, "reference", episodes=40).differences.values()
    assert difference.kind == kind


def test_a_fault_that_both_have_breaks_an_invariant() -> None:
    [difference] = found_by(broken.Claiming, broken.Claiming, episodes=40).differences.values()
    assert difference.where == "claims are those of the jobs"


@pytest.mark.parametrize("device", ["compiled", "shards"])
def test_the_devices_do_not_differ_and_everything_happens(device: str) -> None:
    tally = fuzz(device, fuzzing=FLEETS, episodes=150)
    assert tally.differences == {}
    assert tally.counts["Place"] > 500
    assert tally.counts["Move"] > 200
    assert {
        "refusals", "restarts", "training sleeps", "smaller shares", "late requests", "jobs wait", "jobs finish",
        "a rule", "random commands", "several kinds of GPUs", "control gslice", "control gpucolo-worst",
        "block by block",
    } <= set(tally.features)  # fmt: skip


def test_cases_depend_on_their_numbers_only() -> None:
    assert draw_fleet(3, 14) == draw_fleet(3, 14) != draw_fleet(3, 15)


def test_a_counterexample_is_small_and_plays_again(tmp_path: Path) -> None:
    tally = found_by(broken.Late, "reference", episodes=40)
    [episode] = tally.differences
    example = counterexample(tally, episode, fuzzing=FLEETS, seconds=10)
    assert len(example.case.jobs) == len(example.case.kinds) == 1
    write_counterexample(example, tmp_path / "example.json")
    stored = read_counterexample(tmp_path / "example.json", FleetCounterexample)
    assert stored == example
    assert replay(stored, broken.Late, "reference", fuzzing=FLEETS) == example.difference
    assert replay(stored, "compiled", "reference", fuzzing=FLEETS) is None


def test_the_command(tmp_path: Path) -> None:
    device, out = f"{BROKEN}:Claiming", tmp_path / "found"
    options = ["--episodes", "12", "--workers", "1", "--shrink-s", "0", "--out", str(out)]
    result = CliRunner().invoke(app, ["lab", "fuzz", "--fleets", "--device", device, *options])
    assert result.exit_code == 1
    [stored] = out.glob("*.json")
    assert f"gpusched lab fuzz --fleets --replay {stored}" in result.output
    again = ["fuzz", "--fleets", "--replay", str(stored)]
    assert CliRunner().invoke(app, [*again, "--trust"]).exit_code == 1
    assert CliRunner().invoke(app, [*again, "--device", "compiled"]).exit_code == 0
    assert CliRunner().invoke(app, ["lab", "fuzz", "--fleets", *options]).exit_code == 0


def test_unknown_devices_and_two_games_are_refused() -> None:
    with refused(InputError, "'compield'", "did you mean"):
        FLEETS.new_device("compield")
    done = CliRunner().invoke(app, ["lab", "fuzz", "--fleets", "--launches"])
    assert isinstance(done.exception, InputError)
    assert "are different games" in str(done.exception)
