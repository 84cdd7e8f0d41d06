"""The file of an exported policy: what is in it, and what is refused."""

from __future__ import annotations

import contextlib
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.learned import LearnedScheduler
from gpusched_env.agents.policies.rule import READS
from gpusched_env.agents.policy_file import METADATA, read_policy
from gpusched_env.agents.shipped import shipped_policy, shipped_scenarios
from gpusched_env.agents.training.config import defaults_for
from gpusched_env.devices import make_device
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.features import TABLES
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario, scenario_names
from tests.agents.made_up import made_up, written
from tests.refusals import refused


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(made_up("Toy"), tmp_path / "toy.npz")


def changed(path: Path, **members: Any) -> Path:
    """The file with members replaced; ``None``: left out."""
    with np.load(path) as archive:
        kept = {name: archive[name] for name in archive.files}
    kept |= members
    np.savez(path, allow_pickle=False, **{name: array for name, array in kept.items() if array is not None})
    return path


def described(path: Path, **fields: Any) -> Path:
    """The file with fields of its description replaced."""
    with np.load(path) as archive:
        text = json.loads(archive[METADATA].tobytes())
    return changed(path, **{METADATA: np.frombuffer(json.dumps({**text, **fields}).encode(), np.uint8)})


def test_columns_that_are_newer_than_a_slot_network_have_no_part_in_it(tmp_path: Path) -> None:
    policy = made_up("Toy", "slots")
    path = written(policy, tmp_path / "older.npz")
    columns = {table: list(names) for table, names in policy.info.columns.items()}
    columns["pending"].remove("GAIN_TILE")
    # Inputs of a slot are the pending columns without the owner, then the others.
    place = [name for name in TABLES["pending"].__members__ if name != "TENANT"].index("GAIN_TILE")
    with np.load(path) as archive:
        weight = archive["encoder.slots.weight"]
    described(path, columns=columns)
    changed(path, **{"encoder.slots.weight": np.delete(weight, place, axis=1)})
    info, weights = read_policy(path)
    assert info == policy.info
    weight[:, place] = 0.0
    np.testing.assert_array_equal(weights["encoder.slots.weight"], weight)


def test_a_slot_network_whose_columns_went_is_refused(tmp_path: Path) -> None:
    policy = made_up("Toy", "slots")
    columns = {table: list(names) for table, names in policy.info.columns.items()}
    columns["tenants"].append("GONE")
    path = described(written(policy, tmp_path / "older.npz"), columns=columns)
    with refused(InputError, "GONE", "none"):
        read_policy(path)


@pytest.mark.parametrize("kind", ["slots", "mlp", "rule"])
def test_a_policy_comes_back_as_it_was(kind: str, tmp_path: Path) -> None:
    policy = made_up("ThreeTenants", kind, command="gpusched train", seed=3, versions={"torch": "2"})
    written(policy, tmp_path / "policy.npz")
    read = ExportedPolicy.load(tmp_path / "policy.npz")
    assert read.info == policy.info
    np.testing.assert_array_equal(read.weights, policy.weights)
    np.testing.assert_array_equal(read.sizes, policy.sizes)


def test_columns_are_in_the_file_by_name(path: Path) -> None:
    with np.load(path) as archive:
        text = json.loads(archive[METADATA].tobytes())
    assert text["format"] == "gpusched-policy"
    assert text["columns"]["running"][:2] == ["PRESENT", "TENANT"]
    assert text["network"]["kind"] == "slots"
    assert text["actions"]["stream_priorities"] == [0]


def test_other_columns_are_refused_by_name(path: Path) -> None:
    info, _ = read_policy(path)
    columns = {name: list(names) for name, names in info.columns.items()}
    columns["tenants"][2] = "IMPORTANCE"
    with refused(InputError, "column 2", "IMPORTANCE", "WEIGHT"):
        read_policy(described(path, columns=columns))
    columns = {name: list(names) for name, names in info.columns.items()}
    columns["device"].pop()
    with refused(InputError, "column 9", "LONGEST_LEFT"):
        read_policy(described(path, columns=columns))
    del columns["device"]
    with refused(InputError, "pending"):
        read_policy(described(path, columns=columns))


def test_the_rule_needs_only_the_columns_that_it_reads(tmp_path: Path) -> None:
    path = written(made_up("Toy", "rule"), tmp_path / "rule.npz")
    info, _ = read_policy(path)
    columns = {name: list(names) for name, names in info.columns.items()}
    columns["pending"].remove("TENANT")
    columns["device"].append("NOISE")
    read_policy(described(path, columns=columns))
    columns["tenants"].remove("MEAN_SLOWDOWN")
    with refused(InputError, "MEAN_SLOWDOWN", "tenants"):
        read_policy(described(path, columns=columns))


