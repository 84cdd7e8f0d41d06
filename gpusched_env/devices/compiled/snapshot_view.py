"""What the compiled device shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.compiled.arena import Arena
from gpusched_env.devices.compiled.entry import (
    look_cores,
    look_dependencies,
    look_jobs,
    look_pending,
    look_running,
    look_tenants,
)
from gpusched_env.scheduling.core_column import CoreColumn
from gpusched_env.scheduling.one_thread import alone
from gpusched_env.scheduling.view import (
    DependencyColumn,
    JobColumn,
    PendingColumn,
    RunningColumn,
    TenantColumn,
    ViewTable,
)


@alone
def _pending(arena: Arena) -> ViewTable:
    lookahead = arena.problem.scenario.lookahead
    most = min(arena.envs["pending"].item(), lookahead * len(arena.problem.programs))
    pending = np.empty((most, len(PendingColumn)))
    rows = look_pending(arena.address, lookahead, pending)
    return ViewTable(pending[:rows], PendingColumn)


@alone
def _dependencies(arena: Arena) -> ViewTable:
    lookahead = arena.problem.scenario.lookahead
    pairs = np.empty((16, len(DependencyColumn)))
    count = look_dependencies(arena.address, lookahead, pairs)
    if count > len(pairs):
        pairs = np.empty((count, len(DependencyColumn)))
        look_dependencies(arena.address, lookahead, pairs)
    return ViewTable(ordered_dependencies(_pending(arena).array, pairs[:count]), DependencyColumn)


def ordered_dependencies(pending: NDArray[np.float64], pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pairs in the order of the pending launches: a launch's own are found newest first."""
    order = {launch: place for place, launch in enumerate(pending[:, PendingColumn.ID].tolist())}
    rows = sorted(pairs.tolist(), key=lambda row: (order[row[0]], row[1]))
    return np.array(rows).reshape(-1, len(DependencyColumn))


@alone
def _running(arena: Arena) -> ViewTable:
    running = np.empty((sum(arena.clients["kernels_launched"].tolist()), len(RunningColumn)))
    look_running(arena.address, running)
    return ViewTable(running, RunningColumn)


@alone
def _tenants(arena: Arena) -> ViewTable:
    tenants = np.empty((len(arena.problem.programs), len(TenantColumn)))
    look_tenants(arena.address, tenants)
    return ViewTable(tenants, TenantColumn)


@alone
def _jobs(arena: Arena) -> ViewTable:
    clients = arena.clients
    jobs = np.empty((int((clients["arrived"] - clients["completed"] - clients["rejected"]).sum()), len(JobColumn)))
    look_jobs(arena.address, jobs)
    return ViewTable(jobs, JobColumn)


@alone
def _cores(arena: Arena) -> ViewTable:
    named = arena.problem.scenario.cores
    cores = np.empty((0 if named is None else len(named.cores), len(CoreColumn)))
    look_cores(arena.address, cores)
    return ViewTable(cores, CoreColumn)


@alone
def _occupancy(arena: Arena) -> float:
    return float(look_tenants(arena.address, np.empty((len(arena.problem.programs), len(TenantColumn)))))


BUILDERS: Final[dict[str, Callable[[Arena], Any]]] = {
    "time_us": lambda arena: arena.place[1] / 1e6,
    "pending": _pending,
    "running": _running,
    "tenants": _tenants,
    "jobs": _jobs,
    "dependencies": _dependencies,
    "cores": _cores,
    "sms": lambda arena: arena.problem.gpu.sms,
    "busy_sms": lambda arena: int(arena.env["busy_sms"]),
    "occupancy": _occupancy,
    "dram": lambda arena: float(arena.env["traffic"]) / arena.problem.gpu.dram_bytes_per_us,
    "horizon_us": lambda arena: arena.problem.scenario.horizon_us,
}
