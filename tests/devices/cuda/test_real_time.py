"""Compiled code drives a GPU between two decisions, on a stand-in for CuPy and its driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusched_env.baselines.at_intervals import AtIntervals
from gpusched_env.baselines.edf import EarliestDeadline
from gpusched_env.devices import make_device
from gpusched_env.devices.cuda.cupy_gpu import CupyGpu
from gpusched_env.devices.cuda.device import RealDevice
from gpusched_env.devices.cuda.real_time import tables as pieces
from gpusched_env.devices.cuda.real_time.run import IntervalRun
from gpusched_env.devices.cuda.real_time.tables import GOES_ON
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import GpuError, InputError
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Reject
from gpusched_env.scheduling.contract import scheduler_rng
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import Op, OpKind
from tests.devices.cuda import fake_cupy
from tests.devices.problems import Copy, K, problem
from tests.devices.programs import GRAPH, SYNC, Kernels, build
from tests.refusals import refused

LATE_US = 300e6
"""A horizon in real time that no busy machine reaches."""


@pytest.fixture
def device(gpu: CupyGpu, monkeypatch: pytest.MonkeyPatch) -> RealDevice:
    driver = fake_cupy.Driver()
    monkeypatch.setattr(pieces, "functions", driver.functions)
    monkeypatch.setattr(fake_cupy.Driver, "refusal", 0)
    monkeypatch.setattr(fake_cupy.Driver, "waits", [])
    return RealDevice(gpu)


def played(device: Any, built: Problem, record: Detail = "kernels") -> Episode:
    return run_episode(AtIntervals(EarliestDeadline(), 100.0), built, device, 0, record=record)


def two_tenants(path: Path) -> Problem:
    """The first one's jobs are urgent and come when sixteen of the other's kernels are in flight; one is there when the
    other's seventeenth can be launched."""
    late = {"kind": "periodic", "period_us": 10000.0, "start_us": 3000.0}
    urgent = {"ops": [K(4, 5000.0)] * 10, "jobs": 3, "slo_us": 1e6, "arrivals": late}
    other = {"ops": [K(2, 10000.0)] * 20, "jobs": 1, "slo_us": 2e6}
    return problem(path, urgent, other, horizon_us=LATE_US, stream_priorities=[0, -1])


def test_an_episode_runs_without_python_between_decisions(device: RealDevice, tmp_path: Path) -> None:
    built = two_tenants(tmp_path)
    episode = played(device, built)
    kernels = episode.timeline.kernels.dict()
    assert episode.done
    assert len(episode.timeline.jobs) == 4
    assert episode.decisions == len(kernels["id"]) == 3 * 10 + 20
    for tenant in range(2):
        mine = np.argsort(kernels["id"][kernels["tenant"] == tenant])
        started, ended = (kernels[name][kernels["tenant"] == tenant][mine] for name in ("started_us", "ended_us"))
        assert (started[1:] >= ended[:-1] - 1e-3).all(), "a stream keeps its order, whichever queues it is in"
    assert 0 < len(device.launches_us) < len(device.decisions_us)


def test_a_stream_that_goes_on_at_another_priority_waits_for_itself(device: RealDevice, tmp_path: Path) -> None:
    played(device, two_tenants(tmp_path))
    assert fake_cupy.Driver.waits, "the other tenant's priority falls when the urgent one comes"
    assert all(event.at_ns > 0 for event in fake_cupy.Driver.waits), "each was recorded before it was waited for"


class Second(EarliestDeadline):
    """The second tenant goes first."""

    def first(self, view: View) -> int | None:
        return 1


