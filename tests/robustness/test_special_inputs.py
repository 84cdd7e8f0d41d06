"""Pipes, devices and bombs as inputs: refused at once, before they are read or waited for."""

from __future__ import annotations

import functools
import io
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gpusched_env import compare, load_comparison
from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.manifest import file_hash, read_manifest
from gpusched_env.agents.training.folder import read_config
from gpusched_env.errors import InputError
from gpusched_env.experiments.fuzz.case import KernelCounterexample
from gpusched_env.experiments.fuzz.stored import read_counterexample
from gpusched_env.experiments.ranking.result import read_ranking
from gpusched_env.experiments.report import load
from gpusched_env.games.child_launches.agents.rule import LaunchPolicyInfo
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.reading import MOST_UNZIPPED
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.workload.importers import import_trace
from gpusched_env.workload.workload import read_workload
from tests.refusals import refused


def read_model(path: Path, trust: bool = False) -> object:
    """It loads PyTorch."""
    from gpusched_env.agents import model_file

    return model_file.read_model(path, trust=trust)


READERS: list[Callable[[Path], object]] = [
    load_scenario, load_gpu, import_trace, read_workload, ExportedPolicy.load, LaunchPolicyInfo.read, read_manifest,
    file_hash, read_model, read_config, read_ranking,
    functools.partial(read_counterexample, kind=KernelCounterexample),
]  # fmt: skip


@pytest.mark.parametrize("read", READERS, ids=lambda read: getattr(getattr(read, "func", read), "__qualname__", "?"))
def test_pipes_and_devices_are_refused(read: Callable[[Path], object], tmp_path: Path) -> None:
    """Whoever opens a pipe that nobody writes to waits for ever."""
    for kind in (".yaml", ".json", ".npz", ".zip"):
        os.mkfifo(tmp_path / f"pipe{kind}")
        (tmp_path / f"device{kind}").symlink_to("/dev/zero")
        for name in (f"pipe{kind}", f"device{kind}"):
            with refused(InputError, name, "device"):
                read(tmp_path / name)


@pytest.mark.parametrize("name", ["result.json", "jobs.parquet", "timelines.npz"])
def test_pipes_in_a_result_are_refused(name: str, saved: Path) -> None:
    (saved / name).unlink()
    os.mkfifo(saved / name)
    with refused(InputError, name, "device"):
        load_comparison(saved)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared") / "out"
    compare("Toy", "fifo,sjf", 1, device="reference", record="kernels", workers=1).save(folder)
    return folder


@pytest.fixture
def saved(comparison: Path, tmp_path: Path) -> Path:
    """A folder of a comparison to tamper with."""
    return Path(shutil.copytree(comparison, tmp_path / "out"))


def bomb(path: Path, name: str, size: int) -> bytes:
    """An archive whose only member says that it is so large; it is not read."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, bytes(1000))
    data = bytearray(path.read_bytes())
    directory = data.rindex(b"PK\x01\x02")
    for at in (22, directory + 24):
        data[at : at + 4] = size.to_bytes(4, "little")
    path.write_bytes(data)
    return bytes(data)


BOMB = MOST_UNZIPPED + 1


def test_bombs_are_refused_unread(saved: Path, tmp_path: Path) -> None:
    bomb(saved / "timelines.npz", "0.kernels.whole.npy", BOMB)
    with refused(InputError, BOMB, "timelines.npz", "unzipped"):
        load_comparison(saved)
    model = tmp_path / "model.zip"
    bomb(model, "policy.pth", BOMB)
    with refused(InputError, BOMB, "model.zip", "unzipped"):
        read_model(model, trust=True)
    inner = bomb(model, "archive/data/0", BOMB)
    with zipfile.ZipFile(model, "w") as archive:
        archive.writestr("policy.pth", inner)
    with refused(InputError, BOMB, "policy.pth", "unzipped"):
        read_model(model, trust=True)


def test_arrays_that_claim_too_much_are_refused(tmp_path: Path) -> None:
    """The head of an array says that it is of terabytes, which are asked for before any of it is read."""
    path = tmp_path / "policy.npz"
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (10**13,)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.npy", head.getvalue() + bytes(100))
    with refused(InputError, "policy.npz"):
        ExportedPolicy.load(path)
    (tmp_path / "alone.npy").write_bytes(head.getvalue())
    with refused(InputError, "alone.npy", "policy"):
        ExportedPolicy.load(tmp_path / "alone.npy")


def test_a_parquet_file_of_too_many_rows_is_refused(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import parquet

    jobs = parquet.read_table(saved / "jobs.parquet")
    parquet.write_table(jobs.take([0] * 100_000), saved / "jobs.parquet", compression="zstd")
    monkeypatch.setattr(load, "MOST_ROWS", 1000)
    with refused(InputError, "jobs.parquet", "100000 rows"):
        load_comparison(saved)


@pytest.mark.parametrize(
    ("key", "array"),
    [
        ("0.kernels.whole", np.zeros((1, 3), np.int64)),
        ("0.kernels.whole", np.full((1, 12), 99, np.int64)),
        ("0.kernels.whole", np.zeros((1, 12), np.float64)),
        ("0.kernels.whole", np.zeros(12, np.int64)),
        ("0.parts.whole", np.zeros((1, 12), np.int64)),
        ("0.__class__.whole", np.zeros((1, 12), np.int64)),
        ("9.kernels.whole", np.zeros((1, 12), np.int64)),
        ("kernels", np.zeros((1, 12), np.int64)),
    ],
)
def test_timelines_of_something_else_are_refused(key: str, array: np.ndarray, saved: Path) -> None:  # type: ignore[type-arg]
    floats = f"{key.removesuffix('whole')}floats"
    np.savez(saved / "timelines.npz", **{key: array, floats: np.zeros((1, 0))})
    with refused(InputError, "incomplete"):
        load_comparison(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda jobs: jobs.assign(tenant="batch"),
        lambda jobs: jobs.drop(columns="arrived_us"),
        lambda jobs: jobs.assign(arrived_us="soon"),
        lambda jobs: jobs.iloc[:-1],
        lambda jobs: jobs.assign(seed=5),
        lambda jobs: jobs.assign(tenant=jobs["tenant"].iloc[0]),
    ],
)
def test_other_jobs_are_refused(change: Callable[..., object], saved: Path) -> None:
    import pandas

    jobs = pandas.read_parquet(saved / "jobs.parquet")
    functools.partial(change)(jobs).to_parquet(saved / "jobs.parquet")  # type: ignore[attr-defined]
    with refused(InputError, "incomplete"):
        load_comparison(saved)
