"""A GPU behind a stand-in for CuPy."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from gpusched_env.devices.cuda.cupy_gpu import CupyGpu
from tests.devices.cuda import fake_cupy


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[CupyGpu]:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.fake_cupy())
    monkeypatch.setattr(fake_cupy.Stream, "fault", None)
    monkeypatch.setattr(fake_cupy.Stream, "hangs", False)
    made = CupyGpu(cache=False)
    yield made
    fake_cupy.quieten()
    made.close()
