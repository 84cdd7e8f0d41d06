"""Every test with a ``device`` runs on both."""

from __future__ import annotations

import pytest

from gpusched_env.devices.task_queues import make_task_device
from gpusched_env.task_queues.device import TaskDevice


@pytest.fixture(params=["reference", "compiled"])
def device(request: pytest.FixtureRequest) -> TaskDevice:
    return make_task_device(request.param)
