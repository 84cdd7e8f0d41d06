"""Building a scheduler's view of the reference device."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.scheduling.view import LazyView, PendingColumn, RunningColumn, Table, TenantColumn
from gpusched_env.workload.workload import OpKind

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice
    from gpusched_env.devices.reference.host import Host


def lazy_view(device: ReferenceDevice) -> LazyView:
    """A snapshot of ``device`` at its present time."""
    return LazyView(device, device.env.now, _BUILDERS)


def _table(
    rows: list[tuple[float, ...]], columns: type[PendingColumn] | type[RunningColumn] | type[TenantColumn]
) -> Table:
    array = np.array(rows, np.float64) if rows else np.empty((0, len(columns)))
    array.flags.writeable = False
    return Table(array, columns)


def _pending(device: ReferenceDevice, host: Host) -> list[tuple[float, ...]]:
    now = device.env.now
    problem = device.problem
    rows: list[tuple[float, ...]] = []
    launchable = 1.0
    for launch in host.pending:
        if launch.op.kind is not OpKind.KERNEL:
            continue
        profile = problem.kernels[launch.op.identity]
        known = problem.knowledge.kernels[launch.op.identity]
        job = launch.job
        rows.append(
            (
                launch.id,
                host.index,
                job.number,
                launch.op.identity,
                launchable,
                host.tenant.priority,
                launch.blocks,
                profile.kernel.threads,
                profile.footprint.blocks_per_sm,
                profile.sms,
                known.duration_us,
                known.gap_us,
                profile.issue,
                profile.dram,
                launch.issued_us,
                now - launch.issued_us,
                job.arrived_us,
                job.deadline_us,
                launch.op.left_us,
                launch.preemptions > 0,
            )
        )
        launchable = 0.0
        if len(rows) == problem.scenario.lookahead:
            break
    return rows


def _running(device: ReferenceDevice) -> list[tuple[float, ...]]:
    now = device.env.now
    rows: list[tuple[float, ...]] = []
    for launch in device.launched.values():
        profile = device.problem.kernels[launch.op.identity]
        waiting, resident = launch.blocks, 0
        if launch.slot >= 0:
            context = device.context_of(launch)
            waiting, resident = context.waiting(launch.slot), context.sms.resident(launch.slot)
        rows.append(
            (
                launch.id,
                launch.tenant,
                launch.job.number,
                launch.op.identity,
                device.hosts[launch.tenant].tenant.priority,
                launch.priority,
                launch.running,
                launch.preempting,
                launch.launched_us,
                launch.started_us,
                launch.elapsed_us(now),
                profile.kernel.blocks,
                waiting,
                resident,
                device.problem.knowledge.kernels[launch.op.identity].duration_us,
                profile.issue,
                profile.dram,
                launch.job.deadline_us,
                profile.kernel.idempotent,
                device.decisions.may_preempt(launch),
            )
        )
    return rows


def _tenants(device: ReferenceDevice) -> list[tuple[float, ...]]:
    now = device.env.now
    launched_left = [0.0] * len(device.hosts)
    running_left = [math.inf] * len(device.hosts)
    for launch in device.launched.values():
        # Never measured: NaN, which is no more than 0.
        left = max(0.0, device.problem.knowledge.kernels[launch.op.identity].duration_us - launch.elapsed_us(now))
        launched_left[launch.tenant] += left
        if launch.running:
            running_left[launch.tenant] = left
    return [
        (*_tenant(device, host), *left, device.decisions.may_set_partition(host.index))
        for host, *left in zip(device.hosts, launched_left, running_left, strict=True)
    ]


def _tenant(device: ReferenceDevice, host: Host) -> tuple[float, ...]:
    """The columns up to ``LAST_END_US``."""
    tenant = host.tenant
    partition = device.decisions.partitions[host.index]
    return (
        tenant.priority,
        tenant.weight,
        math.inf if tenant.slo_us is None else tenant.slo_us,
        host.program.alone_us,
        len(host.in_system),
        host.jobs_done,
        host.kernels_pending,
        device.launched_by[host.index],
        host.in_system[0].arrived_us if host.in_system else math.inf,
        host.last_turnaround_us,
        host.mean_turnaround_us,
        0 if partition is None else partition.first,
        device.problem.gpu.sms if partition is None else partition.sms,
        max(0.0, host.last_end_us),
    )


def _occupancy(device: ReferenceDevice) -> float:
    gpu = device.problem.gpu
    threads = sum(context.sms.resident_threads for context in device.contexts if context.active)
    return threads / (gpu.sms * gpu.limits.threads)


_BUILDERS: dict[str, Callable[[ReferenceDevice], Any]] = {
    "pending": lambda d: _table([row for host in d.hosts for row in _pending(d, host)], PendingColumn),
    "running": lambda d: _table(_running(d), RunningColumn),
    "tenants": lambda d: _table(_tenants(d), TenantColumn),
    "sms": lambda d: d.problem.gpu.sms,
    "busy_sms": lambda d: d.meter.busy_sms,
    "occupancy": _occupancy,
    "dram": lambda d: d.meter.traffic / d.problem.gpu.dram_bytes_per_us,
    "horizon_us": lambda d: d.problem.scenario.horizon_us,
}
