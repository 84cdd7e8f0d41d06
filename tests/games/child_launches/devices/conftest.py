"""Every test with a ``device`` runs on both."""

from __future__ import annotations

import pytest

from gpusched_env.games.child_launches.device import LaunchDevice
from gpusched_env.games.child_launches.devices import make_launch_device


@pytest.fixture(params=["reference", "compiled"])
def device(request: pytest.FixtureRequest) -> LaunchDevice:
    return make_launch_device(request.param)
