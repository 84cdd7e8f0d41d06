"""Ids, imports and data sheets."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import gymnasium
import msgspec
import pytest

import gpusched_env
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.datasheet import datasheet, environments_page
from gpusched_env.envs.features import TABLES
from gpusched_env.envs.registration import SECOND, env_ids, register_envs
from gpusched_env.scenarios.scenario import Scenario, load_scenario, scenario_names
from tests.refusals import refused

HEAVY = ("torch", "stable_baselines3", "pandas", "matplotlib", "plotly", "numba", "simpy", "cupy", "PIL")
"""What importing the package must not pull in."""


def test_every_scenario_has_an_id() -> None:
    laws = {name: load_scenario(name).physics for name in scenario_names()}
    assert env_ids() == [f"gpusched/{name}-v{version - 1}" for name, version in laws.items()]
    for env_id in env_ids():
        spec = gymnasium.spec(env_id)
        assert spec.entry_point == "gpusched_env.envs.env:GpuSchedulingEnv"
        assert spec.vector_entry_point == "gpusched_env.envs.vector_env:GpuSchedulingVectorEnv"
        assert spec.max_episode_steps is None, "the horizon truncates, not a TimeLimit"


def _scenario(scenario: str, **fields: Any) -> Scenario:
    return load_scenario(scenario, **fields)


@pytest.mark.parametrize("name", SECOND)
def test_first_versions_still_play_by_the_first_laws(name: str) -> None:
    first, now = (_scenario(**gymnasium.spec(f"gpusched/{name}-v{version}").kwargs) for version in (0, 1))
    assert (first.name, first.physics, now.physics) == (name, 1, 2)
    assert [each.name for each in first.tenants] == [each.name for each in now.tenants]
    if name != "ServingOverload":
        assert msgspec.structs.replace(first, physics=2) == now


def test_registering_again_changes_nothing() -> None:
    before = dict(gymnasium.registry)
    register_envs()
    assert gymnasium.registry == before


def test_import_is_light() -> None:
    script = f"import sys, gpusched_env; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [], "heavy modules were imported"


@pytest.mark.parametrize("name", gpusched_env.__all__)
def test_public_names_load_on_first_use(name: str) -> None:
    assert callable(getattr(gpusched_env, name))
    assert name in dir(gpusched_env)


def test_unknown_names_are_attribute_errors() -> None:
    with refused(AttributeError, "'nonsense'", "attribute"):
        gpusched_env.nonsense  # noqa: B018


def test_data_sheets_name_every_action_and_column() -> None:
    scenario = load_scenario("Toy", commands=["launch", "preempt", "partition"])
    sheet = datasheet(scenario)
    everything = ActionLayout.of(scenario, 2, 8)
    assert "| 2 | launch the pending kernel of urgent: stream priority 0 |" in sheet
    assert "\n| 3 " not in sheet, "an environment offers launches, unless it is asked for more"
    assert 'With `commands=["launch", "preempt", "partition"]` agents have all' in sheet
    assert f"to schedulers: {everything.n} actions." in sheet
    serving = datasheet(load_scenario("ServingPoisson"))
    assert "| 0 | let the plan of all jobs decide |" in serving
    assert "| 16 to 18 | let completion go first: " in serving
    assert 'With `interval_us=0, commands=["launch", "reject"]` every launch is a decision' in serving
    asked = {"kind": "trace", "times_us": [1.0, 2.0], "at_end": "repeats"}
    traced = datasheet(load_scenario("Toy", tenants={"urgent": {"arrivals": asked}}))
    assert "| trace, times_us (2), speed 1, window first, at_end repeats |" in traced
    whole = environments_page()
    for table, features in TABLES.items():
        assert f"### `{table}`" in whole
        for feature in features:
            assert f"| {feature.value} | `{feature.name}` | {feature.meaning} |" in whole


def test_the_class_docstring_is_part_of_the_data_sheet() -> None:
    assert "### Reward\nMinus the growth of the scenario's cost" in environments_page()
