"""Scenario files of one's own: paths, ids, and what wrong ones are told."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import pytest
import yaml

import gpusched_env
from gpusched_env.data import read_recorded
from gpusched_env.errors import InputError
from gpusched_env.experiments.settings import apply_settings
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.reading import parse_yaml
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario, make_scenario, override
from gpusched_env.scenarios.variants import scenario_variants
from gpusched_env.workload.irregular_graphs import irregular
from tests.refusals import refused

PLAIN: dict[str, Any] = {
    "name": "Mine",
    "gpu": "toy-4sm",
    "horizon_us": 2000,
    "tenants": [
        {"name": "a", "workload": "toy_urgent", "arrivals": {"kind": "poisson", "rate_per_s": 1000}},
        {"name": "b", "workload": "toy_batch", "arrivals": {"kind": "backlog"}, "jobs": 1},
    ],
}


def write(path: Path, **changes: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(PLAIN | changes))
    return path


def test_paths_are_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mine"
    tenants = copy.deepcopy(PLAIN["tenants"])
    tenants[0]["workload"] = "net.workload.json"
    sets = {"train": [{}], "held_out": [{"b": {"workload": "more/other.json"}}]}
    file = write(folder / "s.yaml", gpu="../gpu.yaml", tenants=tenants, workload_sets=sets)
    spec = msgspec.to_builtins(load_gpu("toy-4sm")) | {"name": "other-toy"}
    (tmp_path / "gpu.yaml").write_text(yaml.safe_dump(spec))
    (folder / "more").mkdir()
    for name in ("net.workload.json", "more/other.json"):
        (folder / name).write_bytes(msgspec.json.encode(read_recorded("toy_urgent")))
    monkeypatch.chdir(tmp_path)
    for given in ("mine/s.yaml", str(file)):
        scenario = load_scenario(given)
        problem = build_problem(scenario)
        assert problem.gpu.name == "other-toy"
        assert problem.programs[0].workload == read_recorded("toy_urgent")
        (variant,) = scenario_variants(scenario, "held_out")
        assert Path(variant.tenants[1].workload).samefile(folder / "more/other.json")
        assert scenario.tenants[1].workload == "toy_batch"


def test_a_registered_file_has_an_id_for_single_and_vector_environments(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.yaml")
    assert gpusched_env.register(file) == "gpusched/Mine-v0"
    env = gymnasium.make("gpusched/Mine-v0", horizon_us=500)
    env.reset(seed=0)
    assert env.unwrapped.scenario.horizon_us == 500  # type: ignore[attr-defined]
    envs = gymnasium.make_vec("gpusched/Mine-v0", num_envs=2, vectorization_mode="vector_entry_point")
    envs.reset(seed=0)
    envs.close()
    assert load_scenario("Mine") == load_scenario(file)
    write(file, horizon_us=3000)
    assert gpusched_env.register(file) == "gpusched/Mine-v0"
    assert load_scenario("Mine").horizon_us == 3000


def test_names_that_are_taken_or_cannot_be_ids_are_refused(tmp_path: Path) -> None:
    first = write(tmp_path / "first.yaml", name="Twice")
    gpusched_env.register(first)
    for name, message in (
        ("Twice", r"second\.yaml: name 'Twice' is that of .*first\.yaml; choose another"),
        ("Toy", "name 'Toy' is that of a shipped scenario"),
        ("My own", "name is 'My own'; an id takes letters"),
    ):
        with pytest.raises(InputError, match=message):
            gpusched_env.register(write(tmp_path / "second.yaml", name=name))
    assert load_scenario("Twice") == load_scenario(first)


def changed(path: str, value: Any) -> Any:
    """:data:`PLAIN` with a field replaced, or removed if ``value`` is Ellipsis."""
    data: Any = copy.deepcopy(PLAIN)
    holder = data
    *above, last = path.split(".")
    for step in above:
        holder = holder[int(step) if step.isdigit() else step]
    if value is ...:
        del holder[last]
    else:
        holder[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("horizon", 5, r"unknown field `horizon`; did you mean 'horizon_us'\?"),
        ("gpu", ..., "missing required field `gpu`; required are name, gpu, tenants, horizon_us"),
        ("tenants.0.wait", 1, r"tenants\[0\]: .*unknown field `wait`; did you mean 'weight'\?"),
        (
            "tenants.0.arrivals.kind",
            "poison",
            r"tenants\[0\]\.arrivals\.kind: .*'poison'; did you mean 'poisson'\? kinds and their fields: .*"
            r"poisson \(rate_per_s, start_us\)",
        ),
        ("tenants.0.arrivals.kind", ..., r"arrivals: .*`kind`; kinds and their fields: .*backlog \(start_us\)"),
        ("tenants.0.arrivals.rate", 1, r"unknown field `rate`; known: rate_per_s, start_us"),
        ("tenants.0.arrivals.rate_per_s", ..., r"missing required field `rate_per_s`; required are rate_per_s"),
        ("commands", ["lunch"], r"commands\[0\]: .*'lunch'; did you mean 'launch'\?"),
        ("contexts", "own", "contexts: .*'own'; known: per-tenant, shared"),
        ("horizon_us", "long", "horizon_us: Expected `float`, got `str`"),
        ("name", "../up", "name: "),
        (
            "tenants.0.workload",
            "toy_urgant",
            r"tenants\[0\]\.workload: unknown 'toy_urgant'; did you mean 'toy_urgent'",
        ),
        (
            "tenants.0.workload",
            "irregular(family=phisics,seed=3)",
            r"tenants\[0\]\.workload: workload 'irregular.*: family: .*'phisics'; did you mean 'physics'",
        ),
        ("tenants.1.workload", "no.json", r"tenants\[1\]\.workload: no such file: .*no\.json"),
        (
            "workload_sets",
            {"train": [{}], "held_out": [{"b": {"workload": "toy_bach"}}]},
            r"workload_sets\.held_out\[0\]\.b\.workload: unknown 'toy_bach'; did you mean 'toy_batch'",
        ),
        ("tenants.1.jobs", ..., r"tenants\[1\]\.jobs must be set: a backlog is finite"),
    ],
)
def test_wrong_files_are_told_what_would_be_right(path: str, value: Any, message: str, tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(yaml.safe_dump(changed(path, value)))
    with pytest.raises(InputError, match=rf"s\.yaml: .*{message}"):
        load_scenario(file)


def test_what_is_wrong_in_a_workload_file_is_said_with_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "net.json").write_bytes(
        msgspec.json.encode(read_recorded("toy_urgent")).replace(b'"kernels"', b'"kernel"')
    )
    tenants = [PLAIN["tenants"][0] | {"workload": "net.json"}]
    scenario = load_scenario(write(tmp_path / "s.yaml", tenants=tenants))
    with refused(InputError, "tenants[0].workload", "net.json", "did you mean"):
        build_problem(scenario)


def test_traces_lie_beside_their_scenario(tmp_path: Path) -> None:
    (tmp_path / "asked.csv").write_text("time_us\n40\n50\n")
    tenants = copy.deepcopy(PLAIN["tenants"])
    tenants[0]["arrivals"] = {"kind": "trace", "file": "asked.csv"}
    scenario = load_scenario(write(tmp_path / "s.yaml", tenants=tenants))
    replay = build_problem(scenario).programs[0].replay
    assert replay is not None
    assert replay.times_ps.tolist() == [40_000_000, 50_000_000]
    (tmp_path / "asked.csv").write_text("time_us\n40\n30\n")
    with refused(InputError, "tenants[0].arrivals", "asked.csv", "line 3"):
        build_problem(scenario)
    tenants[0]["arrivals"]["file"] = "no.csv"
    with refused(InputError, "s.yaml", "tenants[0].arrivals.file", "no.csv"):
        load_scenario(write(tmp_path / "s.yaml", tenants=tenants))
    with refused(InputError, "times_us", "file"):
        override(scenario, tenants={tenants[0]["name"]: {"arrivals": {"kind": "trace"}}})


def test_generated_workloads_have_names(tmp_path: Path) -> None:
    name = "irregular(family=physics,seed=3,kernels=20)"
    tenants = copy.deepcopy(PLAIN["tenants"])
    tenants[0]["workload"] = name
    sets = {"train": [{}], "held_out": [{"b": {"workload": name.replace("physics", "cells"), "host_us": 2.0}}]}
    scenario = load_scenario(write(tmp_path / "s.yaml", tenants=tenants, workload_sets=sets))
    assert build_problem(scenario).programs[0].workload == irregular(name)
    (variant,) = scenario_variants(scenario, "held_out")
    assert build_problem(variant).programs[1].workload.name == variant.tenants[1].workload
    setting = "tenants.b.workload=irregular(family=wired,seed=1,kernels=20)"
    assert build_problem(apply_settings(scenario, [setting])).programs[1].workload.name == setting.partition("=")[2]
    wrong = apply_settings(scenario, ["tenants.b.workload=irregular(family=wired)"])
    with refused(InputError, "tenants[1].workload", "`seed`"):
        build_problem(wrong)


def test_exponents_are_numbers_and_a_summary_is_optional() -> None:
    data = parse_yaml(yaml.safe_dump(PLAIN).replace("horizon_us: 2000", "horizon_us: 2e3"), "here")
    assert make_scenario(data) == msgspec.convert(PLAIN, Scenario)
    assert make_scenario(data).summary == ""
