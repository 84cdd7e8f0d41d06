"""Every test with a ``device`` runs on both."""

from __future__ import annotations

import pytest

from gpusched_env.games.task_queues.device import TaskDevice
from gpusched_env.games.task_queues.devices import make_task_device


@pytest.fixture(params=["reference", "compiled"])
def device(request: pytest.FixtureRequest) -> TaskDevice:
    return make_task_device(request.param)
