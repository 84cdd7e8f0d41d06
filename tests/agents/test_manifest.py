"""Shipped agents and what is noted with them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from gpusched_env.agents import shipped
from gpusched_env.agents.manifest import check_agent, encode_manifest, read_manifest, ship
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import load_scenario
from tests.agents.made_up import made_up, written
from tests.experiments.trainings import BASELINES, training
from tests.refusals import refused


@pytest.fixture
def into(tmp_path: Path) -> Path:
    """The folder of an agent that came of two trainings."""
    folder = tmp_path / "trained"
    folder.mkdir()
    first = training(tmp_path / "first", [3.0, 2.0], seed=4)
    second = training(tmp_path / "second", [1.5, 1.04, 1.2], seed=5, learning_rate=1e-4)
    written(made_up("Toy"), second / "best.npz")
    ship([first, second], folder)
    return folder


def test_the_agents_of_the_package() -> None:
    """Each has a policy that fits its scenario and a manifest that is about it; nothing else is there."""
    names = shipped.shipped_names()
    for name in names:
        manifest = check_agent(shipped.FOLDER, name)
        assert all(step.command.startswith("gpusched ") for step in manifest.trainings)
        assert manifest.validation.baselines, f"{name}: nothing to hold its validation against"
    expected = {"README.md", *(f"{name}{suffix}" for name in names for suffix in (".npz", ".json"))}
    assert {file.name for file in shipped.FOLDER.iterdir()} == expected


def test_what_is_noted(into: Path) -> None:
    manifest = check_agent(into, "Toy")
    assert manifest.sha256 == hashlib.sha256((into / "Toy.npz").read_bytes()).hexdigest()
    assert [(step.seed, step.timesteps) for step in manifest.trainings] == [(4, 1000), (5, 2000)]
    assert manifest.trainings[1].command == "gpusched train Toy --seed 5 --out runs/second"
    assert manifest.trainings[1].versions == {"gpusched-env": "1.0"}
    validation = manifest.validation
    assert (validation.cost, validation.timesteps, validation.episodes) == (1.04, 1000, 2)
    assert validation.baselines == BASELINES


def test_what_does_not_belong_together(into: Path) -> None:
    path = into / "Toy.json"
    manifest = read_manifest(path)
    path.write_bytes(encode_manifest(msgspec.structs.replace(manifest, scenario="PriorityFill")))
    with refused(InputError, "PriorityFill", "agent"):
        check_agent(into, "Toy")
    path.write_bytes(encode_manifest(manifest))
    written(made_up("Toy", timesteps=2000), into / "Toy.npz")
    with refused(InputError, manifest.sha256, "Toy.json", "DIR"):
        check_agent(into, "Toy")
    path.write_text("{}")
    with refused(InputError, "manifest"):
        check_agent(into, "Toy")
    path.unlink()
    with refused(InputError, "Toy.json", "read"):
        check_agent(into, "Toy")


def test_an_agent_of_other_actions(into: Path, tmp_path: Path) -> None:
    """The scenario of its name has changed since."""
    other = written(made_up(load_scenario("Toy", stream_priorities=(0, -1))), into / "Toy.npz")
    manifest = read_manifest(into / "Toy.json")
    sha256 = hashlib.sha256(other.read_bytes()).hexdigest()
    (into / "Toy.json").write_bytes(encode_manifest(msgspec.structs.replace(manifest, sha256=sha256)))
    with refused(InputError, "(0, -1)", "(0,)"):
        check_agent(into, "Toy")


def test_refusals_write_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "trained"
    run = training(tmp_path / "run", [1.0])
    with refused(InputError, "trained: ", "folder"):
        ship([run], folder)
    folder.mkdir()
    with refused(InputError, "best.npz", "recurrent"):
        ship([run], folder)
    written(made_up(load_scenario("Toy", stream_priorities=(0, -1))), run / "best.npz")
    with refused(InputError, "Toy"):
        ship([run], folder)
    with refused(InputError, "training"):
        ship([tmp_path / "nowhere", run], folder)
    assert not list(folder.iterdir())
