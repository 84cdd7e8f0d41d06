"""Costs of hand-written schedulers beside a training: what is kept of them, and when it counts no longer."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from gpusched_env.agents.training.config import TrainingConfig, config_of
from gpusched_env.baselines.registry import honest_names
from gpusched_env.errors import InputError
from gpusched_env.experiments.baseline_costs import BaselineCosts
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused


def toy(seeds: int = 1) -> TrainingConfig:
    return config_of({"scenario": load_scenario("Toy"), "validation_seeds": seeds})


def test_what_was_made_otherwise_is_said_and_not_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = BaselineCosts(toy(), "fifo,sjf", tmp_path).rest()
    assert found == {"fifo": pytest.approx(1.83), "sjf": pytest.approx(1.14)}, "docs/toy.md"
    again = BaselineCosts(toy(), "sjf,fifo,edf", tmp_path)
    assert (again.known, again.missing) == (found, ["edf"])
    assert "baselines.json" not in capsys.readouterr().err
    stored = json.loads((tmp_path / "baselines.json").read_text())
    stored["fifo"] = {"cost": 0.0, "made": "of other sources"}
    (tmp_path / "baselines.json").write_text(json.dumps(stored))
    stale = BaselineCosts(toy(), "fifo,sjf", tmp_path)
    assert (stale.known, stale.missing) == ({"sjf": found["sjf"]}, ["fifo"])
    assert "1 scheduler had other sources, scenarios or seeds then and will be played again: fifo" in (
        capsys.readouterr().err
    )
    assert stale.rest() == found
    assert BaselineCosts(toy(seeds=2), "fifo,sjf", tmp_path).missing == ["fifo", "sjf"], "other episodes"


def test_which_schedulers_are_played(tmp_path: Path) -> None:
    every = BaselineCosts(toy(), "all", tmp_path).names
    assert every[0] == "pass-through", "what agents are held against most"
    assert sorted(every) == sorted(honest_names(windowed=False, hardware=False))
    assert BaselineCosts(toy(), "none", tmp_path).rest() == {}
    with refused(InputError, "'fifi'"):
        BaselineCosts(toy(), "fifi", tmp_path)
    (tmp_path / "baselines.json").write_text("[]")
    with refused(InputError, "baselines.json", "remove it"):
        BaselineCosts(toy(), "fifo", tmp_path)


@pytest.mark.long
def test_another_process_plays_meanwhile(tmp_path: Path) -> None:
    costs = BaselineCosts(toy(), "fifo,sjf", tmp_path)
    costs.play_beside()
    while costs.missing:
        time.sleep(0.05)
        costs.look()
    costs.stop()
    assert costs.known == {"fifo": pytest.approx(1.83), "sjf": pytest.approx(1.14)}
