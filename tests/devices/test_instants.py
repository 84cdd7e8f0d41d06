"""What coincides with the waves of a large grid, and commands that are legal once at an instant."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Launch, Partition, Preempt, Reject, SetPartition, Wait
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.view import View
from tests.devices.problems import K, new_device, problem

pytestmark = pytest.mark.usefixtures("each_device")

COMMANDS = ["launch", "preempt", "partition", "reject"]
WAVES = 100


def start(built: Problem) -> tuple[Device, View]:
    """The device after the first launch."""
    device = new_device()
    device.reset(built, 0)
    device.apply(Launch(0))
    view = device.advance()
    assert view is not None
    return device, view


def wait(device: Device, until_us: float) -> View:
    """The view after a wait that nothing cuts short."""
    device.apply(Wait(until_us))
    view = device.advance()
    assert view is not None
    assert view.time_us == until_us
    return view


@pytest.fixture
def waves(tmp_path: Path) -> Problem:
    """A kernel of a hundred waves of four blocks that take 1 us."""
    return problem(tmp_path, {"ops": [K(4 * WAVES, 1.0)], "jobs": 2}, commands=COMMANDS)


@pytest.mark.parametrize(("until_us", "begun"), [(50.0, 51), (50.5, 51), (51.0, 52)])
def test_a_wave_that_begins_at_an_instant_has_begun_in_its_view(waves: Problem, until_us: float, begun: int) -> None:
    device, _ = start(waves)
    view = wait(device, until_us)
    assert view.running.blocks_waiting.tolist() == [4 * (WAVES - begun)]
    assert view.running.blocks_resident.tolist() == [4]


def test_blocks_end_before_a_drain_is_acknowledged_at_the_same_instant(tmp_path: Path) -> None:
    """The 52nd wave begins at 51 us, then no more are to: it ends at 52 us."""
    gpu = {"timing": {"drain_ack_us": 1.0}}
    device, _ = start(problem(tmp_path, {"ops": [K(4 * WAVES, 1.0)], "jobs": 2}, commands=COMMANDS, gpu=gpu))
    wait(device, 50.0)
    device.apply(Preempt(0, "drain"))
    device.advance()
    device.apply(Wait())
    view = device.advance()
    assert view is not None
    assert view.time_us == 52.0
    assert view.pending.blocks.tolist() == [4 * (WAVES - 52)]


def test_who_can_do_no_more_at_an_instant_is_asked_when_something_has_happened(tmp_path: Path) -> None:
    """The ends of blocks are nothing that a scheduler could know of."""
    built = problem(tmp_path, {"ops": [K(4 * WAVES, 1.0)], "jobs": 2}, commands=["launch", "partition"])
    device, view = start(built)
    assert view.time_us == 0.0
    device.apply(SetPartition(0, Partition(0, 2)))
    after = device.advance()
    assert after is not None
    assert after.time_us == float(WAVES)


def test_a_host_passes_over_rejected_jobs_that_are_forgotten(tmp_path: Path) -> None:
    """When job 0 completes and job 3 arrives, at 30 us, the host has not seen that jobs 1 and 2 are gone."""
    arrivals = {"kind": "periodic", "period_us": 10.0}
    built = problem(tmp_path, {"ops": [K(4, 30.0)], "arrivals": arrivals, "jobs": 4}, commands=COMMANDS)
    device, _ = start(built)
    for job in (1, 2):
        wait(device, 10.0 * job)
        device.apply(Reject(0, job))
        device.advance()
    view = wait(device, 30.0)
    assert view.jobs.job.tolist() == [3.0]
    assert view.pending.job.tolist() == [3.0]
