"""Shapes of library kernels, on a stand-in for CuPy and the driver."""

from __future__ import annotations

from typing import Any

import pytest
from cuda.bindings import driver

from gpusched_env.devices.cuda.cublas import ProductLaunch, shape_of
from gpusched_env.errors import GpuError
from tests.devices.cuda import fake_cupy
from tests.refusals import refused

SMALL = ((2, 1, 1), (32, 1, 1), 16, 0, 0)
LARGE = ((3, 4, 2), (64, 2, 1), 168, 1024, 65536)


@pytest.fixture
def stream() -> Any:
    return fake_cupy.fake_cupy().cuda.Stream()


def launching(*names: str) -> Any:
    return lambda stream: fake_cupy.LAUNCHED.extend((name, stream.ptr) for name in names)


def test_the_kernel_with_most_threads_is_the_one(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clearing and small helpers beside it do not count."""
    kernels = fake_cupy.Kernels(small=SMALL, large=LARGE).install(monkeypatch)
    shape = shape_of(launching("clear", "small", "large", "small"), stream)
    assert shape == ProductLaunch(grid=(3, 4, 2), block=(64, 2, 1), registers=168, shared_bytes=1024 + 65536)
    assert kernels.graphs == 0


def test_no_kernel_and_a_driver_that_fails_are_told(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = fake_cupy.Kernels(small=SMALL).install(monkeypatch)
    with refused(GpuError, "launched"):
        shape_of(launching("clear"), stream)
    monkeypatch.setattr(driver, "cuFuncGetAttribute", lambda *given: (1, None))
    with refused(GpuError, "library's"):
        shape_of(launching("small"), stream)
    assert kernels.graphs == 0
