"""Episode metrics and cost terms, against figures worked out by hand."""

from __future__ import annotations

import dataclasses
import math

import msgspec
import numpy as np
import pytest

from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import Episode
from gpusched_env.hardware.clock import to_ps
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import Reward, load_scenario, make_scenario
from gpusched_env.scheduling.reward import COST_TERMS, Costs, cost_terms, total_cost
from gpusched_env.scheduling.timeline import Timeline

BATCH, URGENT = 0, 1


def toy(alone_us: tuple[float, float] = (300.0, 200.0), **reward: float) -> Problem:
    """The Toy problem (batch: weight 1, no SLO; urgent: weight 3, SLO 250 us; 4 SMs) with round times alone."""
    problem = build_problem(msgspec.structs.replace(load_scenario("Toy"), reward=Reward(**reward)))
    programs = tuple(dataclasses.replace(p, alone_us=a) for p, a in zip(problem.programs, alone_us, strict=True))
    return dataclasses.replace(problem, programs=programs)


def episode(
    problem: Problem,
    jobs: list[tuple[int, float, float, float]],
    *,
    arrived: tuple[int, int],
    missed: tuple[int, int] = (0, 0),
    rejected: tuple[int, int] = (0, 0),
    end_us: float = 1000.0,
) -> Episode:
    """An episode with completed ``jobs``: tenant, arrival, start, completion."""
    timeline = Timeline("jobs")
    for number, (tenant, *times) in enumerate(jobs):
        timeline.jobs.add(tenant, number, *(to_ps(us) for us in times))
    costs = Costs(2)
    costs.arrived[:] = arrived
    costs.slo_misses[:] = missed
    costs.rejected[:] = rejected
    costs.completed[:] = [sum(job[0] == tenant for job in jobs) for tenant in (BATCH, URGENT)]
    costs.jobs_us[:] = (600.0, 400.0)
    costs.makespan_us = end_us
    costs.energy_j = 0.5
    costs.busy_sm_us = 3000.0
    costs.dram_bytes = 0.25 * problem.gpu.dram_bytes_per_us * end_us
    costs.time_us = end_us
    return Episode(problem, 0, timeline, costs, end_us, done=False, decisions=7, wall_s=0.1)


def test_figures_of_a_hand_worked_episode() -> None:
    jobs = [(BATCH, 0.0, 0.0, 600.0), (URGENT, 0.0, 0.0, 100.0), (URGENT, 50.0, 100.0, 350.0)]
    metrics = episode_metrics(episode(toy(turnaround=1.0), jobs, arrived=(1, 2), missed=(0, 1)))
    batch, urgent = metrics.tenants
    assert (batch.name, batch.completed, batch.unfinished) == ("batch", 1, 0)
    assert batch.turnaround_mean_us == batch.turnaround_p50_us == batch.turnaround_p99_us == 600.0
    assert batch.slowdown == 2.0
    assert batch.progress == 0.5
    # Turnarounds of 100 and 300 us against 200 us alone.
    assert urgent.turnaround_mean_us == urgent.turnaround_p50_us == 200.0
    assert urgent.turnaround_p95_us == pytest.approx(290.0)
    assert urgent.turnaround_p99_us == pytest.approx(298.0)
    assert urgent.slowdown == 1.0
    # The host was at work for 100 + 250 us on jobs that take 400 us alone.
    assert urgent.progress == pytest.approx(400.0 / 350.0)
    assert urgent.slo_attainment == 0.5
    # From 0, when the first job arrived, to 350 us, when the last one was done.
    assert urgent.throughput_per_s == pytest.approx(2 / 350e-6)
    assert metrics.stp == pytest.approx(0.5 + 400.0 / 350.0)
    assert metrics.antt == pytest.approx(1.5)
    assert metrics.utilisation == pytest.approx(0.75)
    assert metrics.dram_utilisation == pytest.approx(0.25)
    assert metrics.energy_per_job_j == pytest.approx(0.5 / 3)
    assert metrics.jobs_per_j == pytest.approx(6.0)
    assert metrics.decisions == 7
    assert metrics.cost == pytest.approx(0.6 + 3 * 0.4)


def test_urgent_tail_beside_the_others_progress() -> None:
    """The plane of protection and what it leaves: p99 of the urgent against best-effort progress."""
    jobs = [(BATCH, 0.0, 0.0, 600.0), (URGENT, 0.0, 0.0, 100.0), (URGENT, 50.0, 100.0, 350.0)]
    metrics = episode_metrics(episode(toy(), jobs, arrived=(1, 2), missed=(0, 1)))
    # Slowdowns of 0.5 and 1.5, of which the percentile interpolates.
    assert metrics.urgent_p99 == pytest.approx(0.5 + 0.99)
    assert metrics.best_effort == metrics.tenants[BATCH].progress == 0.5
    # One of two within 250 us, in 1000 us.
    assert metrics.goodput_per_s == pytest.approx(1 / 1000e-6)


