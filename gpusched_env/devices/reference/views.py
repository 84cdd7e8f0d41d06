"""What the reference device shows: the rows of :mod:`gpusched_env.devices.rules.rows`, in tables."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from gpusched_env.devices.reference.clock import Clock
from gpusched_env.devices.reference.context import Context
from gpusched_env.devices.reference.decisions import Decisions
from gpusched_env.devices.reference.launch import Launch, in_order
from gpusched_env.devices.reference.streams import Streams
from gpusched_env.devices.reference.world import World
from gpusched_env.devices.rules import rows
from gpusched_env.hardware.clock import to_us
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.core_column import CoreColumn
from gpusched_env.scheduling.cores import fill_cores
from gpusched_env.scheduling.view import (
    DependencyColumn,
    JobColumn,
    PendingColumn,
    RunningColumn,
    TenantColumn,
    ViewTable,
)

C = TypeVar("C", bound=enum.IntEnum)


class Viewed(Protocol):
    """A device, as far as views show it."""

    problem: Problem
    clock: Clock
    world: World
    streams: Streams
    decisions: Decisions
    contexts: list[Context]


def _shown(device: Viewed) -> list[Launch]:
    """Pending launches within the look-ahead, tenant after tenant, oldest first."""
    lookahead = device.problem.scenario.lookahead
    found: list[Launch] = []
    for tenant in range(len(device.problem.programs)):
        mine = {launch for launch in device.streams.pending.values() if launch.tenant == tenant}
        found += in_order(mine)[:lookahead]
    return found


def _launches(
    device: Viewed, launches: Iterable[Launch], columns: type[C], fill: Callable[[World, Launch, Any], None]
) -> ViewTable:
    """A table with a row a launch."""
    shown = list(launches)
    array = np.empty((len(shown), len(columns)))
    for launch, row in zip(shown, array, strict=True):
        fill(device.world, launch, row)
    return ViewTable(array, columns)


def _whole(device: Viewed, count: int, columns: type[C], fill: Callable[[World, Any], object]) -> ViewTable:
    """A table of ``count`` rows."""
    array = np.empty((count, len(columns)))
    fill(device.world, array)
    return ViewTable(array, columns)


def _jobs(device: Viewed) -> ViewTable:
    count = sum(client.arrived - client.completed - client.rejected for client in device.world.clients)
    return _whole(device, count, JobColumn, rows.list_jobs)


def _dependencies(device: Viewed) -> ViewTable:
    pairs = [(launch.id, other.id) for launch in _shown(device) for other in in_order(launch.waits)]
    return ViewTable(np.array(pairs, np.float64).reshape(len(pairs), len(DependencyColumn)), DependencyColumn)


def _occupancy(device: Viewed) -> float:
    gpu = device.problem.gpu
    threads = sum(sm.threads for context in device.contexts if context.active for sm in context.sms)
    return threads / (gpu.sms * gpu.limits.threads)


BUILDERS: Final[dict[str, Callable[[Viewed], Any]]] = {
    "time_us": lambda d: to_us(d.clock.now),
    "pending": lambda d: _launches(d, _shown(d), PendingColumn, rows.fill_pending),
    "running": lambda d: _launches(d, d.streams.launched.values(), RunningColumn, rows.fill_running),
    "tenants": lambda d: _whole(d, len(d.problem.programs), TenantColumn, rows.fill_tenants),
    "jobs": _jobs,
    "dependencies": _dependencies,
    "cores": lambda d: _whole(d, len(d.world.cores), CoreColumn, fill_cores),
    "sms": lambda d: d.problem.gpu.sms,
    "busy_sms": lambda d: d.world.busy_sms,
    "occupancy": _occupancy,
    "dram": lambda d: d.world.traffic / d.problem.gpu.dram_bytes_per_us,
    "horizon_us": lambda d: d.problem.scenario.horizon_us,
}
