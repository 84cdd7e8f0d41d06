"""What happens at equal times happens in the documented order, at the exact time it was set for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simpy.events import ProcessGenerator

from gpusched_env.devices.reference.world import Alarm, Clock, Phase
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Partition, Preempt, Wait
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import OpKind
from tests.devices.problems import Copy, K, kernel_ends, launch_first, problem, run

pytestmark = pytest.mark.usefixtures("each_device")


@given(now=st.integers(0, 10**18), delay=st.integers(0, 10**18))
def test_an_alarm_goes_off_at_its_very_time_unless_it_is_stopped(now: int, delay: int) -> None:
    clock, fired = Clock(), []
    alarm, stopped = Alarm(clock), Alarm(clock)
    stopped.set(now + delay + 1, Phase.READY, 0, lambda: fired.append(-1))

    def again() -> None:
        stopped.stop()
        alarm.set(now + delay, Phase.READY, 0, lambda: fired.append(clock.now))

    alarm.set(now, Phase.READY, 0, again)
    while clock.alarms:
        clock.step()
    assert fired == [now + delay]
    assert clock.now == now + delay, "a stopped alarm does not move the clock"


def test_what_an_event_causes_at_its_instant_takes_its_place(tmp_path: Path) -> None:
    clock, log = Clock(), []

    def ready() -> None:
        log.append("ready")
        Alarm(clock).set(clock.now, Phase.SMS, 0, lambda: log.append("sms"))
        Alarm(clock).set(clock.now, Phase.HOST, 0, lambda: log.append("thread 0"))

    Alarm(clock).set(5, Phase.HOST, 1, lambda: log.append("thread 1"))
    Alarm(clock).set(5, Phase.READY, 0, ready)
    Alarm(clock).set(5, Phase.READY, 1, lambda: log.append("ready 1"))
    clock.step()
    clock.finish_present()
    assert log == ["ready", "sms", "ready 1", "thread 0", "thread 1"]


def test_a_process_waits_for_its_place_and_ends_where_its_alarm_is_stopped() -> None:
    clock, log = Clock(), []
    alarm = Alarm(clock)

    def steps() -> ProcessGenerator:
        yield alarm.at(5, Phase.READY, 1)
        log.append("second")
        yield alarm.at(9, Phase.READY, 1)
        log.append("never")

    clock.process(steps())
    Alarm(clock).set(5, Phase.HOST, 0, alarm.stop)
    Alarm(clock).set(5, Phase.READY, 0, lambda: log.append("first"))
    while clock.alarms:
        clock.step()
    assert log == ["first", "second"]
    assert clock.now == 5


def test_a_block_end_is_not_missed_by_an_ulp(tmp_path: Path) -> None:
    """Kernel 0 was to end at 3.2 us, but is killed before; the clock that was set for it is set anew to 13.9 us."""
    assert 3.2 + (13.9 - 3.2) < 13.9, "why a timer takes a time, not a delay"
    commands: list[Command] = [Launch(0), Launch(1), Wait(1.0), Preempt(0, "reset")]

    def decide(view: View) -> Command:
        if commands:
            return commands.pop(0)
        return WAIT if len(view.running) else launch_first(view)

    built = problem(tmp_path, {"ops": [K(1, 3.2)]}, {"ops": [K(1, 13.9)]}, commands=["launch", "preempt"])
    assert kernel_ends(run(built, decide)) == [(1, 0.0, 13.9), (0, 0.0, 17.1)]


def test_a_wait_ends_at_the_time_it_names(tmp_path: Path) -> None:
    times = []

    def decide(view: View) -> Command:
        times.append(view.time_us)
        return Wait(13.9) if view.time_us < 13.9 else launch_first(view)

    run(problem(tmp_path, {"ops": [K(4, 10.0)], "arrivals": {"kind": "backlog", "start_us": 3.2}}), decide)
    assert times[:2] == [3.2, 13.9]


def test_kernels_that_end_together_finish_in_order_of_their_tenants(tmp_path: Path) -> None:
    """Launched, and placed on the SMs, in the opposite order."""
    built = problem(tmp_path, *({"ops": [K(1, 50.0)]} for _ in range(4)))
    commands = [Launch(kernel, partition=Partition(3 - kernel, 1)) for kernel in (3, 1, 2, 0)]
    episode = run(built, lambda view: commands.pop(0) if commands else WAIT)
    assert kernel_ends(episode) == [(tenant, 0.0, 50.0) for tenant in range(4)]


def test_hardware_queues_move_up_in_order_of_tenants(tmp_path: Path) -> None:
    """When tenant 4's kernel ends, those of 1 and 0 are handed out, in the order in which they were launched.

    Each makes room in one of two hardware queues; behind tenant 0 waits tenant 2, behind tenant 1 tenant 3, and
    two SMs are left.
    """
    widths = (1, 1, 2, 2, 4)
    built = problem(tmp_path, *({"ops": [K(width, 50.0)]} for width in widths), gpu={"channels": 2})
    commands = [Launch(kernel) for kernel in (4, 1, 0, 3, 2)]
    ends = kernel_ends(run(built, lambda _: commands.pop(0) if commands else WAIT))
    assert {tenant: start for tenant, start, _ in ends} == {4: 0.0, 1: 50.0, 0: 50.0, 2: 50.0, 3: 100.0}


SLICED: dict[str, Any] = {
    "contexts": "per-tenant",
    "gpu": {"timing": {"slice_us": 2000.0, "switch_us": 100.0}},
}


def test_a_slice_ends_before_a_copy_that_ends_at_the_same_time(tmp_path: Path) -> None:
    """The kernel behind the copy does not start before the other context's turn."""
    ops = [Copy(OpKind.COPY_TO_DEVICE, 2000.0), K(4, 100.0)]
    built = problem(tmp_path, {"ops": ops}, {"ops": [K(4, 1000.0)]}, **SLICED)
    assert kernel_ends(run(built)) == [(1, 2100.0, 3100.0), (0, 3200.0, 3300.0)]


def test_slices_of_a_context_without_competition_follow_each_other(tmp_path: Path) -> None:
    """The second slice of tenant 0 ends at 4000 us, whenever in it tenant 1 comes."""
    late = {"ops": [K(4, 300.0)], "arrivals": {"kind": "backlog", "start_us": 2500.0}}
    built = problem(tmp_path, {"ops": [K(4, 5000.0)]}, late, **SLICED)
    assert kernel_ends(run(built)) == [(1, 4100.0, 4400.0), (0, 0.0, 5500.0)]


def test_rounding_of_traffic_is_no_event() -> None:
    """Which SMs hold what changes the sum of their traffic in its last bits."""

    def decide(view: View) -> Command:
        for kernel, urgency in zip(view.pending.id, view.pending.priority, strict=True):
            return Launch(int(kernel), priority=int(urgency) - 1)
        return WAIT

    steps = run(build_problem(load_scenario("InferenceBesideTraining", horizon_us=2_000.0)), decide).timeline.sms.dict()
    busy, traffic = steps["busy_sms"], steps["dram_bytes_per_us"]
    changed = np.abs(np.diff(traffic)) > 1e-9 * traffic[1:]
    assert len(traffic) > 200
    assert (changed | (np.diff(busy) != 0)).all()
