"""The shortest job by its true durations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.baselines.pending import JOB, TENANT
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.baselines.sjf_clairvoyant import ShortestJobFirstClairvoyant
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import run_episode
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.view import View
from tests.devices.problems import K, problem

DEVICES = ("reference", "compiled")


def longer(built: Problem, tenant: int, factor: float) -> Problem:
    """The tenant's kernels take ``factor`` times as long as their profiles say."""
    programs = list(built.programs)
    job = programs[tenant].variants[0]
    scaled = tuple(replace(op, scale=factor, device_us=op.device_us * factor) if op.identity >= 0 else op for op in job)
    programs[tenant] = replace(programs[tenant], variants=(replace(job, ops=scaled),))
    return replace(built, programs=tuple(programs))


def order(name: str, built: Problem, device: str) -> list[tuple[int, float]]:
    """(tenant, start) of each kernel."""
    kernels = run_episode(make_scheduler(name), built, make_device(device), 0, record="kernels").timeline.kernels.dict()
    rows = zip(kernels["started_us"].round(3).tolist(), kernels["tenant"].tolist(), strict=True)
    return [(int(tenant), start) for start, tenant in sorted(rows)]


@pytest.mark.parametrize("device", DEVICES)
def test_it_goes_by_the_true_times(tmp_path: Path, device: str) -> None:
    """Profiles say 2 x 10 us against 30, but the first job will take 2 x 40: after one kernel of it 40 are left."""
    built = longer(problem(tmp_path, {"ops": [K(4, 10.0), K(4, 10.0)]}, {"ops": [K(4, 30.0)]}), 0, 4.0)
    assert order("sjf", built, device) == [(0, 0.0), (0, 40.0), (1, 80.0)]
    assert order("sjf-clairvoyant", built, device) == [(1, 0.0), (0, 30.0), (0, 70.0)]


@pytest.mark.parametrize("device", DEVICES)
def test_jobs_go_on_where_they_are(tmp_path: Path, device: str) -> None:
    """What was launched of a job no longer counts: with 20 of 60 us left it goes before one of 30 that comes late."""
    late = {"ops": [K(4, 30.0)], "arrivals": {"kind": "backlog", "start_us": 25.0}}
    built = problem(tmp_path, {"ops": [K(4, 20.0)] * 3, "jobs": 2}, late)
    found = order("sjf-clairvoyant", built, device)
    assert found == [(0, 0.0), (0, 20.0), (0, 40.0), (1, 60.0), (0, 90.0), (0, 110.0), (0, 130.0)]


class Noting(ShortestJobFirstClairvoyant):
    """Notes how long it takes each job to be, when it first sees it."""

    def __init__(self) -> None:
        super().__init__()
        self.expected: dict[tuple[int, int], float] = {}

    def decide(self, view: View) -> Command:
        for row in view.pending.array:
            tenant, job = int(row[TENANT]), int(row[JOB])
            if (tenant, job) not in self.expected:
                self.expected[tenant, job] = self._left(row)
        return super().decide(view)


def test_it_knows_which_iteration_a_job_repeats() -> None:
    """Of jobs that differ: one kernel at a time, each takes what it takes alone."""
    built = build_problem(load_scenario("InferenceBesideTraining", horizon_us=60_000.0))
    scheduler = Noting()
    kernels = run_episode(scheduler, built, make_device("compiled"), 3, record="kernels").timeline.kernels.dict()
    took: dict[tuple[int, int], float] = {}
    for tenant, job, start, end in zip(*(kernels[n] for n in ("tenant", "job", "started_us", "ended_us")), strict=True):
        took[int(tenant), int(job)] = took.get((int(tenant), int(job)), 0.0) + end - start
    done = {key: us for key, us in took.items() if (key[0], key[1] + 1) in took}
    assert len({round(us, 3) for us in done.values()}) > 3, "jobs differ"
    assert {key: scheduler.expected[key] for key in done} == pytest.approx(done, rel=1e-6)
    assert np.isfinite(list(took.values())).all()
