"""Hand-written schedulers on a simulated device: what each promises of the resulting timeline."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.baselines.registry import make_scheduler, scheduler_names
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import load_scenario

JOBS = 6
KERNELS = 2
"""Of each job of the toy workloads."""


def toy(**changes: object) -> Problem:
    """The toy with several jobs a tenant, one in a closed loop and one at random times, and seconds for who sleeps."""
    tenants = {
        "batch": {"arrivals": {"kind": "closed-loop"}, "jobs": JOBS},
        "urgent": {"arrivals": {"kind": "poisson", "rate_per_s": 2000}, "jobs": JOBS},
    }
    return build_problem(load_scenario("Toy", horizon_us=1e7, tenants=tenants, **changes))


PROBLEM = toy()


def run(name: str, seed: int = 0, problem: Problem = PROBLEM, **options: object) -> Episode:
    return run_episode(make_scheduler(name, **options), problem, make_device("compiled"), seed, record="blocks")


def disjoint(spans: list[tuple[float, float]]) -> bool:
    return all(a[1] <= b[0] + 1e-6 for a, b in itertools.pairwise(sorted(spans)))


def kernel_spans(episode: Episode) -> list[tuple[float, float]]:
    kernels = episode.timeline.kernels.dict()
    return list(zip(kernels["started_us"].tolist(), kernels["ended_us"].tolist(), strict=True))


def job_spans(episode: Episode) -> dict[tuple[int, int], tuple[float, float]]:
    """First kernel start to last kernel end of each (tenant, job)."""
    spans: dict[tuple[int, int], tuple[float, float]] = {}
    kernels = episode.timeline.kernels.dict()
    for tenant, job, start, end in zip(*(kernels[c] for c in ("tenant", "job", "started_us", "ended_us")), strict=True):
        first, last = spans.get((int(tenant), int(job)), (np.inf, 0.0))
        spans[int(tenant), int(job)] = (min(first, start), max(last, end))
    return spans


@pytest.mark.parametrize("name", scheduler_names(windowed=False))
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_all_work_is_done_once_and_in_order(name: str, seed: int) -> None:
    episode = run(name, seed)
    assert episode.done
    kernels = episode.timeline.kernels.array
    assert len(kernels) == 2 * JOBS * KERNELS
    columns = episode.timeline.kernels.names
    for tenant in (0, 1):
        own = kernels[kernels[:, columns.index("tenant")] == tenant]
        own = own[np.argsort(own[:, columns.index("started_us")])]
        assert np.all(np.diff(own[:, columns.index("id")]) > 0)


@pytest.mark.parametrize("name", ["fifo", "sjf", "exclusive"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_serial_schedulers_never_overlap_kernels(name: str, seed: int) -> None:
    assert disjoint(kernel_spans(run(name, seed)))


def test_sharing_schedulers_do_overlap_kernels() -> None:
    for name in ("pass-through", "priority-streams", "mps", "mps(share=75)", "random"):
        assert not disjoint(kernel_spans(run(name)))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_exclusive_never_interleaves_jobs(seed: int) -> None:
    episode = run("exclusive", seed)
    assert disjoint(list(job_spans(episode).values()))
    assert len(job_spans(episode)) == 2 * JOBS


def test_pass_through_does_interleave_jobs() -> None:
    """Otherwise the test above would hold for everything."""
    assert not disjoint(list(job_spans(run("pass-through")).values()))


def test_exclusive_prefers_the_urgent_tenant_and_lets_a_running_job_finish() -> None:
    jobs = job_spans(run("exclusive", problem=build_problem(load_scenario("Toy"))))
    assert jobs[1, 0] == pytest.approx((0.0, 210.0))
    assert jobs[0, 0] == pytest.approx((210.0, 510.0))


def test_priority_streams_launches_the_urgent_tenant_at_a_higher_priority() -> None:
    kernels = run("priority-streams").timeline.kernels.dict()
    assert set(kernels["stream_priority"][kernels["tenant"] == 0]) == {0.0}
    assert set(kernels["stream_priority"][kernels["tenant"] == 1]) == {-1.0}


@pytest.mark.parametrize(("share", "sms"), [(50, ({0, 1}, {2, 3})), (25, ({0, 1}, {2, 3})), (100, (range(4),) * 2)])
def test_mps_keeps_every_tenant_on_its_sms(share: float | None, sms: tuple[set[int], set[int]]) -> None:
    used: tuple[set[int], set[int]] = (set(), set())
    for seed in range(3):
        timeline = run("mps", seed, share=share).timeline
        owner = dict(zip(timeline.kernels.column("id"), timeline.kernels.column("tenant"), strict=True))
        blocks = timeline.blocks.dict()
        for sm, kernel in zip(blocks["sm"], blocks["kernel"], strict=True):
            used[int(owner[kernel])].add(int(sm))
    assert used == tuple(set(allowed) for allowed in sms)


def test_time_slicing_shares_time_and_never_the_gpu() -> None:
    """Two backlogs of which each could use half of the GPU take as long as one after the other."""
    tenants = {
        name: {"workload": "toy_batch", "arrivals": {"kind": "backlog"}, "jobs": 10} for name in ("batch", "urgent")
    }
    problem = build_problem(load_scenario("Toy", horizon_us=1e7, tenants=tenants))
    sliced = run("time-slicing", problem=problem)
    assert sliced.problem.scenario.contexts == "per-tenant"
    assert sliced.end_us == pytest.approx(2 * 10 * 300.0)
    assert run("pass-through", problem=problem).end_us == pytest.approx(10 * 300.0)
    # A job ends with a synchronisation: for an instant its process has nothing on the GPU, and the other one
    # gets its turn. Jobs alternate, and the first tenant completes its tenth in the 19th turn.
    jobs = sliced.timeline.jobs.dict()
    assert max(jobs["completed_us"][jobs["tenant"] == 0]) == pytest.approx(19 * 300.0)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**31))
def test_random_never_gets_stuck(seed: int) -> None:
    assert run("random", seed).done


def test_decisions_that_cost_time_delay_but_change_no_promise() -> None:
    episode = run("exclusive", problem=toy(decision_us=3.0))
    assert episode.done
    assert disjoint(list(job_spans(episode).values()))
    assert episode.end_us > run("exclusive").end_us
