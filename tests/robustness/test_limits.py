"""Small input that asks for very much, and input that no number or name holds: refused at once, in one line."""

from __future__ import annotations

import gzip
import sys
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import yaml

from gpusched_env import reading
from gpusched_env.agents import policy_file
from gpusched_env.baselines.hindsight import MOST_ROUNDS, Hindsight
from gpusched_env.envs.vector_arguments import thread_count
from gpusched_env.errors import InputError
from gpusched_env.experiments import cli
from gpusched_env.experiments.lib.episodes import LAST_SEED, MOST_SEEDS, checked_seeds
from gpusched_env.experiments.settings import apply_settings
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scenarios.set_up import SetUp
from tests.refusals import refused


@pytest.mark.parametrize("seeds", [10**23, MOST_SEEDS + 1, [2**64], [LAST_SEED + 1]])
def test_seeds_have_a_limit(seeds: Any) -> None:
    with pytest.raises(InputError, match="must be at most"):
        checked_seeds(seeds)


def test_the_last_seed_is_one() -> None:
    assert checked_seeds([LAST_SEED]) == [LAST_SEED]


@pytest.mark.parametrize("setting", ["tenants.urgent={}", "tenants.urgent.jobs=&a [*a]", "tenants=&a {urgent: *a}"])
def test_settings_of_another_shape_are_one_error(setting: str) -> None:
    with pytest.raises(InputError):
        apply_settings(load_scenario("Toy"), [setting])


def test_a_tenant_can_be_replaced_as_a_whole() -> None:
    toy = load_scenario("Toy")
    first = toy.tenants[0]
    whole = msgspec.json.encode(msgspec.structs.replace(first, weight=7.0)).decode()
    assert apply_settings(toy, [f"tenants.{first.name}={whole}"]).tenants[0].weight == 7.0


def test_a_lone_surrogate_is_no_name() -> None:
    with refused(InputError, "name"):
        load_scenario("Toy", name="a\ud800b")


@pytest.mark.parametrize("threads", [1.5, "2", 0, float("nan")])
def test_threads_are_counted_in_whole_numbers(threads: Any) -> None:
    with refused(InputError, "threads"):
        thread_count(threads, 4)


@pytest.mark.parametrize("rounds", [10**20, MOST_ROUNDS + 1, float("inf"), float("nan")])
def test_a_search_has_a_limit(rounds: float) -> None:
    with refused(InputError, "rounds"):
        Hindsight(rounds=rounds)


def test_slices_have_a_least_length(tmp_path: Path) -> None:
    spec = msgspec.to_builtins(load_gpu("toy-4sm")) | {"name": "mine"}
    spec["timing"]["slice_us"] = 1e-9
    path = tmp_path / "gpu.yaml"
    path.write_text(yaml.safe_dump(msgspec.json.decode(msgspec.json.encode(spec))))
    with refused(InputError, "slice_us"):
        load_gpu(str(path))
    with refused(InputError, "slice_us"):
        SetUp(slice_us=1e-9)


def test_what_expands_past_a_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_UNZIPPED", 1000)
    assert reading.unzipped(gzip.compress(bytes(1000)), "x") == bytes(1000)
    with refused(InputError, "unzipped"):
        reading.unzipped(gzip.compress(bytes(1001)), "x")
    # Nothing beyond the limit is read: not even the damage there is found.
    with refused(InputError, "unzipped"):
        reading.unzipped(gzip.compress(bytes(10_000_000))[:-4], "x")


def test_files_are_regular_and_have_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(InputError, "device"):
        reading.read_bytes(Path("/dev/zero"))
    monkeypatch.setattr(reading, "MOST_READ", 10)
    path = tmp_path / "file"
    path.write_bytes(bytes(10))
    assert reading.read_bytes(path) == bytes(10)
    path.write_bytes(bytes(11))
    with refused(InputError, "10 bytes"):
        reading.read_bytes(path)


def test_an_archive_that_expands_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "policy.npz"
    np.savez_compressed(path, metadata=np.zeros(2, np.uint8), unneeded=np.zeros(100_000, np.float32))
    assert set(policy_file.read_members(path)) == {"metadata", "unneeded"}
    monkeypatch.setattr(policy_file, "MOST_BYTES", 100_000)

    def opened(*_: Any, **__: Any) -> None:
        raise AssertionError("nothing is to be read")

    monkeypatch.setattr(zipfile.ZipExtFile, "read", opened)
    with pytest.raises(InputError, match="must be at most"):
        policy_file.read_members(path)


def test_errors_on_a_terminal_have_no_control_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpusched", "compare", "a\x1b[31mb \u202e größer.yaml"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == cli.EXIT_INPUT
    told = capsys.readouterr().err
    assert "a\\x1b[31mb \\u202e größer.yaml" in told
    assert told.rstrip("\n").isprintable()
