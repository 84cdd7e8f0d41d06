"""What each hand-written scheduler decides on literal views."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from gpusched_env.baselines.exclusive import Exclusive
from gpusched_env.baselines.fifo import Fifo
from gpusched_env.baselines.mps import Mps, sm_cap
from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.baselines.priority_streams import PriorityStreams, stream_priorities
from gpusched_env.baselines.random_choice import RandomChoice
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.baselines.sjf import ShortestJobFirst
from gpusched_env.baselines.time_slicing import TimeSlicing
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scenarios.set_up import problem_for, set_up_of
from gpusched_env.scheduling.commands import WAIT, Launch, Partition, SetPartition, Wait
from gpusched_env.scheduling.contract import Scheduler
from gpusched_env.scheduling.view import View
from tests.baselines.instances import spans
from tests.devices.problems import K
from tests.devices.problems import problem as instance
from tests.envs.conftest import Row, build_view
from tests.refusals import refused


def problem(scenario: str = "Toy", gpu: str = "toy-4sm") -> Problem:
    return build_problem(load_scenario(scenario), gpu=load_gpu(gpu))


def kernel(id_: int, tenant: int, job: int = 0, launchable: bool = True, job_left_us: float = 100.0) -> Row:
    """A pending kernel."""
    return {"id": id_, "tenant": tenant, "job": job, "launchable": launchable, "job_left_us": job_left_us}


def tenant(priority: int, waiting: int = 0, done: int = 0, oldest_us: float = math.inf) -> Row:
    """A row of the tenant table."""
    return {"priority": priority, "jobs_waiting": waiting, "jobs_done": done, "oldest_arrived_us": oldest_us}


def view(*pending: Row, tenants: tuple[Row, ...] = (), running: int = 0) -> View:
    """A view with these rows on an idle GPU of four SMs."""
    now = {"time_us": 50.0, "sms": 4, "busy_sms": 0, "occupancy": 0.0, "dram": 0.0}
    return build_view(pending, [{}] * running, tenants or (tenant(1), tenant(0)), **now)


def started(scheduler: Scheduler, problem_: Problem | None = None) -> Scheduler:
    scheduler.reset((problem_ or problem()).knowledge, np.random.default_rng(0))
    return scheduler


SCHEDULERS = [PassThrough, PriorityStreams, TimeSlicing, Mps, Exclusive, Fifo, ShortestJobFirst, RandomChoice]


@pytest.mark.parametrize("make", SCHEDULERS)
def test_nothing_to_do_means_waiting_for_an_event(make: type[Scheduler]) -> None:
    scheduler = started(make())
    assert isinstance(scheduler, Scheduler)
    while isinstance(command := scheduler.decide(view()), SetPartition):
        pass
    assert command == WAIT
    assert scheduler.decide(view(kernel(0, 0, launchable=False))) == WAIT


def test_pass_through_launches_the_oldest_even_beside_others() -> None:
    scheduler = started(PassThrough())
    assert scheduler.decide(view(kernel(7, 0), kernel(9, 0, launchable=False), kernel(3, 1), running=2)) == Launch(3)


def test_ids_are_plain_integers() -> None:
    command = started(PassThrough()).decide(view(kernel(7, 0)))
    assert isinstance(command, Launch)
    assert type(command.launch) is int


@pytest.mark.parametrize(
    ("urgencies", "levels", "expected"),
    [
        ([0, 1], 6, [-1, 0]),  # the least urgent keeps the default
        ([1, 0], 2, [0, -1]),
        ([5, 0, 9], 6, [-1, -2, 0]),  # only the order counts
        ([0, 0, 1], 3, [-1, -1, 0]),
        ([0, 1], 1, [0, 0]),
        ([3, 3], 6, [0, 0]),
        ([0, 1, 2, 3], 2, [-1, -1, 0, 0]),  # spread evenly over too few levels
        ([0, 1, 2, 3, 4, 5], 3, [-2, -2, -1, -1, 0, 0]),
        ([0, 1, 2], 2, [-1, -1, 0]),
    ],
)
def test_stream_priorities(urgencies: list[int], levels: int, expected: list[int]) -> None:
    assert stream_priorities(urgencies, levels) == expected


def test_priority_streams_uses_the_tenant_of_the_kernel() -> None:
    scheduler = started(PriorityStreams())
    assert scheduler.decide(view(kernel(4, 0), kernel(5, 1))) == Launch(4, 0)
    assert scheduler.decide(view(kernel(5, 1))) == Launch(5, -1)


def test_priority_streams_forgets_the_last_problem() -> None:
    scheduler = started(PriorityStreams(), problem("ThreeTenants", "h100-sxm"))
    assert scheduler.decide(view(kernel(0, 0))) == Launch(0, -2)
    scheduler = started(scheduler)
    assert scheduler.decide(view(kernel(0, 0))) == Launch(0, 0)


def test_time_slicing_asks_for_separate_contexts() -> None:
    assert set_up_of(TimeSlicing()).contexts == "per-tenant"
    assert not hasattr(PassThrough, "contexts")


def test_the_length_of_time_slices_is_the_gpus_or_an_option() -> None:
    built = problem()
    assert problem_for(TimeSlicing(), built).gpu == built.gpu
    sliced = problem_for(TimeSlicing(slice_us=500.0), built)
    assert sliced.gpu.timing.slice_us == 500.0
    assert problem_for(TimeSlicing(slice_us=500.0), built) is sliced, "devices keep what they make of a problem"
    with refused(InputError, "slice_us is 0.0", "above 0"):
        TimeSlicing(slice_us=0.0)


def test_shorter_slices_take_more_turns(tmp_path: Path) -> None:
    gpu = {"timing": {"slice_us": 600.0, "switch_us": 100.0}}
    built = instance(tmp_path, {"ops": [K(4, 1000.0)]}, {"ops": [K(4, 1000.0)]}, gpu=gpu)
    # By turns: 0-600, 700-1300, 1400-1800 (done), 1900-2300.
    assert spans(TimeSlicing(), built) == [(0, 0.0, 1800.0, 0), (1, 700.0, 2300.0, 0)]
    # 0-400, 500-900, 1000-1400, 1500-1900, 2000-2200 (done), 2300-2500.
    assert spans(TimeSlicing(slice_us=400.0), built) == [(0, 0.0, 2200.0, 0), (1, 500.0, 2500.0, 0)]


@pytest.mark.parametrize(
    ("sms", "share", "cap"),
    [(170, 50, 84), (132, 50, 66), (132, 100 / 3, 44), (132, 100, 132), (4, 50, 2), (132, 0.1, 2), (1, 10, 1)],
)
def test_mps_percentage_is_a_cap_in_whole_tpcs(sms: int, share: float, cap: int) -> None:
    assert sm_cap(sms, share) == cap


def test_mps_sets_disjoint_caps_once_and_then_passes_through() -> None:
    scheduler = started(Mps(share=100 / 3), problem("ThreeTenants", "h100-sxm"))
    commands = [scheduler.decide(view(kernel(0, 0))) for _ in range(4)]
    assert commands == [
        SetPartition(0, Partition(0, 44)),
        SetPartition(1, Partition(44, 44)),
        SetPartition(2, Partition(88, 44)),
        Launch(0),
    ]


def test_mps_caps_overlap_above_an_equal_share() -> None:
    scheduler = started(Mps(share=75), problem("Toy", "h100-sxm"))
    assert [scheduler.decide(view()) for _ in range(3)] == [
        SetPartition(0, Partition(0, 98)),
        SetPartition(1, Partition(66, 98)),
        WAIT,
    ]


def test_mps_is_pass_through_by_default() -> None:
    assert started(Mps()).decide(view(kernel(1, 1))) == started(PassThrough()).decide(view(kernel(1, 1))) == Launch(1)


def test_mps_shares_differ_by_class_and_leave_room_for_each_other() -> None:
    """In Toy the second tenant is the urgent one."""
    scheduler = started(Mps(urgent_share=75, other_share=25), problem("Toy", "h100-sxm"))
    assert [scheduler.decide(view()) for _ in range(3)] == [
        SetPartition(0, Partition(0, 32)),
        SetPartition(1, Partition(33, 98)),
        WAIT,
    ]


def test_mps_does_not_confine_who_has_all_of_the_gpu() -> None:
    scheduler = started(Mps(other_share=50), problem("Toy", "h100-sxm"))
    assert [scheduler.decide(view()) for _ in range(2)] == [SetPartition(0, Partition(0, 66)), WAIT]


def test_mps_client_priority_has_two_levels() -> None:
    """However many classes of tenants there are, and GPU priorities."""
    scheduler = started(Mps(client_priority=True), problem("ThreeTenants", "h100-sxm"))
    assert [scheduler.decide(view(kernel(7, tenant))) for tenant in range(3)] == [
        Launch(7, -1), Launch(7, 0), Launch(7, 0),
    ]  # fmt: skip


@pytest.mark.parametrize("share", [0, -5, 100.1, math.nan])
def test_mps_refuses_impossible_shares(share: float) -> None:
    for option in ("share", "urgent_share", "other_share"):
        with refused(InputError, option, "above 0", "most 100"):
            Mps(**{option: share})


def test_exclusive_holds_the_gpu_until_the_job_is_complete() -> None:
    scheduler = started(Exclusive())
    rows = (kernel(0, 0), kernel(5, 1))
    both = (tenant(1, waiting=1, oldest_us=0.0), tenant(0, waiting=2, oldest_us=20.0))
    assert scheduler.decide(view(*rows, tenants=both)) == Launch(5)
    # Its kernel runs, the next one is not issued yet: the other tenant has to wait.
    assert scheduler.decide(view(kernel(0, 0), tenants=both, running=1)) == WAIT
    assert scheduler.decide(view(kernel(0, 0), tenants=both)) == WAIT
    # Job 0 is done; the most urgent tenant has another one, which is chosen anew.
    again = (both[0], tenant(0, waiting=1, done=1, oldest_us=30.0))
    assert scheduler.decide(view(kernel(0, 0), kernel(6, 1, job=1), tenants=again)) == Launch(6)
    idle = (both[0], tenant(0, done=2))
    assert scheduler.decide(view(kernel(0, 0), tenants=idle)) == Launch(0)


def test_exclusive_does_not_let_the_next_job_of_the_holder_slip_in() -> None:
    """The host has already issued kernels of job 1 while the last kernel of job 0 runs."""
    scheduler = started(Exclusive())
    first = (tenant(1, waiting=1, oldest_us=0.0), tenant(1, waiting=1, oldest_us=1.0))
    assert scheduler.decide(view(kernel(0, 0), tenants=first)) == Launch(0)
    assert scheduler.decide(view(kernel(1, 0, job=1), kernel(2, 1), tenants=first, running=1)) == WAIT
    after = (tenant(1, waiting=1, done=1, oldest_us=9.0), first[1])
    assert scheduler.decide(view(kernel(1, 0, job=1), kernel(2, 1), tenants=after)) == Launch(2)


def test_exclusive_takes_equal_urgency_in_order_of_arrival() -> None:
    scheduler = started(Exclusive())
    tenants = (tenant(0, waiting=1, oldest_us=30.0), tenant(0, waiting=1, oldest_us=10.0))
    assert scheduler.decide(view(kernel(0, 0), kernel(1, 1), tenants=tenants)) == Launch(1)


def test_exclusive_starts_afresh_after_a_reset() -> None:
    scheduler = started(Exclusive())
    assert scheduler.decide(view(kernel(0, 0), tenants=(tenant(1, waiting=1), tenant(0)))) == Launch(0)
    started(scheduler)
    both = (tenant(1, waiting=1), tenant(0, waiting=1))
    assert scheduler.decide(view(kernel(0, 0), kernel(1, 1), tenants=both)) == Launch(1)


def test_fifo_runs_one_kernel_at_a_time_in_order_of_issue() -> None:
    scheduler = started(Fifo())
    assert scheduler.decide(view(kernel(8, 0), kernel(2, 1))) == Launch(2)
    assert scheduler.decide(view(kernel(8, 0), running=1)) == WAIT


def test_sjf_prefers_the_job_with_the_least_work_left() -> None:
    scheduler = started(ShortestJobFirst())
    assert scheduler.decide(view(kernel(1, 0, job_left_us=300.0), kernel(2, 1, job_left_us=210.0))) == Launch(2)
    assert scheduler.decide(view(kernel(9, 0, job_left_us=210.0), kernel(2, 1, job_left_us=210.0))) == Launch(2)
    assert scheduler.decide(view(kernel(1, 0), kernel(2, 1), running=1)) == WAIT


def test_sjf_skips_what_may_not_be_launched() -> None:
    rows = (kernel(1, 0, job_left_us=300.0), kernel(2, 1, launchable=False, job_left_us=10.0))
    assert started(ShortestJobFirst()).decide(view(*rows)) == Launch(1)


def test_random_is_uniform_over_launches_and_short_waits() -> None:
    toy = problem()
    setting = msgspec.structs.replace(toy.scenario, stream_priorities=(0, -1))
    scheduler = started(RandomChoice(), replace(toy, scenario=setting))
    now = view(kernel(3, 0), kernel(5, 1))
    counts: dict[object, int] = {}
    for _ in range(5000):
        command = scheduler.decide(now)
        if isinstance(command, Wait):
            assert now.time_us < command.until_us < math.inf
            command = WAIT
        counts[command] = counts.get(command, 0) + 1
    assert set(counts) == {WAIT, Launch(3, 0), Launch(3, -1), Launch(5, 0), Launch(5, -1)}
    assert all(850 < count < 1150 for count in counts.values())


def test_random_follows_its_seed() -> None:
    def commands(seed: int) -> list[object]:
        scheduler = RandomChoice()
        scheduler.reset(problem().knowledge, np.random.default_rng(seed))
        return [scheduler.decide(view(kernel(3, 0), kernel(5, 1))) for _ in range(20)]

    assert commands(1) == commands(1)
    assert commands(1) != commands(2)


@pytest.mark.parametrize("name", ["edf", "llf", "moore", "srpt", "triage", "wspt"])
def test_children_of_a_job_that_is_over_are_launched(name: str) -> None:
    """A kernel's children can come when its job has been rejected or completed: no job of the tenant is there then."""
    command = started(make_scheduler(name)).decide(view(kernel(5, 1), tenants=(tenant(1), tenant(0, waiting=0))))
    assert isinstance(command, Launch)
    assert command.launch == 5
