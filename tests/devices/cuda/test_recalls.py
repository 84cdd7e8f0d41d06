"""Recalling kernels through the driver, on a stand-in for CuPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver

from gpusched_env.devices.cuda import cupy_gpu
from gpusched_env.devices.cuda.cupy_gpu import CupyGpu
from gpusched_env.devices.cuda.device import RealDevice
from gpusched_env.devices.cuda.launching import HostClock
from gpusched_env.devices.cuda.resources import RECALL_BYTES
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import GpuError
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Preempt, Wait
from gpusched_env.scheduling.view import View
from tests.devices.cuda import fake_cupy
from tests.devices.cuda.test_cupy_gpu import LATE_US
from tests.devices.problems import K, Script, problem
from tests.refusals import refused

OFFER = {"commands": ["launch", "preempt"], "preemption": ["drain"], "horizon_us": LATE_US}


def preempt_each(times: int) -> Script:
    """Launches all, and preempts the first kernel so often, some time after it has started."""
    left = [times]

    def decide(view: View) -> Command:
        for row in np.flatnonzero(view.pending.launchable):
            return Launch(int(view.pending.id[row]))
        for row in np.flatnonzero(view.running.preemptible):
            if view.running.id[row] == 0.0 and left[0]:
                if view.time_us < view.running.started_us[row] + 5000.0:
                    return Wait(float(view.running.started_us[row]) + 5000.0)
                left[0] -= 1
                return Preempt(0, "drain")
        return WAIT

    return Script(decide)


def recalls_of(gpu: CupyGpu) -> Any:
    return gpu._recalls


def test_a_kernel_is_recalled_with_what_is_behind_it(
    gpu: CupyGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "cuStreamWriteValue32", fake_cupy.write_value)
    monkeypatch.setattr(fake_cupy, "STOPPED", [])
    monkeypatch.setattr(HostClock, "compare", lambda clock: fake_cupy.AHEAD_NS)
    # Reports, and with them the words of recalls, are used again and again.
    monkeypatch.setattr(cupy_gpu, "SLOTS", 4)
    built = problem(tmp_path, {"ops": [K(400, 500.0), K(8, 200.0)]}, **OFFER)
    episode = run_episode(preempt_each(2), built, RealDevice(gpu), 0, record="blocks")
    kernels, blocks = episode.timeline.kernels.dict(), episode.timeline.blocks.dict()
    assert episode.done
    assert kernels["preemptions"].tolist() == [2, 0]
    assert kernels["started_us"][1] >= kernels["ended_us"][0] - 1e-3
    # Every block ran once.
    assert np.bincount(blocks["kernel"].astype(int)).tolist() == [400, 8]
    # The one behind was told first.
    recalls = recalls_of(gpu)
    assert recalls is not None
    slots = [(at - recalls.address(0)) / RECALL_BYTES for at in fake_cupy.STOPPED]
    assert len(slots) == 4
    assert set(slots) <= {0, 1, 2, 3}
    assert [(first - second) % 4 for second, first in zip(slots[1::2], slots[::2], strict=True)] == [1, 1]
    assert not recalls.unfinished
    assert not recalls._on


def test_nothing_can_be_recalled_where_preemption_is_not_offered(gpu: CupyGpu, tmp_path: Path) -> None:
    gpu.prepare(problem(tmp_path, {"ops": [K(4, 100.0)]}))
    assert recalls_of(gpu) is None
    assert {int(ready.words[9]) for ready in gpu._calls.values()} == {0}


def test_a_driver_that_does_not_write_is_told(gpu: CupyGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "cuStreamWriteValue32", lambda *given: (801,))
    built = problem(tmp_path, {"ops": [K(400, 500.0)]}, **OFFER)
    with refused(GpuError, "launch 0", "801"):
        run_episode(preempt_each(1), built, RealDevice(gpu), 0)
