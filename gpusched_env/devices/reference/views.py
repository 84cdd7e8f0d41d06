"""What the reference device shows."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, Protocol, TypeVar

import numpy as np

from gpusched_env.devices.reference.clock import Clock
from gpusched_env.devices.reference.context import Context
from gpusched_env.devices.reference.decisions import Decisions
from gpusched_env.devices.reference.launch import Launch, State, in_order
from gpusched_env.devices.reference.streams import Streams
from gpusched_env.devices.reference.world import Job, World
from gpusched_env.hardware.clock import NEVER, PS_PER_US, to_us
from gpusched_env.hardware.tiles import KERNEL
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import HostOp
from gpusched_env.scheduling.commands.preempt import may_preempt
from gpusched_env.scheduling.core_column import CoreColumn
from gpusched_env.scheduling.cores import fill_cores
from gpusched_env.scheduling.legality import show_tenant
from gpusched_env.scheduling.synchronising import NEEDS
from gpusched_env.scheduling.view import (
    FORM_COLUMNS,
    DependencyColumn,
    JobColumn,
    PendingColumn,
    RunningColumn,
    TenantColumn,
    ViewTable,
)
from gpusched_env.workload import host
from gpusched_env.workload.profile import KernelProfile

C = TypeVar("C", bound=enum.IntEnum)


class Viewed(Protocol):
    """A device, as far as views show it."""

    problem: Problem
    clock: Clock
    world: World
    streams: Streams
    decisions: Decisions
    contexts: list[Context]


def _table(rows: Iterable[dict[C, float]], columns: type[C]) -> ViewTable:
    """A table of rows that have a value for each column.

    Raises:
        KeyError: a row lacks a column.
    """
    values = [[row[column] for column in columns] for row in rows]
    return ViewTable(np.array(values, np.float64).reshape(len(values), len(columns)), columns)


def _rows(device: Viewed) -> range:
    """The tenants."""
    return range(len(device.problem.programs))


def _shown(device: Viewed) -> list[Launch]:
    """Pending launches within the look-ahead, tenant after tenant, oldest first."""
    lookahead = device.problem.scenario.lookahead
    found: list[Launch] = []
    for tenant in _rows(device):
        mine = {launch for launch in device.streams.pending.values() if launch.tenant == tenant}
        found += in_order(mine)[:lookahead]
    return found


def _pending(device: Viewed, launch: Launch) -> dict[PendingColumn, float]:
    problem, op, job, now = device.problem, launch.op, launch.job, device.clock.now
    known = problem.knowledge.kernels[op.identity]
    queued_us, between_us = device.streams.own.queued_us(launch)
    dependents = sum(other.state is State.PENDING for other in launch.waiters) if launch.windowed else 0
    return {
        PendingColumn.ID: launch.id,
        PendingColumn.TENANT: launch.tenant,
        PendingColumn.JOB: job.number,
        PendingColumn.IDENTITY: op.identity,
        PendingColumn.LAUNCHABLE: device.streams.launchable(launch),
        PendingColumn.PRIORITY: problem.programs[launch.tenant].tenant.priority,
        PendingColumn.BLOCKS: known.blocks if launch.blocks == 0 else launch.blocks,
        PendingColumn.THREADS: known.threads,
        PendingColumn.BLOCKS_PER_SM: known.blocks_per_sm,
        PendingColumn.SMS: known.sms,
        PendingColumn.PROFILED_US: known.duration_us,
        PendingColumn.PROFILED_GAP_US: known.gap_us,
        PendingColumn.PROFILED_ISSUE: known.issue,
        PendingColumn.PROFILED_DRAM: known.dram,
        PendingColumn.ISSUED_US: to_us(launch.issued_ps),
        PendingColumn.WAITED_US: (now - launch.issued_ps) / PS_PER_US,
        PendingColumn.JOB_ARRIVED_US: to_us(job.arrived_ps),
        PendingColumn.DEADLINE_US: to_us(job.due_ps),
        PendingColumn.JOB_LEFT_US: launch.left_us,
        PendingColumn.PREEMPTED: launch.preempted,
        PendingColumn.STREAM: launch.stream,
        PendingColumn.UPSTREAM: len(launch.waits),
        PendingColumn.NODES: known.nodes,
        PendingColumn.PARENT: _parent(launch),
        PendingColumn.QUEUED_US: queued_us,
        PendingColumn.BETWEEN_US: between_us,
        PendingColumn.DEPENDENTS: dependents,
        **_tiles(device, launch),
    }


def _tiles(device: Viewed, launch: Launch) -> dict[PendingColumn, float]:
    """What a pending launch has to do with the tiles of another."""
    op, producer = launch.op, launch.producer
    needs = op.needs if isinstance(op, HostOp) and op.tiles >= 0 else None
    profile = device.problem.profiled[op.identity]
    columns, rows, slices = profile.kernel.grid if isinstance(profile, KernelProfile) else (0, 0, 0)
    return {
        PendingColumn.PRODUCER: -1 if producer is None or producer.state is State.DONE else producer.id,
        PendingColumn.NEEDS: -1 if needs is None else NEEDS.index(needs.kind),
        PendingColumn.FOLD: 0 if needs is None else needs.fold,
        PendingColumn.STEPS: 0 if needs is None else needs.steps,
        PendingColumn.SYNCHRONISABLE: device.streams.synchronisable(launch),
        PendingColumn.ROWS: rows,
        PendingColumn.COLUMNS: columns,
        PendingColumn.SLICES: slices,
        PendingColumn.POLICY: _policy(launch, "awaits"),
        PendingColumn.POSTS: _policy(launch, "posts"),
        **_forms(device, launch),
    }


def _forms(device: Viewed, launch: Launch) -> dict[PendingColumn, float]:
    """The forms that a pending launch may be given."""
    forms = device.streams.forms(launch)
    found = dict.fromkeys((column for columns in FORM_COLUMNS for column in columns), 0.0)
    for columns, form in zip(FORM_COLUMNS, forms, strict=False):
        known = device.problem.knowledge.kernels[form]
        width, rows, slices = known.grid
        found |= zip(columns, (known.duration_us, rows, width, slices, known.blocks_per_sm), strict=True)
    return {PendingColumn.FORMS: len(forms), **found}


def _policy(launch: Launch, side: Literal["awaits", "posts"]) -> int:
    """The policy of the pair in which a launch waits for tiles, or posts them; 0: there is none."""
    pair = getattr(launch.tiling, side, None)
    return KERNEL if pair is None else pair.numbers.policy


def _running(device: Viewed, launch: Launch) -> dict[RunningColumn, float]:
    problem, job = device.problem, launch.job
    known = problem.knowledge.kernels[launch.op.identity]
    waiting, resident = _blocks(device, launch)
    return {
        RunningColumn.ID: launch.id,
        RunningColumn.TENANT: launch.tenant,
        RunningColumn.JOB: job.number,
        RunningColumn.IDENTITY: launch.op.identity,
        RunningColumn.PRIORITY: problem.programs[launch.tenant].tenant.priority,
        RunningColumn.STREAM_PRIORITY: launch.priority,
        RunningColumn.STARTED: launch.started_ps < NEVER,
        RunningColumn.PREEMPTING: launch.preempting,
        RunningColumn.LAUNCHED_US: to_us(launch.launched_ps),
        RunningColumn.STARTED_US: to_us(launch.started_ps),
        RunningColumn.ELAPSED_US: launch.elapsed_ps(device.clock.now) / PS_PER_US,
        RunningColumn.BLOCKS: known.blocks,
        RunningColumn.BLOCKS_WAITING: waiting,
        RunningColumn.BLOCKS_RESIDENT: resident,
        RunningColumn.PROFILED_US: known.duration_us,
        RunningColumn.PROFILED_ISSUE: known.issue,
        RunningColumn.PROFILED_DRAM: known.dram,
        RunningColumn.DEADLINE_US: to_us(job.due_ps),
        RunningColumn.IDEMPOTENT: known.idempotent and not (launch.tiling and launch.tiling.posts),
        RunningColumn.PREEMPTIBLE: may_preempt(device.world, launch),
        RunningColumn.STREAM: launch.stream,
        RunningColumn.NODES: known.nodes,
        RunningColumn.PARENT: _parent(launch),
        RunningColumn.POLICY: _policy(launch, "awaits"),
        RunningColumn.POSTS: _policy(launch, "posts"),
    }


def _blocks(device: Viewed, launch: Launch) -> tuple[int, int]:
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


def _tenant(device: Viewed, tenant: int) -> dict[TenantColumn, float]:
    program, client = device.problem.programs[tenant], device.world.clients[tenant]
    jobs, known = device.world.in_system(tenant), device.problem.knowledge.tenants[tenant]
    launched = [launch for launch in device.streams.launched.values() if launch.tenant == tenant]
    launched_left_us, running_left_us = _left_us(device, launched)
    first, sms = device.decisions.partitions[tenant]
    legal = np.full(len(TenantColumn), np.nan)
    show_tenant(device.world, tenant, legal)
    return dict(zip(TenantColumn, legal.tolist(), strict=True)) | {
        TenantColumn.PRIORITY: program.tenant.priority,
        TenantColumn.WEIGHT: program.tenant.weight,
        TenantColumn.SLO_US: math.inf if program.tenant.slo_us is None else program.tenant.slo_us,
        TenantColumn.ALONE_US: program.answer_us,
        TenantColumn.DEVICE_US: known.device_us,
        TenantColumn.JOBS_A_US: known.jobs_a_us,
        TenantColumn.JOBS_WAITING: len(jobs),
        TenantColumn.JOBS_DONE: client.completed,
        TenantColumn.KERNELS_PENDING: sum(launch.tenant == tenant for launch in device.streams.pending.values()),
        TenantColumn.KERNELS_LAUNCHED: len(launched),
        TenantColumn.OLDEST_ARRIVED_US: _oldest_arrived_us(device.world, tenant),
        TenantColumn.LAST_TURNAROUND_US: client.last_turnaround_us,
        TenantColumn.MEAN_TURNAROUND_US: client.mean_turnaround_us,
        TenantColumn.PARTITION_FIRST: first,
        TenantColumn.PARTITION_SMS: sms,
        TenantColumn.LAST_END_US: to_us(max(0, client.last_end_ps)),
        TenantColumn.LAUNCHED_LEFT_US: launched_left_us,
        TenantColumn.RUNNING_LEFT_US: running_left_us,
        TenantColumn.PAUSE_US: to_us(client.pause_ps),
    }


def _oldest_arrived_us(world: World, tenant: int) -> float:
    number = host.oldest_unanswered(world, tenant)
    return math.inf if number == host.NOBODY else to_us(world.jobs[tenant][number].arrived_ps)


def _left_us(device: Viewed, launched: list[Launch]) -> tuple[float, float]:
    """Predicted time left of launched kernels: summed, and the least of those that have started."""
    launched_us, running_us = 0.0, math.inf
    for launch in launched:
        elapsed_us = launch.elapsed_ps(device.clock.now) / PS_PER_US
        # Never measured: NaN, which is no more than 0.
        left_us = max(0.0, device.problem.knowledge.kernels[launch.op.identity].duration_us - elapsed_us)
        launched_us += left_us
        if launch.started_ps < NEVER:
            running_us = min(running_us, left_us)
    return launched_us, running_us


def _job(device: Viewed, tenant: int, job: Job) -> dict[JobColumn, float]:
    return {
        JobColumn.TENANT: tenant,
        JobColumn.JOB: job.number,
        JobColumn.ARRIVED_US: to_us(job.arrived_ps),
        JobColumn.DEADLINE_US: to_us(job.deadline_ps),
        JobColumn.STARTED_US: to_us(job.started_ps),
        JobColumn.UNFINISHED: job.unfinished / job.operations,
        JobColumn.REJECTABLE: host.rejectable(device.world, tenant, job.number),
    }


def _dependencies(device: Viewed) -> list[dict[DependencyColumn, float]]:
    return [
        {DependencyColumn.LAUNCH: launch.id, DependencyColumn.WAITS_FOR: other.id}
        for launch in _shown(device)
        for other in in_order(launch.waits)
    ]


def _cores(device: Viewed) -> ViewTable:
    array = np.empty((len(device.world.cores), len(CoreColumn)))
    fill_cores(device.world, array)
    return ViewTable(array, CoreColumn)


def _occupancy(device: Viewed) -> float:
    gpu = device.problem.gpu
    threads = sum(sm.threads for context in device.contexts if context.active for sm in context.sms)
    return threads / (gpu.sms * gpu.limits.threads)


BUILDERS: Final[dict[str, Callable[[Viewed], Any]]] = {
    "time_us": lambda d: to_us(d.clock.now),
    "pending": lambda d: _table([_pending(d, launch) for launch in _shown(d)], PendingColumn),
    "running": lambda d: _table([_running(d, launch) for launch in d.streams.launched.values()], RunningColumn),
    "tenants": lambda d: _table([_tenant(d, tenant) for tenant in _rows(d)], TenantColumn),
    "jobs": lambda d: _table([_job(d, i, job) for i in _rows(d) for job in d.world.in_system(i)], JobColumn),
    "dependencies": lambda d: _table(_dependencies(d), DependencyColumn),
    "cores": _cores,
    "sms": lambda d: d.problem.gpu.sms,
    "busy_sms": lambda d: d.world.busy_sms,
    "occupancy": _occupancy,
    "dram": lambda d: d.world.traffic / d.problem.gpu.dram_bytes_per_us,
    "horizon_us": lambda d: d.problem.scenario.horizon_us,
}