def test_what_is_decided_stands(device: RealDevice, tmp_path: Path) -> None:
    """By the plan the first tenant would be the urgent one until it is done."""
    row = {"ops": [K(4, 5000.0)] * 40, "jobs": 1, "slo_us": 1e6}
    built = problem(tmp_path, row, row, horizon_us=LATE_US, stream_priorities=[0, -1])
    episode = run_episode(AtIntervals(Second(), 100.0), built, device, 0, record="kernels")
    kernels = episode.timeline.kernels.dict()
    # When the first ones were launched it may not have been decided yet; at the end one of them may be alone.
    for tenant, priority in ((0, 0.0), (1, -1.0)):
        order = np.argsort(kernels["id"][kernels["tenant"] == tenant])
        priorities = kernels["stream_priority"][kernels["tenant"] == tenant][order]
        assert set(priorities[20:30].tolist()) == {priority}


def test_python_and_compiled_code_take_turns(device: RealDevice, tmp_path: Path) -> None:
    built = two_tenants(tmp_path)
    assert run_episode(EarliestDeadline(), built, device, 0).done
    assert device.intervals_us.tolist() == []
    assert played(device, built).done
    assert len(device.intervals_us) > 0
    assert run_episode(EarliestDeadline(), built, device, 1).done


def test_it_is_what_simulation_has(device: RealDevice, tmp_path: Path) -> None:
    """Kernels of the same jobs, as often."""
    built = two_tenants(tmp_path)
    names = ("tenant", "job", "identity")
    real, simulated = (played(on, built).timeline.kernels.dict() for on in (device, make_device("compiled")))
    assert sorted(zip(*(real[name] for name in names), strict=True)) == sorted(
        zip(*(simulated[name] for name in names), strict=True)
    )


def test_copies_are_launched_as_graphs(device: RealDevice, tmp_path: Path) -> None:
    ops = [Copy(OpKind.COPY_TO_DEVICE, 5.0), K(4, 400.0), Copy(OpKind.COPY_TO_HOST, 5.0), "sync"]
    episode = played(device, problem(tmp_path, {"ops": ops, "jobs": 2}, horizon_us=LATE_US))
    assert episode.done
    assert len(episode.timeline.copies) == 4
    assert len(episode.timeline.kernels) == 2


def test_graphs_of_a_program_are_launched(device: RealDevice, tmp_path: Path) -> None:
    kernels = Kernels()
    nodes = (kernels.node(400.0), kernels.node(300.0, 0))
    ops = [Op(GRAPH, index=0, duration_us=700.0), SYNC]
    built = build(kernels, ops, graphs=[nodes], tenant={"jobs": 2}, timing={}, horizon_us=LATE_US)
    before = fake_cupy.Graph.made
    episode = played(device, built)
    assert episode.done
    assert len(episode.timeline.jobs) == 2
    assert fake_cupy.Graph.made == before + 1, "one for the one priority that is offered, before time runs"


def test_work_waits_for_work_of_other_streams(device: RealDevice, tmp_path: Path) -> None:
    kernels = Kernels()
    ops = [
        kernels.op(200_000.0, 2), Op(OpKind.RECORD, index=0), Op(OpKind.WAIT, index=0, stream=1),
        kernels.op(500.0, 1, stream=1), SYNC,
    ]  # fmt: skip
    # Of a tenant without an objective no more is in flight than can be waited for.
    tenant = {"slo_us": 1e6}
    episode = played(device, build(kernels, ops, program_streams=2, tenant=tenant, timing={}, horizon_us=LATE_US))
    first, second = episode.timeline.kernels.array
    started, ended = (episode.timeline.kernels.names.index(name) for name in ("started_us", "ended_us"))
    assert second[started] >= first[ended] - 1e-3
    assert len(fake_cupy.Driver.waits) == 1


