"""Jobs and kernels of an episode as data frames: units in the names, tenants and kernels by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gpusched_env.display.frame import frame, named
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.timeline import Timeline

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

MEANINGS = {
    "scheduler": "scheduler",
    "seed": "seed of the episode",
    "tenant": "name of the tenant",
    "job": "number of the job within its tenant, from 0",
    "arrived_us": "arrival, since the start of the episode",
    "completed_us": "end of its last operation",
    "turnaround_us": "completion minus arrival",
    "slowdown": "turnaround over turnaround alone",
    "launch_id": "order of issue in the episode",
    "name": "kernel function",
    "grid_x": "blocks of the grid in this dimension",
    "grid_y": "blocks of the grid in this dimension",
    "grid_z": "blocks of the grid in this dimension",
    "block_x": "threads of a block in this dimension",
    "block_y": "threads of a block in this dimension",
    "block_z": "threads of a block in this dimension",
    "registers": "registers a thread",
    "shared_bytes": "shared memory a block",
    "issued_us": "the host issued it",
    "launched_us": "the scheduler launched it",
    "started_us": "of a job: when the tenant's host took it up; of a kernel: start of its first block",
    "ended_us": "end of its last block",
    "stream_priority": "0, or negative: urgent",
    "preemptions": "times it was preempted",
}
"""What the columns mean; times are microseconds since the start of the episode."""


def jobs_frame(problem: Problem, jobs: NDArray[np.float64]) -> DataFrame:
    """Completed jobs, a row each; ``jobs`` has shape ``(jobs, 5)``, columns of ``Timeline.jobs``."""
    tenant, job, arrived, started, completed = jobs.T
    alone_us = np.array([program.alone_us for program in problem.programs])
    return frame(
        {
            "tenant": named(tenant, _tenants(problem)),
            "job": job.astype(np.int64),
            "arrived_us": arrived,
            "started_us": started,
            "completed_us": completed,
            "turnaround_us": completed - arrived,
            "slowdown": (completed - arrived) / alone_us[tenant.astype(int)],
        }
    )


def kernels_frame(problem: Problem, timeline: Timeline) -> DataFrame:
    """Finished kernels, a row each; the timeline has detail ``kernels`` or more."""
    table = timeline.kernels.dict()
    identity = table["identity"].astype(np.int64)
    kernels = [profile.kernel for profile in problem.kernels]
    shapes = np.array([(*k.grid, *k.block, k.registers, k.shared_bytes) for k in kernels], dtype=np.int64)[identity]
    names = list(dict.fromkeys(kernel.name for kernel in kernels))
    name_of = np.array([names.index(kernel.name) for kernel in kernels])
    shape = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers", "shared_bytes")
    return frame(
        {
            "tenant": named(table["tenant"], _tenants(problem)),
            "job": table["job"].astype(np.int64),
            "launch_id": table["id"].astype(np.int64),
            "name": named(name_of[identity], names),
            **{column: shapes[:, i] for i, column in enumerate(shape)},
            **{column: table[column] for column in ("issued_us", "launched_us", "started_us", "ended_us")},
            **{column: table[column].astype(np.int64) for column in ("stream_priority", "preemptions")},
        }
    )


def _tenants(problem: Problem) -> list[str]:
    return [program.tenant.name for program in problem.programs]
