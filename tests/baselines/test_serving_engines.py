"""Schedulers beside a serving engine, whose jobs run together and complete out of order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpusched_env.baselines.evict import TwoClasses
from gpusched_env.baselines.iterations import Iterations
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.scheduling.view import PendingColumn, TenantColumn
from tests.refusals import refused


def problem(**fields: Any) -> Problem:
    """Twelve requests of unequal answers, of which up to four run together, beside a tenant without an objective."""
    lengths = {
        "prompt": {"kind": "values", "values": [2, 6]},
        "answer": {"kind": "values", "values": [1, 3, 9]},
    }
    chat = {
        "name": "chat", "workload": "toy_engine", "arrivals": {"kind": "periodic", "period_us": 60.0}, "jobs": 12,
        "slo_us": 2000.0, "host_us": 20.0, "batching": {"max_batch": 4, "cache_tokens": 24, **lengths},
    }  # fmt: skip
    batch = {"name": "batch", "workload": "toy_batch", "arrivals": {"kind": "closed-loop"}, "jobs": 5, "priority": 1}
    data = {"name": "test", "gpu": "toy-4sm", "horizon_us": 2e4, "stream_priorities": [0], "tenants": [chat, batch]}
    return build_problem(make_scenario(data | fields))


def played(scheduler: str) -> Episode:
    return run_episode(make_scheduler(scheduler), problem(), make_device("reference"), 0)


def test_requests_complete_out_of_order() -> None:
    jobs = played("pass-through").timeline.jobs
    order = jobs.column("job")[jobs.column("tenant") == 0].tolist()
    assert order != sorted(order)


@pytest.mark.parametrize(
    "scheduler",
    ["exclusive", "fikit", "clockwork", "nexus", "orion", "reef", "tgs", "sjf-clairvoyant", "edf", "moore", "plan"],
)
def test_all_requests_are_answered(scheduler: str) -> None:
    """None waits for a kernel of a request whose step is another's, or for the end of one that has ended before."""
    metrics = played(scheduler).metrics
    assert [tenant.completed for tenant in metrics.tenants] == [12, 5]


def test_a_request_is_in_service_until_as_many_are_done_as_have_begun() -> None:
    classes = TwoClasses(problem().knowledge)

    def launch(job: int) -> None:
        row = [0.0] * len(PendingColumn)
        row[PendingColumn.JOB] = job
        classes.launch(row)

    def in_service(waiting: int, done: int) -> bool:
        tenants = np.zeros((2, len(TenantColumn)))
        tenants[0, TenantColumn.JOBS_WAITING], tenants[0, TenantColumn.JOBS_DONE] = waiting, done
        view: Any = SimpleNamespace(tenants=SimpleNamespace(array=tenants))
        return classes.in_service(view)

    for job in (0, 1, 2):
        launch(job)
    # The younger two complete first; what is launched now is the oldest one's.
    launch(0)
    assert in_service(2, 2)
    assert not in_service(1, 3)


def test_who_is_told_iterations_is_told_that_an_engine_has_none() -> None:
    built = problem()
    iterations = Iterations(built, 0)
    assert iterations.of(1, 3) == 0
    with refused(InputError, "iteration"):
        iterations.of(0, 0)