def test_a_driver_that_refuses_is_told(device: RealDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = two_tenants(tmp_path)
    played(device, built)
    monkeypatch.setattr(fake_cupy.Driver, "refusal", 719)
    with refused(GpuError, "error 719"):
        played(device, built)


def test_a_fault_of_a_kernel_is_told(device: RealDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = two_tenants(tmp_path)
    played(device, built)
    monkeypatch.setattr(fake_cupy.Stream, "failure", fake_cupy.FAULT)
    with refused(GpuError, fake_cupy.FAULT, "error"):
        played(device, built)


class OwnCommand(AtIntervals):
    """Rejects a job before it decides anything."""

    def __init__(self, *commands: Reject) -> None:
        super().__init__(EarliestDeadline(), 100.0)
        self.commands = list(commands)

    def stand(self, view: View) -> Any:
        return self.commands.pop(0) if self.commands else super().stand(view)


def test_a_command_of_the_scheduler_s_own_is_carried_out(device: RealDevice, tmp_path: Path) -> None:
    row = {"ops": [K(4, 3000.0)] * 3, "jobs": 3, "slo_us": 1e6}
    built = problem(tmp_path, row, horizon_us=LATE_US, commands=["launch", "reject"])
    # The second command asks for what is gone already.
    episode = run_episode(OwnCommand(Reject(0, 2), Reject(0, 2)), built, device, 0)
    assert episode.timeline.rejections.dict()["job"].tolist() == [2]
    assert len(episode.timeline.jobs) == 2


class Failing(AtIntervals):
    """Cannot decide."""

    def __init__(self) -> None:
        super().__init__(EarliestDeadline(), 100.0)

    def stand(self, view: View) -> Any:
        raise ZeroDivisionError("of its own")


def test_an_error_of_the_scheduler_is_raised(device: RealDevice, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError, match="of its own"):
        run_episode(Failing(), two_tenants(tmp_path), device, 0)


class Looking(AtIntervals):
    """Keeps what it was shown."""

    def __init__(self) -> None:
        super().__init__(EarliestDeadline(), 100.0)
        self.views: list[View] = []

    def stand(self, view: View) -> Any:
        self.views.append(view)
        return super().stand(view)


def test_decisions_are_made_on_what_a_device_shows(device: RealDevice, tmp_path: Path) -> None:
    built, looking, simulated = two_tenants(tmp_path), Looking(), make_device("compiled")
    run_episode(looking, built, device, 0)
    shown, first = simulated.reset(built, 0), looking.views[0]
    assert shown is not None
    # In real time the first tenant may have come already; the other one's kernels were all issued at once.
    mine = first.pending.tenant == 1
    assert first.pending.id[mine].tolist() == shown.pending.id.tolist()
    assert first.pending.job_left_us[mine].tolist() == shown.pending.job_left_us.tolist()
    assert first.tenants.slo_us.tolist() == shown.tenants.slo_us.tolist()
    assert {1} <= set(first.jobs.tenant.tolist())
    launches = first.dependencies.launch[np.isin(first.dependencies.launch, first.pending.id[mine])]
    assert launches.tolist() == shown.dependencies.launch.tolist()
    assert (first.sms, first.horizon_us) == (shown.sms, shown.horizon_us)
    assert all(len(view.running) == view.tenants.kernels_launched.sum() for view in looking.views)
    assert len(looking.views) == len(device.intervals_us) > 1


def test_python_hears_of_interrupts(device: RealDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At least every half a second of an episode that takes a second and a half."""
    reasons: list[int] = []
    go = IntervalRun.go
    monkeypatch.setattr(IntervalRun, "go", lambda run: reasons.append(go(run)) or reasons[-1])
    built = problem(tmp_path, {"ops": [K(4, 5000.0)] * 10, "jobs": 30, "slo_us": 1e6}, horizon_us=LATE_US)
    assert played(device, built).done
    assert reasons.count(GOES_ON) >= 3


def test_what_takes_other_commands_is_left_to_python(device: RealDevice, tmp_path: Path) -> None:
    scheduler = AtIntervals(EarliestDeadline())
    for commands, driven in ((["launch", "reject"], True), (["launch", "partition"], False)):
        built = problem(tmp_path, {"ops": [K(4, 5.0)]}, commands=commands)
        scheduler.reset(built.knowledge, scheduler_rng(0))
        assert device.drives(scheduler, built) is driven
        assert not device.drives(EarliestDeadline(), built), "it decides about every launch"


def test_blocks_are_not_recorded(device: RealDevice, tmp_path: Path) -> None:
    with refused(InputError, "recorded"):
        played(device, two_tenants(tmp_path), record="blocks")
