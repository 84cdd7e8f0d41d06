"""Building a scheduler's view of the reference device."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.devices.reference.launch import Launch, State, in_order
from gpusched_env.hardware.clock import NEVER, PS_PER_US, to_us
from gpusched_env.scenarios.program import HostOp
from gpusched_env.scheduling.view import (
    DependencyColumn,
    JobColumn,
    LazyView,
    PendingColumn,
    RunningColumn,
    TenantColumn,
    ViewTable,
)
from gpusched_env.workload import host

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice

Row = tuple[float, ...]


def lazy_view(device: ReferenceDevice) -> LazyView:
    """A snapshot of ``device`` at its present time."""
    return LazyView(device, device.time_us, _BUILDERS)


def _table(rows: Iterable[Row], columns: type[enum.IntEnum]) -> ViewTable:
    found = list(rows)
    array = np.array(found, np.float64) if found else np.empty((0, len(columns)))
    array.flags.writeable = False
    return ViewTable(array, columns)


def _shown(device: ReferenceDevice) -> list[Launch]:
    """Pending launches within the look-ahead, tenant after tenant, oldest first."""
    lookahead = device.problem.scenario.lookahead
    found: list[Launch] = []
    for tenant in range(len(device.problem.programs)):
        mine = {launch for launch in device.streams.pending.values() if launch.tenant == tenant}
        found += in_order(mine)[:lookahead]
    return found


def _pending(device: ReferenceDevice, launch: Launch) -> Row:
    problem, op, job, now = device.problem, launch.op, launch.job, device.clock.now
    known = problem.knowledge.kernels[op.identity]
    return (
        launch.id,
        launch.tenant,
        job.number,
        op.identity,
        device.streams.launchable(launch),
        problem.programs[launch.tenant].tenant.priority,
        known.blocks if launch.blocks == 0 else launch.blocks,
        known.threads,
        known.blocks_per_sm,
        known.sms,
        known.duration_us,
        known.gap_us,
        known.issue,
        known.dram,
        to_us(launch.issued_ps),
        (now - launch.issued_ps) / PS_PER_US,
        to_us(job.arrived_ps),
        to_us(job.deadline_ps),
        launch.left_us,
        launch.returned,
        launch.stream,
        len(launch.waits),
        known.nodes,
        _parent(launch),
        *device.streams.queued_us(launch),
        sum(other.state is State.PENDING for other in launch.waiters) if launch.windowed else 0,
    )


def _running(device: ReferenceDevice, launch: Launch) -> Row:
    problem, job = device.problem, launch.job
    known = problem.knowledge.kernels[launch.op.identity]
    waiting, resident = _blocks(device, launch)
    return (
        launch.id,
        launch.tenant,
        job.number,
        launch.op.identity,
        problem.programs[launch.tenant].tenant.priority,
        launch.priority,
        launch.started_ps < NEVER,
        launch.preempting,
        to_us(launch.launched_ps),
        to_us(launch.started_ps),
        launch.elapsed_ps(device.clock.now) / PS_PER_US,
        known.blocks,
        waiting,
        resident,
        known.duration_us,
        known.issue,
        known.dram,
        to_us(job.deadline_ps),
        known.idempotent,
        device.decisions.preemptible(launch),
        launch.stream,
        known.nodes,
        _parent(launch),
    )


def _blocks(device: ReferenceDevice, launch: Launch) -> tuple[int, int]:
    """Blocks of a launch that wait and that are resident; of a graph summed over its nodes."""
    if isinstance(launch.op, HostOp) and launch.op.nodes:
        if launch.state is State.LAUNCHED:
            return device.problem.knowledge.kernels[launch.op.identity].blocks, 0
        nodes = [_blocks(device, node) for node in device.streams.unfinished.values() if node.parent is launch]
        return sum(waiting for waiting, _ in nodes), sum(resident for _, resident in nodes)
    if launch.grid is not None:
        return launch.grid.waiting, launch.grid.resident
    return (0 if launch.emptied else launch.blocks), 0


def _parent(launch: Launch) -> int:
    return -1 if launch.parent is None else launch.parent.id


def _tenants(device: ReferenceDevice) -> list[Row]:
    now, programs = device.clock.now, device.problem.programs
    launched_left = [0.0] * len(programs)
    running_left = [math.inf] * len(programs)
    for launch in device.streams.launched.values():
        elapsed_us = launch.elapsed_ps(now) / PS_PER_US
        # Never measured: NaN, which is no more than 0.
        left = max(0.0, device.problem.knowledge.kernels[launch.op.identity].duration_us - elapsed_us)
        launched_left[launch.tenant] += left
        if launch.started_ps < NEVER:
            running_left[launch.tenant] = min(running_left[launch.tenant], left)
    return [
        (*_tenant(device, tenant), launched_left[tenant], running_left[tenant], *_legal(device, tenant))
        for tenant in range(len(programs))
    ]


def _tenant(device: ReferenceDevice, tenant: int) -> Row:
    """The columns up to ``LAST_END_US``."""
    program, client = device.problem.programs[tenant], device.world.clients[tenant]
    jobs, known = device.world.in_system(tenant), device.problem.knowledge.tenants[tenant]
    return (
        program.tenant.priority,
        program.tenant.weight,
        math.inf if program.tenant.slo_us is None else program.tenant.slo_us,
        program.alone_us,
        known.device_us,
        known.jobs_a_us,
        len(jobs),
        client.completed,
        sum(launch.tenant == tenant for launch in device.streams.pending.values()),
        sum(launch.tenant == tenant for launch in device.streams.launched.values()),
        to_us(jobs[0].arrived_ps) if jobs else math.inf,
        client.last_turnaround_us,
        client.mean_turnaround_us,
        *device.decisions.partitions[tenant],
        to_us(max(0, client.last_end_ps)),
    )


def _legal(device: ReferenceDevice, tenant: int) -> Row:
    """The columns from ``PARTITIONABLE`` on."""
    rejectable = device.decisions.rejectable(tenant) or [-1]
    return (device.decisions.partitionable(tenant), rejectable[0], rejectable[-1])


def _jobs(device: ReferenceDevice) -> list[Row]:
    return [
        (
            tenant,
            job.number,
            to_us(job.arrived_ps),
            to_us(job.deadline_ps),
            to_us(job.started_ps),
            host.rejectable(device.world, tenant, job.number),
        )
        for tenant in range(len(device.problem.programs))
        for job in device.world.in_system(tenant)
    ]


def _dependencies(device: ReferenceDevice) -> list[Row]:
    return [(launch.id, other.id) for launch in _shown(device) for other in in_order(launch.waits)]


def _occupancy(device: ReferenceDevice) -> float:
    gpu = device.problem.gpu
    threads = sum(sm.threads for context in device.contexts if context.active for sm in context.sms)
    return threads / (gpu.sms * gpu.limits.threads)


_BUILDERS: dict[str, Callable[[ReferenceDevice], Any]] = {
    "pending": lambda d: _table([_pending(d, launch) for launch in _shown(d)], PendingColumn),
    "running": lambda d: _table([_running(d, launch) for launch in d.streams.launched.values()], RunningColumn),
    "tenants": lambda d: _table(_tenants(d), TenantColumn),
    "jobs": lambda d: _table(_jobs(d), JobColumn),
    "dependencies": lambda d: _table(_dependencies(d), DependencyColumn),
    "sms": lambda d: d.problem.gpu.sms,
    "busy_sms": lambda d: d.meter.busy_sms,
    "occupancy": _occupancy,
    "dram": lambda d: d.meter.traffic / d.problem.gpu.dram_bytes_per_us,
    "horizon_us": lambda d: d.problem.scenario.horizon_us,
}