def test_the_rule_reads_the_columns_that_it_names_and_no_others() -> None:
    scenario = load_scenario("MultiTenantBurst")
    env = GpuSchedulingEnv(scenario, commands=scenario.commands)
    rng, policy = np.random.default_rng(0), made_up(scenario, "rule")
    tables = {name: rng.random((2000, *table.shape), np.float32) for name, table in env.reset(seed=0)[0].items()}
    before = policy.numbers(tables)
    read: dict[str, set[str]] = {name: set() for name in TABLES}
    for name, columns in TABLES.items():
        for column in columns:
            table = tables[name].copy()
            table[..., column] = rng.random(table[..., column].shape)
            if not np.array_equal(policy.numbers({**tables, name: table}), before):
                read[name].add(column.name)
    assert {name: names for name, names in read.items() if names} == {name: set(names) for name, names in READS.items()}


@pytest.mark.parametrize("name", [name for name in shipped_scenarios() if name in scenario_names()])
def test_shipped_agents_fit_their_scenarios(name: str) -> None:
    """Some were made for observations with fewer columns."""
    scenario = load_scenario(name)
    policy = shipped_policy(scenario)
    layout = policy.layout_for(scenario)
    served = {"futures": False} if policy.info.algorithm == "distillation" else {}
    interval_us = scenario.interval_us or float(defaults_for(name).get("interval_us", 0.0))
    assert layout == ActionLayout.of(scenario, len(scenario.tenants), 8, interval_us, **served)
    if interval_us == 0.0:
        shorter = load_scenario(name, lookahead=3)
        assert policy.layout_for(shorter) == replace(layout, lookahead=shorter.shown_ahead)


def test_wrong_weights_are_refused(path: Path) -> None:
    good = path.read_bytes()
    with refused(InputError, "wait.bias", "float32", "(2,)"):
        read_policy(changed(path, **{"wait.bias": np.zeros(2, np.float32)}))
    with refused(InputError, "wait.bias", "float64"):
        read_policy(changed(path, **{"wait.bias": np.zeros(1)}))
    with refused(InputError, "wait.bias", "finite"):
        read_policy(changed(path, **{"wait.bias": np.full(1, np.nan, np.float32)}))
    path.write_bytes(good)
    with refused(InputError, "wait.bias", "missing"):
        read_policy(changed(path, **{"wait.bias": None}))


def test_what_is_no_policy(path: Path, tmp_path: Path) -> None:
    with refused(InputError, "missing.npz", "file"):
        read_policy(tmp_path / "missing.npz")
    with refused(InputError, "exported"):
        read_policy(described(path, version=2))
    whole = path.read_bytes()
    for cut in (0, 20, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:cut])
        with refused(InputError, "toy.npz", "policy"):
            read_policy(path)
    np.savez(path, weights=np.zeros(3))
    with refused(InputError, "'metadata'"):
        read_policy(path)
    np.save(tmp_path / "array.npy", np.zeros(3))
    with refused(InputError, "array.npy", "policy"):
        read_policy(tmp_path / "array.npy")
    np.savez(path, allow_pickle=True, metadata=np.array([{}], object))
    with refused(InputError, "exported"):
        read_policy(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", "{}")
        archive.writestr("policy.pth", "")
    with refused(InputError, "stable-baselines3", "export_policy"):
        read_policy(path)


NUMBERS = (-1, 0, 1, 3, 5, 8, 100, 10**4, 10**8, 2**31 - 1, 2**31, 2**62, 2**63, 2**64)
"""Put where a count belongs."""


@pytest.mark.parametrize("kind", ["slots", "mlp", "rule", "release", "serve", "pairs"])
def test_sizes_other_than_the_actions_are_refused_and_none_crashes(kind: str, tmp_path: Path) -> None:
    """Compiled code goes by these numbers: what is accepted decides an episode."""
    scenario = load_scenario("Toy", commands=("launch", "preempt", "partition", "reject", "synchronise"))
    policy = made_up(scenario, kind, interval_us=250.0 if kind == "serve" else 0.0)
    path = written(policy, tmp_path / "policy.npz")
    with np.load(path) as archive:
        text = json.loads(archive[METADATA].tobytes())
    good = path.read_bytes()
    accepted = []
    for part in ("network", "actions"):
        for field, old in text[part].items():
            for new in NUMBERS if isinstance(old, int | float) else [[number] for number in NUMBERS]:
                if new == old:
                    continue
                path.write_bytes(good)
                described(path, **{part: {**text[part], field: new}})
                with contextlib.suppress(InputError):
                    scheduler = LearnedScheduler(path)
                    accepted.append((part, field, new))
                    run_episode(scheduler, build_problem(scenario), make_device("compiled"), 0)
    assert not [each for each in accepted if each[0] == "network"], "its weights or its actions say another number"
    assert ("actions", "running_slots", 100) in accepted or kind == "mlp", "rows of observations are free"
