"""Throttling: a tenant's host sleeps before it begins a job. Hand-solved, on both simulated devices."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import (
    THROTTLE,
    WAIT,
    Command,
    Launch,
    Partition,
    Reject,
    SetPartition,
    Throttle,
    Wait,
)
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.view import View
from tests.devices.problems import K, new_device, problem
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("each_device")

COMMANDS = ["launch", "partition", "reject", "throttle"]
LOOP = {"kind": "closed-loop"}


def training(folder: Path, jobs: int = 3, **fields: Any) -> Problem:
    """Iterations of 1 us on the host and 10 us on the GPU, each synchronised, beside one kernel of 25 us."""
    loop = {"name": "training", "ops": [K(2, 10.0, host_us=1.0)], "arrivals": LOOP, "jobs": jobs}
    beside = {"name": "inference", "ops": [K(2, 25.0)]}
    return problem(folder, loop, beside, commands=COMMANDS, **{"throttle_us": 2.0, **fields})


def play(built: Problem, orders: list[tuple[float, Command]]) -> Device:
    """Launch everything at once, and give each order at its time."""
    device = new_device()
    view: View | None = device.reset(built, 0, record="kernels")
    left = list(orders)
    while view is not None:
        launchable = view.pending.id[view.pending.launchable == 1.0]
        if left and view.time_us >= left[0][0]:
            device.apply(left.pop(0)[1])
        elif len(launchable):
            device.apply(Launch(int(launchable[0])))
        else:
            device.apply(Wait(left[0][0]) if left else WAIT)
        view = device.advance()
    assert not left
    return device


def kernels(device: Device) -> list[tuple[int, ...]]:
    """Tenant, job, and when it was issued, started and ended, of each kernel, in order of its end."""
    table = device.timeline.kernels
    names = [table.names.index(name) for name in ("tenant", "job", "issued_us", "started_us", "ended_us")]
    return [tuple(int(row[column]) for column in names) for row in table.array]


def jobs(device: Device) -> list[tuple[int, ...]]:
    """Tenant, job, arrival, when the host took it up, completion."""
    return [tuple(int(value) for value in row) for row in device.timeline.jobs.array]


def test_without_a_pause_iterations_follow_each_other(tmp_path: Path) -> None:
    assert kernels(play(training(tmp_path), [])) == [
        (0, 0, 1, 1, 11), (0, 1, 12, 12, 22), (1, 0, 0, 0, 25), (0, 2, 23, 23, 33)
    ]  # fmt: skip


def test_a_host_sleeps_before_its_next_iterations_and_what_is_in_flight_goes_on(tmp_path: Path) -> None:
    """Throttled at 5 us, the first iteration ends at 11 us as before. The sleep after it has the 2 us of the change
    besides its 7, the next one does not: 11 + 9 + 1 = 21 and 31 + 7 + 1 = 39."""
    device = play(training(tmp_path), [(5.0, Throttle(0, 7.0))])
    assert kernels(device) == [(0, 0, 1, 1, 11), (1, 0, 0, 0, 25), (0, 1, 21, 21, 31), (0, 2, 39, 39, 49)]
    assert jobs(device) == [(0, 0, 0, 0, 11), (1, 0, 0, 0, 25), (0, 1, 11, 20, 31), (0, 2, 31, 38, 49)]
    decisions = device.timeline.decisions.array.tolist()
    assert decisions == [[0, 0, 0], [1, 0, 1], [5, THROTTLE, -1], [21, 0, 2], [39, 0, 3]]


def test_a_sleep_under_way_keeps_its_length_but_for_what_the_change_costs(tmp_path: Path) -> None:
    """Asleep from 11 to 20 us, told at 15 us to sleep no more: it wakes at 22 us, and then works without a pause."""
    device = play(training(tmp_path), [(5.0, Throttle(0, 7.0)), (15.0, Throttle(0, 0.0))])
    assert kernels(device) == [(0, 0, 1, 1, 11), (1, 0, 0, 0, 25), (0, 1, 23, 23, 33), (0, 2, 34, 34, 44)]


def test_a_host_without_a_job_sleeps_once_it_has_one(tmp_path: Path) -> None:
    """Jobs come at 0, 20 and 40 us. The sleep of 3 us and 2 us of the change begins with the second one."""
    tenant = {"ops": [K(4, 10.0)], "arrivals": {"kind": "periodic", "period_us": 20.0}, "jobs": 3}
    built = problem(tmp_path, tenant, commands=COMMANDS, throttle_us=2.0)
    assert jobs(play(built, [(15.0, Throttle(0, 3.0))])) == [(0, 0, 0, 0, 10), (0, 1, 20, 25, 35), (0, 2, 40, 43, 53)]


def test_a_host_whose_job_is_rejected_in_its_sleep_sleeps_again_before_the_next(tmp_path: Path) -> None:
    """The job of 20 us is rejected at 22 us, in the sleep until 25 us; that of 40 us has a sleep of its own."""
    tenant = {"ops": [K(4, 10.0)], "arrivals": {"kind": "periodic", "period_us": 20.0}, "jobs": 3}
    built = problem(tmp_path, tenant, commands=COMMANDS, throttle_us=2.0)
    device = play(built, [(15.0, Throttle(0, 3.0)), (22.0, Reject(0, 1))])
    assert jobs(device) == [(0, 0, 0, 0, 10), (0, 2, 40, 43, 53)]


def test_a_job_that_comes_during_a_sleep_does_not_cut_it_short(tmp_path: Path) -> None:
    """The second job is begun 8 us after the first one, in whose sleep the third comes, and that 6 us after it."""
    tenant = {"ops": [K(4, 10.0)], "arrivals": {"kind": "periodic", "period_us": 8.0}, "jobs": 3}
    built = problem(tmp_path, tenant, commands=COMMANDS, throttle_us=2.0)
    assert jobs(play(built, [(0.0, Throttle(0, 6.0))])) == [(0, 0, 0, 0, 10), (0, 1, 8, 18, 28), (0, 2, 16, 34, 44)]


def test_the_view_shows_the_pause_and_that_it_can_be_set_once_at_an_instant(tmp_path: Path) -> None:
    device = new_device()
    view = device.reset(training(tmp_path), 0)
    assert view is not None
    assert view.tenants.pause_us.tolist() == [0.0, 0.0]
    device.apply(Throttle(0, 7.5))
    view = device.advance()
    assert view is not None
    assert view.tenants.pause_us.tolist() == [7.5, 0.0]
    assert view.tenants.throttlable.tolist() == [0.0, 1.0]
    with refused(IllegalCommand, "tenant 0", "instant"):
        device.apply(Throttle(0, 1.0))


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (Throttle(0, -1.0), "pause_us must be a finite number of microseconds, 0 to 3.6e"),
        (Throttle(0, math.nan), "must be a finite number"),
        (Throttle(0, math.inf), "must be a finite number"),
        (Throttle(0, 1e15), "0 to 3.6e"),
        (Throttle(0, "long"), "must be a finite number"),  # type: ignore[arg-type]
        (Throttle(2, 1.0), "tenants are 0..1"),
        (Throttle(-1, 1.0), "tenants are 0..1"),
        (Throttle(0.5, 1.0), "tenant must be given in whole numbers"),  # type: ignore[arg-type]
        (Throttle(0, 0.0), "tenant 0 has this pause already"),
    ],
)  # fmt: skip
def test_bad_pauses_are_refused_and_change_nothing(tmp_path: Path, command: Throttle, says: str) -> None:
    device = new_device()
    device.reset(training(tmp_path), 0)
    with pytest.raises(IllegalCommand, match=says):
        device.apply(command)
    view = device.view()
    assert view.tenants.pause_us.tolist() == [0.0, 0.0]
    assert view.tenants.throttlable.tolist() == [1.0, 1.0]


def test_a_scenario_offers_it_by_name_only(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 10.0)]})
    device = new_device()
    device.reset(built, 0)
    with refused(IllegalCommand, "scenario"):
        device.apply(Throttle(0, 1.0))


# ---- a partition of a process that is started anew -------------------------------------------------------------------


def test_a_new_share_of_a_process_delays_its_next_job_by_a_restart(tmp_path: Path) -> None:
    """At 5 us the training gets two of the four SMs, which it shares with the inference: 2 blocks each on 4 SMs before
    and on 2 after. Its job in service ends, the next one begins 50 us later, once: 11 + 50 + 1 = 62 and 73 us."""
    built = training(tmp_path, restart_us=50.0)
    device = play(built, [(5.0, SetPartition(0, Partition(0, 2)))])
    assert kernels(device) == [(0, 0, 1, 1, 11), (1, 0, 0, 0, 25), (0, 1, 62, 62, 72), (0, 2, 73, 73, 83)]


def test_a_share_before_the_first_launch_restarts_nothing(tmp_path: Path) -> None:
    device = play(training(tmp_path, restart_us=50.0), [(0.0, SetPartition(0, Partition(2, 2)))])
    assert kernels(device) == [(0, 0, 1, 1, 11), (0, 1, 12, 12, 22), (1, 0, 0, 0, 25), (0, 2, 23, 23, 33)]


def test_a_restart_during_a_sleep_comes_on_top_of_it(tmp_path: Path) -> None:
    """Asleep from 11 to 20 us; the share set at 15 us makes that 70 us."""
    built = training(tmp_path, jobs=2, restart_us=50.0)
    device = play(built, [(5.0, Throttle(0, 7.0)), (15.0, SetPartition(0, Partition(0, 2)))])
    assert kernels(device) == [(0, 0, 1, 1, 11), (1, 0, 0, 0, 25), (0, 1, 71, 71, 81)]


def test_shares_may_have_more_sms_together_than_the_gpu(tmp_path: Path) -> None:
    """Three SMs each of four, two shared: the second kernel gets one SM at 0 us, and the two shared ones at 10 us, so
    that its six blocks run 1 + 3 + 2 and end at 30 us. With one SM to itself it would take 60 us."""
    first = {"name": "first", "ops": [K(3, 10.0)]}
    second = {"name": "second", "ops": [K(6, 10.0)]}
    built = problem(tmp_path, first, second, commands=["launch", "partition"])
    orders = [(0.0, SetPartition(0, Partition(0, 3))), (0.0, SetPartition(1, Partition(1, 3)))]
    assert kernels(play(built, orders)) == [(0, 0, 0, 0, 10), (1, 0, 0, 0, 30)]


def test_a_launch_of_a_process_has_no_share_of_its_own(tmp_path: Path) -> None:
    device = new_device()
    view = device.reset(training(tmp_path, restart_us=50.0), 0)
    assert view is not None
    launch = int(view.pending.id[0])
    with refused(IllegalCommand, "partition"):
        device.apply(Launch(launch, partition=Partition(0, 2)))