def test_goodput_is_of_the_time_in_which_jobs_arrive() -> None:
    problem = toy()
    drained = dataclasses.replace(problem, scenario=msgspec.structs.replace(problem.scenario, arrivals_until_us=500.0))
    jobs = [(BATCH, 0.0, 0.0, 600.0), (URGENT, 0.0, 0.0, 100.0)]
    assert episode_metrics(episode(drained, jobs, arrived=(1, 1))).goodput_per_s == pytest.approx(1 / 500e-6)


def test_without_classes_there_is_no_trade() -> None:
    problem = toy()
    alike = [dataclasses.replace(p, tenant=msgspec.structs.replace(p.tenant, priority=1)) for p in problem.programs]
    jobs = [(BATCH, 0.0, 0.0, 600.0), (URGENT, 0.0, 0.0, 100.0)]
    metrics = episode_metrics(episode(dataclasses.replace(problem, programs=tuple(alike)), jobs, arrived=(1, 1)))
    assert math.isnan(metrics.urgent_p99)
    assert math.isnan(metrics.best_effort)


def test_starved_best_effort_work_has_no_progress_and_no_urgent_job_no_tail() -> None:
    metrics = episode_metrics(episode(toy(), [], arrived=(1, 1)))
    assert metrics.best_effort == 0.0
    assert math.isnan(metrics.urgent_p99)
    assert metrics.goodput_per_s == 0.0


def test_an_overdue_unfinished_job_is_a_miss_and_one_within_its_deadline_is_not() -> None:
    overdue = episode_metrics(episode(toy(), [(URGENT, 0.0, 0.0, 250.0)], arrived=(0, 3), missed=(0, 1)))
    urgent = overdue.tenants[URGENT]
    # One within the SLO (exactly), one overdue, one still in time: 1 of 2.
    assert urgent.slo_attainment == 0.5
    assert (urgent.completed, urgent.unfinished) == (1, 2)


def test_rejected_jobs_missed_their_objective_and_are_not_left() -> None:
    # Of five jobs one completed in time, two were rejected (misses, as the device counts them), two are still there.
    jobs = [(URGENT, 0.0, 0.0, 250.0)]
    metrics = episode_metrics(episode(toy(), jobs, arrived=(1, 5), missed=(0, 2), rejected=(1, 2)))
    batch, urgent = metrics.tenants
    assert (urgent.completed, urgent.rejected, urgent.unfinished) == (1, 2, 2)
    assert urgent.slo_attainment == pytest.approx(1 / 3)
    assert (batch.completed, batch.rejected, batch.unfinished) == (0, 1, 0)
    assert batch.progress == 0.0
    assert math.isnan(metrics.antt), "giving up all jobs of a tenant must not flatter"


def test_a_starved_tenant_costs_progress_and_leaves_antt_undefined() -> None:
    metrics = episode_metrics(episode(toy(), [(URGENT, 0.0, 0.0, 200.0)], arrived=(1, 1)))
    batch = metrics.tenants[BATCH]
    assert batch.progress == 0.0
    assert math.isnan(batch.slowdown)
    assert math.isnan(batch.turnaround_p99_us)
    assert metrics.stp == 1.0
    assert math.isnan(metrics.antt)


def test_a_tenant_without_jobs_does_not_count() -> None:
    metrics = episode_metrics(episode(toy(), [(URGENT, 0.0, 0.0, 400.0)], arrived=(0, 1), missed=(0, 1)))
    assert metrics.stp == 0.5
    assert metrics.antt == 2.0
    assert metrics.tenants[URGENT].slo_attainment == 0.0
    assert math.isnan(metrics.tenants[BATCH].progress)


def test_an_episode_without_any_job_defines_no_job_figures() -> None:
    metrics = episode_metrics(episode(toy(), [], arrived=(0, 0)))
    assert math.isnan(metrics.stp)
    assert math.isnan(metrics.antt)
    assert math.isnan(metrics.energy_per_job_j)
    assert metrics.jobs_per_j == 0.0
    assert math.isnan(metrics.tenants[URGENT].throughput_per_s)
    plain = metrics.as_dict()
    assert plain["stp"] is None
    assert plain["tenants"][URGENT]["slo_attainment"] is None
    assert plain["utilisation"] == 0.75
    msgspec.json.encode(plain)


