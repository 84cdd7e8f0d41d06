"""A GPU of a fleet as a problem of its own: each of the fleet's jobs is a tenant that comes when it is placed there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import msgspec

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.problem import FleetProblem, GpuKind
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario

AFTER_US: Final = 1.0
"""From the end of a fleet to that of its GPUs: nothing happens there any more."""


def gpu_problem(fleet: FleetProblem, kind: GpuKind, *, variation: bool = False) -> Problem:
    """What a GPU of ``kind`` may have to run.

    Inference is a closed loop of batches, each launched as one CUDA graph, that pauses so that its activity alone is
    its utilisation; training is one of iterations, kernel by kernel. None of them begins by itself. They are clients of
    MPS, so that each has hardware queues of its own.

    Args:
        fleet: whose jobs have programs.
        kind: whose ``spec`` is simulated.
        variation: whether iterations vary as the recorded ones did. The fleet's work is counted in those of
            ``step_us``.

    Raises:
        InputError: a job has no program, there is no such program, or the GPU cannot run it.
    """
    check_programs(fleet)
    reports = -(-fleet.horizon_us // fleet.report_us)
    horizon_us = float(reports * fleet.report_us) + AFTER_US
    scenario = make_scenario(
        {
            "name": "fleet",
            "gpu": kind.spec,
            "tenants": [_tenant(fleet, job, 2.0 * horizon_us) for job in range(len(fleet.jobs))],
            "horizon_us": horizon_us,
            "restart_us": float(fleet.restart_us),
            "variation": variation,
        }
    )
    where = f"{fleet.name}: GPUs of kind {kind.name}"
    try:
        built = build_problem(scenario)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    has_gb = built.gpu.memory_bytes / 1e9
    if kind.memory_gb > has_gb:
        raise InputError(f"{where}: memory_gb is {kind.memory_gb:g}, {kind.spec} has {has_gb:g}; claims must fit there")
    channels = max(built.gpu.channels, len(built.streams))
    return replace(built, gpu=msgspec.structs.replace(built.gpu, channels=channels))


def check_programs(fleet: FleetProblem) -> None:
    """Whether each job can be run block by block.

    Raises:
        InputError: names the first job without a program.
    """
    programs, jobs = len(fleet.programs), len(fleet.jobs)
    if programs != jobs or "" in fleet.programs:
        first = fleet.programs.index("") if "" in fleet.programs else min(programs, jobs)
        raise InputError(
            f"{fleet.name}: job {first} has no program; block by block each of the {jobs} jobs needs the name of a "
            f"workload in programs"
            if first < jobs
            else f"{fleet.name}: there are {programs} programs for {jobs} jobs; must be one for each"
        )


def _tenant(fleet: FleetProblem, job: int, dormant_us: float) -> dict[str, Any]:
    row = fleet.jobs[job]
    pause_us = 0.0 if row["training"] else float(row["step_us"] * (1.0 / row["utilisation"] - 1.0))
    own: dict[str, Any] = {} if row["training"] else {"launch": "graph", "slo_us": float(row["slo_us"])}
    arrivals = {"kind": "closed-loop", "think_us": pause_us, "start_us": dormant_us}
    return {
        "name": f"job {job}",
        "workload": fleet.programs[job],
        "priority": int(row["training"]),
        "arrivals": arrivals,
        **own,
    }
