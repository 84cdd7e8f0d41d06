"""Arrivals that end before the horizon."""

from __future__ import annotations

import pytest

from gpusched_env.devices import make_device
from gpusched_env.episodes.session import run_episode
from gpusched_env.experiments.lib.names import new_scheduler
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario, override

PERIODIC = {"arrivals": {"kind": "periodic", "period_us": 100.0}, "jobs": None}
LOOP = {"arrivals": {"kind": "closed-loop"}, "jobs": None}


@pytest.mark.parametrize("device", ["reference", "compiled"])
@pytest.mark.parametrize(
    ("until_us", "arrived"), [(199.0, [0.0, 100.0]), (200.0, [0.0, 100.0, 200.0]), (None, [0.0, 100.0, 200.0, 300.0])]
)
def test_nobody_sends_a_job_after_the_last_arrivals_but_a_closed_loop(
    device: str, until_us: float | None, arrived: list[float]
) -> None:
    toy = load_scenario("Toy")
    first, second, *_ = (tenant.name for tenant in toy.tenants)
    scenario = override(toy, tenants={first: PERIODIC, second: LOOP}, horizon_us=399.0, arrivals_until_us=until_us)
    episode = run_episode(new_scheduler("pass-through"), build_problem(scenario), make_device(device), 3, record="jobs")
    jobs = episode.timeline.jobs.dict()
    sent = [time for tenant, time in zip(jobs["tenant"], jobs["arrived_us"], strict=True) if tenant == 0]
    looped = [time for tenant, time in zip(jobs["tenant"], jobs["arrived_us"], strict=True) if tenant == 1]
    assert sent == arrived[: len(sent)]
    figures = episode.metrics.tenants[0]
    assert figures.completed + figures.unfinished == len(arrived)
    assert max(looped) > 300.0
