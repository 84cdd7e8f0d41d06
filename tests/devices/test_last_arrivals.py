"""Arrivals that end before the horizon."""

from __future__ import annotations

import pytest

from gpusched_env.devices import make_device
from gpusched_env.episodes.session import run_episode
from gpusched_env.experiments.lib.names import new_scheduler
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario, override

PERIODIC = {"arrivals": {"kind": "periodic", "period_us": 1000.0}, "jobs": None}
LOOP = {"arrivals": {"kind": "closed-loop"}, "jobs": None}


@pytest.mark.parametrize("device", ["reference", "compiled"])
@pytest.mark.parametrize(("until_us", "sent"), [(1999.0, 2), (2000.0, 3), (None, 4)])
def test_nobody_sends_a_job_after_the_last_arrivals_but_a_closed_loop(
    device: str, until_us: float | None, sent: int
) -> None:
    toy = load_scenario("Toy")
    first, second, *_ = (tenant.name for tenant in toy.tenants)
    scenario = override(toy, tenants={first: PERIODIC, second: LOOP}, horizon_us=3999.0, arrivals_until_us=until_us)
    episode = run_episode(new_scheduler("pass-through"), build_problem(scenario), make_device(device), 3, record="jobs")
    figures = episode.metrics.tenants[0]
    assert figures.completed + figures.unfinished == sent
    jobs = episode.timeline.jobs.dict()
    looped = [time for tenant, time in zip(jobs["tenant"], jobs["arrived_us"], strict=True) if tenant == 1]
    assert max(looped) > 3000.0


@pytest.mark.parametrize("device", ["reference", "compiled"])
def test_when_all_is_done_the_rest_of_the_episode_is_idle(device: str) -> None:
    toy = load_scenario("Toy")
    tenants = {tenant.name: PERIODIC for tenant in toy.tenants}
    scenario = override(toy, tenants=tenants, horizon_us=9000.0, arrivals_until_us=1500.0)
    episode = run_episode(new_scheduler("pass-through"), build_problem(scenario), make_device(device), 3, record="jobs")
    assert [(figures.completed, figures.unfinished) for figures in episode.metrics.tenants] == [(2, 0)] * len(tenants)
    assert episode.end_us == 9000.0
