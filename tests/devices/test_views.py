"""The tables of a view, by hand and against each other."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.devices.reference.device import ReferenceDevice
from gpusched_env.devices.rules import rows
from gpusched_env.errors import GpuschedError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.commands import Command, Launch, Partition, Preempt, Wait
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.view import JobColumn, PendingColumn, RunningColumn, TenantColumn
from tests.devices.problems import K, new_device, problem
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("each_device")

INF = math.inf


@pytest.fixture
def launched(tmp_path: Path, each_device: str) -> Device:
    """Profiled: 100 and 30 us (tenant 0), 50 us (tenant 1), all launched at 0; tenant 0's first fills the GPU."""
    device = new_device()
    commands = ["launch", "preempt", "partition"]
    device.reset(problem(tmp_path, {"ops": [K(4, 100.0), K(1, 30.0)]}, {"ops": [K(2, 50.0)]}, commands=commands), 0)
    do(device, Launch(0), Launch(1), Launch(2))
    return device


def do(device: Device, *commands: Command) -> None:
    for command in commands:
        device.apply(command)
        device.advance()


def left_us(device: Device) -> tuple[list[float], list[float]]:
    tenants = device.view().tenants
    return tenants.launched_left_us.tolist(), tenants.running_left_us.tolist()


def test_predicted_time_left_runs_from_the_start_of_a_kernel(launched: Device) -> None:
    assert left_us(launched) == ([130.0, 50.0], [100.0, INF])
    do(launched, Wait(40.0))
    assert left_us(launched) == ([90.0, 50.0], [60.0, INF])
    do(launched, Wait(100.0), Wait(120.0))
    assert left_us(launched) == ([10.0, 30.0], [10.0, 30.0])
    do(launched, Wait(130.0), Wait(140.0))
    assert left_us(launched) == ([0.0, 10.0], [INF, 10.0])


def test_a_kernel_off_the_gpu_has_not_started_but_keeps_what_it_ran(launched: Device) -> None:
    do(launched, Wait(40.0), Preempt(0, "reset"), Wait(41.0))
    assert left_us(launched) == ([30.0, 49.0], [INF, 49.0]), "pending kernels do not count"
    do(launched, Launch(0))
    assert left_us(launched) == ([100.0 + 30.0, 49.0], [100.0, 49.0]), "it starts over"


def test_an_overdue_kernel_has_no_predicted_time_left(tmp_path: Path) -> None:
    device = new_device()
    device.reset(problem(tmp_path, {"ops": [K(4, 100.0)]}, commands=["launch", "partition"]), 0)
    do(device, Launch(0, partition=Partition(0, 1)), Wait(250.0))
    assert left_us(device) == ([0.0], [0.0])


@pytest.mark.parametrize("contexts", ["shared", "per-tenant"])
def test_tenants_columns_agree_with_the_running_table(contexts: str) -> None:
    """The encoder relies on it: it does not read the running table."""
    scenario = load_scenario("ThreeTenants", commands=["launch", "preempt", "partition"], contexts=contexts)
    device, rng = new_device(), np.random.default_rng(1)
    view = device.reset(build_problem(scenario), 1)
    started = 0
    for _ in range(200):
        assert view is not None
        running, tenants = view.running, view.tenants
        left = np.maximum(0.0, running.profiled_us - running.elapsed_us)
        for tenant in range(3):
            mine = running.tenant == tenant
            assert tenants.kernels_launched[tenant] == mine.sum()
            assert tenants.launched_left_us[tenant] == pytest.approx(left[mine].sum(), rel=1e-12)
            assert (running.priority[mine] == tenants.priority[tenant]).all()
            runs = left[mine & (running.started == 1)]
            assert tenants.running_left_us[tenant] == min(runs, default=INF)
            started += len(runs)
        launchable = view.pending.id[view.pending.launchable == 1]
        preemptible = running.id[running.preemptible == 1]
        if len(launchable) and rng.random() < 0.7:
            command: Command = Launch(int(rng.choice(launchable)))
        elif len(preemptible) and rng.random() < 0.2:
            command = Preempt(int(rng.choice(preemptible)), "save")
        else:
            command = Wait()
        device.apply(command)
        view = device.advance()
    assert started > 50, "otherwise nothing was tested"


def test_a_view_is_of_one_episode_and_one_epoch(tmp_path: Path) -> None:
    device = new_device()
    built = problem(tmp_path, {"ops": [K(4, 100.0)]})
    view = device.reset(built, 0)
    assert view is not None
    device.reset(built, 0)
    with refused(GpuschedError, "command"):
        _ = view.pending


def test_rows_fill_every_column(tmp_path: Path) -> None:
    """Their tables come empty; what one device leaves out the other does, too."""
    device = ReferenceDevice()
    device.reset(problem(tmp_path, {"ops": [K(4, 100.0), K(1, 30.0)]}, {"ops": [K(2, 50.0)]}), 0)
    device.apply(Launch(0))
    unfilled = -12345.0
    pending, launched = (np.full(len(columns), unfilled) for columns in (PendingColumn, RunningColumn))
    rows.fill_pending(device.world, device.streams.unfinished[1], pending)
    rows.fill_running(device.world, device.streams.unfinished[0], launched)
    tenants, jobs = np.full((2, len(TenantColumn)), unfilled), np.full((2, len(JobColumn)), unfilled)
    rows.fill_tenants(device.world, tenants)
    assert rows.list_jobs(device.world, jobs) == 2
    for table in (pending, launched, tenants, jobs):
        assert not (table == unfilled).any()
