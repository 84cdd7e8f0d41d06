"""Fits that are kept on disk."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.devices.cuda import cublas
from gpusched_env.devices.cuda.cupy_gpu import CupyGpu
from gpusched_env.devices.cuda.fitting import Fit, FitCache, StandIn, cache_file
from gpusched_env.devices.cuda.launching import HostClock
from gpusched_env.devices.cuda.library import LibraryStand
from tests.devices.cuda import fake_cupy
from tests.devices.problems import K, problem

FIRST = StandIn(blocks=264, threads=256, registers=64, shared_bytes=0, chains=2, turns=100, loads=3, extra=4)
FOUND = Fit(StandIn(blocks=264, threads=256, registers=64, shared_bytes=0, chains=2, turns=7, loads=2, extra=1), 10.25)
PRODUCT = LibraryStand("product", 4, True, 130_100)
LONGER = Fit(LibraryStand("product", 4, True, 130_100, 9), 20.5)


def never() -> Any:
    raise AssertionError("measured again")


def test_what_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "gpu.json"
    cache = FitCache(path)
    for again in (lambda: FOUND, never):
        assert cache.of(FIRST, 10.0, 1.0, again) == FOUND
    assert cache.of(PRODUCT, 20.0, 1.0, lambda: LONGER) == LONGER
    cache.write()
    read = FitCache(path)
    assert read.of(FIRST, 10.0, 1.0, never) == FOUND
    assert read.of(PRODUCT, 20.0, 1.0, never) == LONGER
    assert [one.name for one in path.parent.iterdir()] == ["gpu.json"]


@pytest.mark.parametrize("key", [(FOUND.stand, 10.0, 1.0), (FIRST, 10.5, 1.0), (FIRST, 10.0, 1.5)])
def test_another_stand_in_duration_or_gap_is_another_fit(key: tuple[StandIn, float, float]) -> None:
    cache = FitCache(None)
    cache.of(FIRST, 10.0, 1.0, lambda: FOUND)
    other = Fit(FIRST, 1.0)
    assert cache.of(*key, lambda: other) == other


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b'{"format": "gpusched-fits/1", "fits": {"a', b"[1]", b'{"format": "other/1", "fits": {}}'],
)
def test_a_damaged_file_is_written_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "gpu.json"
    path.write_bytes(content)
    cache = FitCache(path)
    assert cache.of(FIRST, 10.0, 1.0, lambda: FOUND) == FOUND
    cache.write()
    assert FitCache(path).of(FIRST, 10.0, 1.0, never) == FOUND


def test_a_damaged_fit_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "gpu.json"
    cache = FitCache(path)
    cache.of(FIRST, 10.0, 1.0, lambda: FOUND)
    cache.write()
    path.write_text(path.read_text().replace('"turns":7', '"turns":"many"'))
    read = FitCache(path)
    other = Fit(FIRST, 1.0)
    assert read.of(FIRST, 10.0, 1.0, lambda: other) == other
    read.write()
    assert FitCache(path).of(FIRST, 10.0, 1.0, never) == other


def test_what_another_process_has_kept_stays(tmp_path: Path) -> None:
    path = tmp_path / "gpu.json"
    mine, others = FitCache(path), FitCache(path)
    mine.of(FIRST, 10.0, 1.0, lambda: FOUND)
    others.of(FIRST, 20.0, 1.0, lambda: FOUND)
    mine.write()
    others.write()
    for us in (10.0, 20.0):
        assert FitCache(path).of(FIRST, us, 1.0, never) == FOUND


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = FitCache(tmp_path / "file" / "gpu.json")
    assert cache.of(FIRST, 10.0, 1.0, lambda: FOUND) == FOUND
    cache.write()
    assert cache.of(FIRST, 10.0, 1.0, never) == FOUND
    # Something that is no file stands where it should be.
    (tmp_path / "gpu.json").mkdir()
    cache = FitCache(tmp_path / "gpu.json")
    cache.of(FIRST, 10.0, 1.0, lambda: FOUND)
    cache.write()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "gpu.json"]


def test_each_product_driver_and_version_has_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cupy = fake_cupy.fake_cupy()
    usual = cache_file(cupy, "NVIDIA H100 80GB HBM3")
    assert usual is not None
    assert usual.parent == tmp_path / "gpusched"
    assert usual.name.startswith("NVIDIA-H100-80GB-HBM3_driver-13000_cuda-13000_cupy-14.2.0_")
    found = {usual, cache_file(cupy, "NVIDIA H200")}
    for version in ("driverGetVersion", "runtimeGetVersion"):
        with monkeypatch.context() as changed:
            changed.setattr(cupy.cuda.runtime, version, lambda: 13010)
            found.add(cache_file(cupy, "NVIDIA H100 80GB HBM3"))
    with monkeypatch.context() as changed:
        changed.setattr("gpusched_env.devices.cuda.fitting.SOURCE", "kernels.py")
        found.add(cache_file(cupy, "NVIDIA H100 80GB HBM3"))
    assert len(found) == 5


def test_the_folder_is_the_user_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = fake_cupy.fake_cupy()
    monkeypatch.setenv("HOME", str(tmp_path))
    for unset in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        file = cache_file(cupy, "GPU")
        assert file is not None
        assert file.parent == tmp_path / ".cache" / "gpusched"
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert cache_file(cupy, "GPU") is None


def test_a_second_run_measures_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cupy = fake_cupy.fake_cupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(cublas, "bindings", fake_cupy.Cublas)
    ops = [K(4, 100.0), K(2, 300.0)]
    built = problem(tmp_path, {"ops": ops}, {"ops": ops, "kernels": "library"})
    measured: list[HostClock] = []
    hold = HostClock.hold

    def measuring(clock: HostClock, *given: Any) -> Any:
        measured.append(clock)
        return hold(clock, *given)

    monkeypatch.setattr(HostClock, "hold", measuring)

    def prepared() -> dict[tuple[int, str], Fit[Any]]:
        gpu = CupyGpu()
        gpu.prepare(built)
        found = gpu.fits
        gpu.close()
        return found

    first = prepared()
    assert len(first) == 4
    assert measured
    measured.clear()
    assert prepared() == first
    assert not measured
    # With another driver kernels may take other times.
    monkeypatch.setattr(cupy.cuda.runtime, "driverGetVersion", lambda: 13010)
    prepared()
    assert measured
