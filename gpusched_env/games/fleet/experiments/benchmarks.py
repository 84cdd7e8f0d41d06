"""A fleet block by block: what it costs that its GPUs run in lockstep and that jobs may come to any of them. And a
cluster of 100,000 GPUs whose pods come and go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec
import numpy as np

from gpusched_env.episodes.session import run_episode
from gpusched_env.experiments.benchmarks.suite import BenchmarkRow, BenchmarkSizes, GameBenchmarks
from gpusched_env.experiments.benchmarks.timing import Elapsed, Measurement, Stopwatch, timed
from gpusched_env.experiments.lib.names import new_device, new_scheduler
from gpusched_env.experiments.lib.recorded import RECORDED_ON
from gpusched_env.games.fleet.blocks import gpu_problem
from gpusched_env.games.fleet.cluster.lifetimes.recording import DAY_S
from gpusched_env.games.fleet.cluster.lifetimes.run import run_queue
from gpusched_env.games.fleet.cluster.lifetimes.stream import compressed
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.cluster.problem import ClusterProblem
from gpusched_env.games.fleet.cluster.shipped import shipped_problem, shipped_recording
from gpusched_env.games.fleet.co_location import shipped_rates
from gpusched_env.games.fleet.device import Fleet, Place
from gpusched_env.games.fleet.experiments.levels import SCHEDULERS, BlockLevel
from gpusched_env.games.fleet.problem import FleetProblem, GpuKind
from gpusched_env.games.fleet.workload.jobs import JOB
from gpusched_env.scenarios.problem import Problem

CONTROL: Final = "shared"
REPORT_US: Final = 10_000
PROGRAMS: Final = ("resnet50_infer_b32", "resnet50_train_b32")
"""Programs on each GPU."""
DENSE_S: Final = (116 * DAY_S, 148 * DAY_S)
"""Of the shipped recording; before, hardly a pod comes."""
LOAD: Final = 0.9
ROWS: Final = ((0, 0, 1e9, 0.3, 5.0, 4e3, 7e3), (0, 1, 1e9, 0.8, 20.0, 2e4, 0.0))


def fleet_of(gpus: int, reports: int) -> FleetProblem:
    """Two jobs for each GPU, which outlast all reports."""
    kinds = (GpuKind("H100", gpus, 80.0, spec=RECORDED_ON),)
    jobs = np.array([*ROWS] * gpus, JOB)
    horizon_us = reports * REPORT_US
    return FleetProblem("bench", jobs, kinds, shipped_rates(), horizon_us, REPORT_US, programs=PROGRAMS * gpus)


def lockstep(gpus: int, reports: int) -> Measurement:
    """All GPUs from report to report."""
    problem = fleet_of(gpus, reports)
    blocks = BlockLevel()(problem)

    def measure() -> Elapsed:
        with Stopwatch() as watch:
            fleet = Fleet(problem, CONTROL, blocks)
            fleet.reset()
            for job in range(len(problem.jobs)):
                fleet.apply(Place(job, job // len(ROWS)))
            while fleet.advance() is not None:
                pass
        return watch.timing(blocks.decisions)

    return measure


def separate(gpus: int, reports: int) -> Measurement:
    """The GPUs of :func:`lockstep` one after the other, each a plain episode with its own jobs only."""
    alone = _plain(fleet_of(1, reports))

    def measure() -> Elapsed:
        decisions = 0
        with Stopwatch() as watch:
            for seed in range(gpus):
                scheduler = new_scheduler(SCHEDULERS[CONTROL])
                decisions += run_episode(scheduler, alone, new_device("compiled"), seed).decisions
        return watch.timing(decisions)

    return measure


def queued(copies: int, hours: float) -> Measurement:
    """Pods as recorded come to so many times the published nodes at a load of 0.9, are placed by FGD, and go."""
    recording = shipped_recording().block(*DENSE_S)
    problem = ClusterProblem(shipped_problem("default").nodes * copies, recording.workload)
    stream = compressed(problem, recording, LOAD, hours)
    return timed(lambda: run_queue(problem, stream, Policy.FGD, hours), len(stream.kinds))


def _plain(fleet: FleetProblem) -> Problem:
    """The problem of a GPU of the fleet, with jobs that are there from the beginning, up to its horizon."""
    problem = gpu_problem(fleet, fleet.kinds[0])
    tenants = tuple(
        msgspec.structs.replace(tenant, arrivals=msgspec.structs.replace(tenant.arrivals, start_us=0.0))
        for tenant in problem.scenario.tenants
    )
    scenario = msgspec.structs.replace(problem.scenario, tenants=tenants, horizon_us=float(fleet.horizon_us))
    programs = tuple(replace(own, tenant=tenant) for own, tenant in zip(problem.programs, tenants, strict=True))
    return replace(problem, scenario=scenario, programs=programs)


def _measurements(sizes: BenchmarkSizes) -> dict[str, Measurement]:
    size = sizes.fleet_gpus, sizes.fleet_reports
    return {
        **{"fleet": lockstep(*size), "fleet_separate": separate(*size)},
        "cluster_queue": queued(sizes.cluster_copies, sizes.cluster_hours),
    }


def _rows(rate: Callable[[str], float], speed: Callable[[str, str], float]) -> list[BenchmarkRow]:
    return [
        BenchmarkRow("16 GPUs of a fleet, block by block", rate("fleet"), "decisions/s"),
        BenchmarkRow("... of separate runs of them", 100.0 * speed("fleet", "fleet_separate"), "%", 80.0),
        BenchmarkRow("pods that come to 99,392 GPUs and go, placed by FGD", rate("cluster_queue"), "pods/s"),
    ]


BENCHMARKS: Final = GameBenchmarks(_measurements, _rows)