def test_a_tenant_without_slo_has_no_attainment() -> None:
    metrics = episode_metrics(episode(toy(), [(BATCH, 0.0, 0.0, 300.0)], arrived=(1, 0)))
    assert math.isnan(metrics.tenants[BATCH].slo_attainment)


def test_cost_terms_and_their_weighted_sum() -> None:
    problem = toy(turnaround=2.0, slowdown=1.0, slo_miss=10.0, energy=0.5, makespan=4.0)
    costs = Costs(2)
    costs.jobs_us[:] = (600.0, 400.0)
    costs.slo_misses[:] = (5.0, 2.0)
    costs.energy_j = 3.0
    costs.makespan_us = 1500.0
    terms = cost_terms(problem, costs)
    assert terms == {
        "turnaround": pytest.approx(1.8),
        "slowdown": pytest.approx(600 / 300 + 3 * 400 / 200),
        "slo_miss": 5.0 + 3 * 2.0,
        "energy": 3.0,
        "makespan": 1.5,
        "lost_progress": 0.0,
        "throttled": 0.0,
    }
    assert total_cost(problem, terms) == pytest.approx(2 * 1.8 + 8.0 + 10 * 11.0 + 1.5 + 6.0)


def test_terms_are_the_fields_of_the_reward() -> None:
    assert Reward.__struct_fields__ == COST_TERMS


def test_costs_at_the_start_are_zero() -> None:
    assert set(cost_terms(toy(), Costs(2)).values()) == {0.0}


def test_percentiles_interpolate_between_order_statistics() -> None:
    jobs = [(URGENT, 0.0, 0.0, float(us)) for us in range(10, 111, 10)]
    urgent = episode_metrics(episode(toy(), jobs, arrived=(0, 11))).tenants[URGENT]
    assert (urgent.turnaround_p50_us, urgent.turnaround_p95_us) == (60.0, 105.0)
    assert urgent.turnaround_p99_us == pytest.approx(np.float64(109.0))


def chat(slo_us: float | None) -> Problem:
    """A serving engine alone."""
    values = {"kind": "values", "values": [4]}
    batching = {"max_batch": 4, "cache_tokens": 50, "prompt": values, "answer": values}
    tenant = {"name": "chat", "workload": "toy_engine", "arrivals": {"kind": "backlog"}, "jobs": 4, "slo_us": slo_us}
    data = {"name": "test", "gpu": "toy-4sm", "horizon_us": 1e5, "tenants": [{**tenant, "batching": batching}]}
    return build_problem(make_scenario(data))


def test_a_request_is_in_time_by_its_first_token() -> None:
    timeline = Timeline("jobs")
    # Arrival, start, completion; first token and tokens.
    for number, (times, first_us, tokens) in enumerate(
        [((0, 0, 100), 40, 4), ((10, 40, 230), 80, 4), ((0, 80, 120), 120, 1), ((50, 120, 560), 160, 9)]
    ):
        timeline.jobs.add(0, number, *(to_ps(us) for us in times))
        timeline.requests.add(0, number, to_ps(first_us), tokens, 0)
    costs = Costs(1)
    costs.arrived[:], costs.completed[:], costs.slo_misses[:] = 4, 4, 2
    costs.time_us = 1000.0
    played = Episode(chat(70.0), 0, timeline, costs, 1000.0, done=True, decisions=0, wall_s=0.1)
    metrics = episode_metrics(played)
    (tenant,) = metrics.tenants
    # First tokens after 40, 70, 120 and 110 us.
    assert (tenant.ttft_mean_us, tenant.ttft_p50_us) == (85.0, 90.0)
    assert tenant.ttft_p99_us == pytest.approx(119.7)
    # 3 more in 60 us, 3 more in 150 us, none, 8 more in 400 us.
    assert (tenant.tpot_mean_us, tenant.tpot_p50_us) == (40.0, 50.0)
    assert tenant.tpot_p99_us == 50.0
    assert tenant.turnaround_mean_us == pytest.approx((100 + 220 + 120 + 510) / 4)
    # Two first tokens within 70 us, though three requests took longer in all.
    assert tenant.slo_attainment == 0.5
    assert metrics.goodput_per_s == pytest.approx(2 / 1e-3)
    assert "TTFT p99 ms" in str(played)


def test_tenants_that_are_no_engines_have_no_tokens() -> None:
    played = episode(toy(), [(URGENT, 0.0, 0.0, 400.0)], arrived=(0, 1))
    tenant = episode_metrics(played).tenants[URGENT]
    names = ("ttft_mean_us", "ttft_p50_us", "ttft_p99_us", "tpot_mean_us", "tpot_p50_us", "tpot_p99_us")
    assert all(math.isnan(getattr(tenant, name)) for name in names)
    assert "TTFT" not in str(played)
