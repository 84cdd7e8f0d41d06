"""Tenants that come and go from outside, and a device that stands still for it. Hand-solved, on both devices."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

import pytest

from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.contract import OpenDevice
from tests.devices.problems import K, launch_first, new_device, problem
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("each_device")
DORMANT = 2e6
"""Beyond the horizon."""


def loops(folder: Path, *, first_us: float = DORMANT, **fields: Any) -> Problem:
    """One kernel of 10 us, and one of 5 us with 3 us between two jobs, on halves of the GPU."""
    return problem(
        folder,
        {"name": "a", "ops": [K(2, 10.0)], "arrivals": {"kind": "closed-loop", "start_us": first_us}, "jobs": None},
        {
            "name": "b",
            "ops": [K(2, 5.0)],
            "arrivals": {"kind": "closed-loop", "start_us": DORMANT, "think_us": 3.0},
            "jobs": None,
        },
        **fields,
    )


def begun(built: Problem, **options: Any) -> OpenDevice:
    """A device that stands still at time 0."""
    device = cast("OpenDevice", new_device())
    device.stop_us = 0.0
    view = device.reset(built, 0, **options)
    while view is not None:
        device.apply(launch_first(view))
        view = device.advance()
    assert device.time_us == 0.0
    return device


def until(device: OpenDevice, us: float) -> None:
    """Launch everything at once until then."""
    device.stop_us = us
    while (view := device.advance()) is not None:
        device.apply(launch_first(view))
    assert device.time_us == us


def jobs(device: OpenDevice) -> list[tuple[int, ...]]:
    """Tenant, job, arrival and completion."""
    return [tuple(int(row[column]) for column in (0, 1, 2, 4)) for row in device.timeline.jobs.array]


def test_they_come_and_go_at_the_time_at_which_the_device_stands(tmp_path: Path) -> None:
    """``a`` has two jobs from 7 us on. ``b`` comes at 12 us, goes at 30 us in its third job, and comes for one more."""
    device = begun(loops(tmp_path))
    until(device, 7.0)
    device.come(0, 2)
    until(device, 12.0)
    device.come(1)
    until(device, 30.0)
    device.go(1)
    until(device, 50.0)
    device.come(1, 1)
    until(device, 100.0)
    assert jobs(device) == [
        (0, 0, 7, 17),
        (1, 0, 12, 17),
        (1, 1, 20, 25),
        (0, 1, 17, 27),
        (1, 2, 28, 33),
        (1, 3, 50, 55),
    ]


def test_who_goes_between_two_jobs_sends_none_any_more(tmp_path: Path) -> None:
    device = begun(loops(tmp_path))
    device.come(1)
    until(device, 6.0)
    device.go(1)
    until(device, 40.0)
    assert jobs(device) == [(1, 0, 0, 5)]


def test_who_comes_while_its_last_job_goes_on_sends_the_next_after_that(tmp_path: Path) -> None:
    device = begun(loops(tmp_path))
    device.come(1)
    until(device, 2.0)
    device.go(1)
    device.come(1, 1)
    until(device, 40.0)
    assert jobs(device) == [(1, 0, 0, 5), (1, 1, 8, 13)]


def test_it_is_as_if_they_had_been_there_from_the_beginning(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    came, own = begun(loops(tmp_path)), begun(loops(tmp_path / "own", first_us=0.0))
    came.come(0)
    for device in (came, own):
        until(device, 500.0)
    assert jobs(came) == jobs(own)
    assert len(jobs(own)) == 50


def test_standing_still_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    often, once = begun(loops(tmp_path, first_us=0.0)), begun(loops(tmp_path / "whole", first_us=0.0))
    for us in range(1, 101):
        until(often, us / 2.0)
    until(once, 50.0)
    assert jobs(often) == jobs(once)
    assert often.costs.energy_j == pytest.approx(once.costs.energy_j)


def test_a_device_that_stands_nowhere_ends_at_the_horizon(tmp_path: Path) -> None:
    device = begun(loops(tmp_path, horizon_us=95.0))
    device.come(0)
    device.stop_us = math.inf
    while (view := device.advance()) is not None:
        device.apply(launch_first(view))
    assert (device.time_us, len(jobs(device))) == (95.0, 9)


@pytest.mark.parametrize(
    ("tenant", "jobs_", "error"),
    [
        (0, None, r"tenant 0 \(a\) cannot come: it is there"),
        (1, 0, r"tenant 1 \(b\) cannot come with 0 jobs; must be at least 1"),
        (2, None, "tenant 2 cannot come: tenants are 0 to 1"),
        (-1, None, "tenant -1 cannot come"),
    ],
)
def test_who_cannot_come(tmp_path: Path, tenant: int, jobs_: int | None, error: str) -> None:
    device = begun(loops(tmp_path))
    device.come(0)
    with pytest.raises(IllegalCommand, match=error):
        device.come(tenant, jobs_)
    until(device, 25.0)
    assert jobs(device) == [(0, 0, 0, 10), (0, 1, 10, 20)]


def test_who_cannot_go(tmp_path: Path) -> None:
    device = begun(loops(tmp_path))
    with refused(IllegalCommand, "1 (b)", "tenant"):
        device.go(1)
    with refused(IllegalCommand, "tenant 7", "are 0 to 1"):
        device.go(7)
    until(device, 30.0)
    assert jobs(device) == []


@pytest.mark.parametrize("fields", [{"arrivals": {"kind": "poisson", "rate_per_s": 1.0}, "jobs": None}, {"jobs": 1}])
def test_only_closed_loops_without_a_number_of_jobs(tmp_path: Path, fields: dict[str, Any]) -> None:
    loop = {"kind": "closed-loop"}
    device = begun(problem(tmp_path, {"ops": [K(1, 5.0)], "arrivals": loop, **fields}))
    for call in (device.come, device.go):
        with refused(IllegalCommand, "without"):
            call(0)


def test_a_snapshot_has_who_came_and_went(tmp_path: Path) -> None:
    """At a time at which the device stands, and in a job of one that went."""
    device = begun(loops(tmp_path), snapshots=True)
    device.come(0, 3)
    until(device, 4.0)
    device.come(1)
    until(device, 14.0)
    device.go(1)
    until(device, 15.0)
    kept = device.snapshot()
    until(device, 20.0)
    device.come(1, 2)
    until(device, 60.0)
    whole = jobs(device)
    assert device.restore(kept) is None
    assert device.time_us == 15.0
    assert device.stop_us == 60.0
    until(device, 20.0)
    device.come(1, 2)
    until(device, 60.0)
    assert jobs(device) == whole
    assert len(whole) == 7


def test_a_snapshot_of_a_decision_is_taken_before_the_device_stands(tmp_path: Path) -> None:
    device = begun(loops(tmp_path), snapshots=True)
    device.come(0)
    device.stop_us = 10.0
    view = device.advance()
    assert view is not None
    pending = view.pending.id.tolist()
    kept = device.snapshot()
    again = device.restore(kept)
    assert again is not None
    assert again.pending.id.tolist() == pending
    until(device, 10.0)
