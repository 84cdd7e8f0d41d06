"""Every simulated device keeps the same contract."""

from __future__ import annotations

import pytest

from tests.devices import problems


@pytest.fixture(params=["reference", "compiled"])
def each_device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with each device behind :func:`tests.devices.problems.new_device`."""
    monkeypatch.setattr(problems, "DEVICE", request.param)
    return str(request.param)
