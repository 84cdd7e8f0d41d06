"""Every test with a ``device`` runs on both."""

from __future__ import annotations

import pytest

from gpusched_env.devices.dynamic_parallelism import make_launch_device
from gpusched_env.dynamic_parallelism.device import LaunchDevice


@pytest.fixture(params=["reference", "compiled"])
def device(request: pytest.FixtureRequest) -> LaunchDevice:
    return make_launch_device(request.param)
