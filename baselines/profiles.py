"""A measurement stage: durations of kernels and the gaps that follow them, by identity.

FIKIT's measurement stage (arXiv 2311.10359): a service runs alone some times, and each kernel identity (name,
grid, block) gets the mean duration of its occurrences and the mean idle time until the service's next kernel. It needs
the device, and comes before any scheduler: ``with_profiles(problem, measure_profiles(problem, device, runs=3))`` is the
problem of which that is known.
"""

from __future__ import annotations

import dataclasses
import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.episodes.session import run_episode
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.profile_error import Profiles
from gpusched_env.scheduling.device import Device
from gpusched_env.workload.arrivals import ClosedLoop


def measure_profiles(problem: Problem, device: Device, runs: int, seed: int = 0) -> Profiles:
    """Run each tenant alone on ``device``, ``runs`` times without a pause, and average what it did.

    Kernels that did not occur in these runs (another branch of a network, say) stay NaN. The last kernel of a
    run has no gap after it.
    """
    durations: list[list[float]] = [[] for _ in problem.kernels]
    gaps: list[list[float]] = [[] for _ in problem.kernels]
    for tenant in range(len(problem.programs)):
        episode = run_episode(PassThrough(), alone(problem, tenant, runs), device, seed, record="kernels")
        table = episode.timeline.kernels.dict()
        order = np.argsort(table["id"])
        columns = (table[name][order].tolist() for name in ("job", "identity", "started_us", "ended_us"))
        before: tuple[float, int, float] | None = None
        for job, identity, started_us, ended_us in zip(*columns, strict=True):
            durations[int(identity)].append(ended_us - started_us)
            if before is not None and before[0] == job:
                gaps[before[1]].append(max(0.0, started_us - before[2]))
            before = (job, int(identity), ended_us)
    return Profiles(duration_us=_means(durations), gap_us=_means(gaps))


def alone(problem: Problem, tenant: int, jobs: int) -> Problem:
    """The problem of one tenant that runs ``jobs`` jobs one after the other, with the GPU to itself."""
    program = problem.programs[tenant]
    changed = msgspec.structs.replace(program.tenant, arrivals=ClosedLoop(), jobs=jobs)
    lone = dataclasses.replace(program, tenant=changed, replay=None)
    scenario = msgspec.structs.replace(problem.scenario, tenants=(changed,), horizon_us=math.inf, workload_sets=None)
    return dataclasses.replace(problem, scenario=scenario, programs=(lone,))


def _means(samples: list[list[float]]) -> NDArray[np.float64]:
    return np.array([sum(s) / len(s) if s else math.nan for s in samples], np.float64)
