"""Hosts of one process slow each other while both are at work: instances worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpusched_env.baselines.mps import Mps
from gpusched_env.baselines.time_slicing import TimeSlicing
from gpusched_env.episodes.session import run_episode
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import WAIT, Command, Reject
from gpusched_env.scheduling.contract import Scheduler
from gpusched_env.scheduling.view import View
from tests.devices.problems import K, Script, launch_first, new_device, problem

pytestmark = pytest.mark.usefixtures("each_device")


def two_hosts(folder: Path, **fields: Any) -> Problem:
    """Two launches of 10 us of host time from 0 on; 12, 10 and 10 us from 4 us on."""
    first = {"ops": [K(1, 1.0, host_us=10.0)] * 2}
    arrivals = {"kind": "backlog", "start_us": 4.0}
    second = {"ops": [K(1, 1.0, host_us=us) for us in (12.0, 10.0, 10.0)], "arrivals": arrivals}
    return problem(folder, first, second, host_contention=0.5, waiting_contention=0.5, **fields)


def issued_us(built: Problem, scheduler: Scheduler) -> list[list[float]]:
    """When each tenant's kernels were issued."""
    kernels = run_episode(scheduler, built, new_device(), 0, record="kernels").timeline.kernels.dict()
    times = zip(kernels["tenant"], kernels["issued_us"], strict=True)
    issued = [(int(tenant), round(float(us), 6)) for tenant, us in times]
    return [sorted(us for of, us in issued if of == tenant) for tenant in range(len(built.programs))]


def test_an_operation_takes_longer_if_another_host_is_at_work_when_it_begins(tmp_path: Path) -> None:
    # The first begins alone. From 4 us: 12 * 1.5; from 10 and 22 us: 10 * 1.5; from 37 us the second is alone.
    assert issued_us(two_hosts(tmp_path), Script()) == [[10.0, 25.0], [22.0, 37.0, 47.0]]


def test_every_other_tenant_at_work_counts(tmp_path: Path) -> None:
    hosts = [{"ops": [K(1, 1.0, host_us=10.0)]} for _ in range(3)]
    # They begin one after the other, at the same time.
    assert issued_us(problem(tmp_path, *hosts, host_contention=0.5), Script()) == [[10.0], [15.0], [20.0]]


def test_who_waits_for_the_gpu_is_not_at_work(tmp_path: Path) -> None:
    waiting = {"ops": [K(4, 100.0, host_us=1.0), "sync"]}
    arrivals = {"kind": "backlog", "start_us": 2.0}
    at_work = {"ops": [K(1, 1.0, host_us=10.0)] * 2, "arrivals": arrivals}
    assert issued_us(problem(tmp_path, waiting, at_work, host_contention=3.0), Script()) == [[1.0], [12.0, 22.0]]


def test_a_job_that_is_given_up_ends_its_host_s_work(tmp_path: Path) -> None:
    long = {"ops": [K(1, 1.0, host_us=1.0), K(1, 1.0, host_us=1000.0)]}
    arrivals = {"kind": "backlog", "start_us": 20.0}
    built = problem(
        tmp_path, long, {"ops": [K(1, 1.0, host_us=10.0)], "arrivals": arrivals},
        commands=["launch", "reject"], host_contention=1.0, waiting_contention=1.0,
    )  # fmt: skip

    def decide(view: View) -> Command:
        """Give up the first tenant's job as soon as anything of it is pending."""
        first = [int(job) for job, tenant in zip(view.pending.job, view.pending.tenant, strict=True) if tenant == 0]
        return Reject(0, first[0]) if first else launch_first(view) if len(view.pending) else WAIT

    assert issued_us(built, Script(decide)) == [[], [30.0]]


def test_who_waits_for_the_gpu_slows_others_as_long_as_its_job_lasts(tmp_path: Path) -> None:
    waiting = {"ops": [K(4, 30.0, host_us=1.0), "sync"]}
    arrivals = {"kind": "backlog", "start_us": 2.0}
    at_work = {"ops": [K(1, 1.0, host_us=10.0)] * 3, "arrivals": arrivals}
    built = problem(tmp_path, waiting, at_work, host_contention=3.0, waiting_contention=0.5)
    # From 2 and 17 us: 10 * 1.5; at 31 us the kernel and the job end, from 32 us the host is alone.
    assert issued_us(built, Script()) == [[1.0], [17.0, 32.0, 42.0]]


@pytest.mark.parametrize("scheduler", [TimeSlicing(), Mps(share=100), Script(contexts="per-tenant")])
def test_processes_do_not_slow_each_other(tmp_path: Path, scheduler: Scheduler) -> None:
    assert issued_us(two_hosts(tmp_path), scheduler) == [[10.0, 20.0], [16.0, 26.0, 36.0]]
