"""Building a scheduler's view of the compiled device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
    LazyView,
    PendingColumn,
    RunningColumn,
    TenantColumn,
    ViewTable,
)

if TYPE_CHECKING:
    from gpusched_env.devices.compiled.device import CompiledDevice


def lazy_view(device: CompiledDevice) -> LazyView:
    """A snapshot of ``device`` at its present time."""
    return LazyView(device, device.time_us, _BUILDERS)


def _table(array: NDArray[np.float64], columns: Any) -> ViewTable:
    array.flags.writeable = False
    return ViewTable(array, columns)


@alone
def _pending(device: CompiledDevice) -> ViewTable:
    arena = device.arena
    lookahead = arena.problem.scenario.lookahead
    most = min(int(arena.env["pending"]), lookahead * len(arena.problem.programs))
    pending = np.empty((most, len(PendingColumn)))
    rows = look_pending(arena.address, lookahead, pending)
    return _table(pending[:rows], PendingColumn)


@alone
def _dependencies(device: CompiledDevice) -> ViewTable:
    arena = device.arena
    lookahead = arena.problem.scenario.lookahead
    pairs = np.empty((16, len(DependencyColumn)))
    count = look_dependencies(arena.address, lookahead, pairs)
    if count > len(pairs):
        pairs = np.empty((count, len(DependencyColumn)))
        look_dependencies(arena.address, lookahead, pairs)
    return _table(ordered_dependencies(_pending(device).array, pairs[:count]), DependencyColumn)


def ordered_dependencies(pending: NDArray[np.float64], pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pairs in the order of the pending launches: a launch's own are found newest first."""
    order = {launch: place for place, launch in enumerate(pending[:, PendingColumn.ID].tolist())}
    rows = sorted(pairs.tolist(), key=lambda row: (order[row[0]], row[1]))
    return np.array(rows).reshape(-1, len(DependencyColumn))


@alone
def _running(device: CompiledDevice) -> ViewTable:
    arena = device.arena
    running = np.empty((sum(arena.clients["kernels_launched"].tolist()), len(RunningColumn)))
    look_running(arena.address, running)
    return _table(running, RunningColumn)


@alone
def _tenants(device: CompiledDevice) -> ViewTable:
    arena = device.arena
    tenants = np.empty((len(arena.problem.programs), len(TenantColumn)))
    look_tenants(arena.address, tenants)
    return _table(tenants, TenantColumn)


@alone
def _jobs(device: CompiledDevice) -> ViewTable:
    arena = device.arena
    clients = arena.clients
    jobs = np.empty((int((clients["arrived"] - clients["completed"] - clients["rejected"]).sum()), len(JobColumn)))
    look_jobs(arena.address, jobs)
    return _table(jobs, JobColumn)


@alone
def _cores(device: CompiledDevice) -> ViewTable:
    arena = device.arena
    named = arena.problem.scenario.cores
    cores = np.empty((0 if named is None else len(named.cores), len(CoreColumn)))
    look_cores(arena.address, cores)
    return _table(cores, CoreColumn)


@alone
def _occupancy(device: CompiledDevice) -> float:
    arena = device.arena
    return float(look_tenants(arena.address, np.empty((len(arena.problem.programs), len(TenantColumn)))))


_BUILDERS: dict[str, Callable[[CompiledDevice], Any]] = {
    "pending": _pending,
    "running": _running,
    "tenants": _tenants,
    "jobs": _jobs,
    "dependencies": _dependencies,
    "cores": _cores,
    "sms": lambda d: d.arena.problem.gpu.sms,
    "busy_sms": lambda d: int(d.arena.env["busy_sms"]),
    "occupancy": _occupancy,
    "dram": lambda d: float(d.arena.env["traffic"]) / d.arena.problem.gpu.dram_bytes_per_us,
    "horizon_us": lambda d: d.arena.problem.scenario.horizon_us,
}
