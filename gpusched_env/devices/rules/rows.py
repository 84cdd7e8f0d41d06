"""What devices show: rows of the tables of a :class:`~gpusched_env.scheduling.view.View`, and the error where
nothing can happen any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from gpusched_env.compiling import procedure
from gpusched_env.devices.rules.world import (
    behind,
    blocks_to_run,
    elapsed_us,
    fill_left,
    form_of,
    forms_of,
    is_launchable,
    job_number,
    kernel,
    kernels_of,
    launch_in,
    left_us,
    may_synchronise,
    needed_tiles,
    on_gpu,
    partition_of,
    preempting,
    started_ps,
    stream_of,
    tiling,
    was_preempted,
)
from gpusched_env.errors import DeadlockError
from gpusched_env.hardware.clock import NEVER, to_us
from gpusched_env.hardware.tiles import KERNEL
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands.preempt import may_preempt
from gpusched_env.scheduling.legality import show_tenant
from gpusched_env.scheduling.view import JobColumn, PendingColumn, RunningColumn, TenantColumn, View
from gpusched_env.workload.host import HAS_LEFT, NO_JOB, oldest_unanswered, rejectable
from gpusched_env.workload.host.world import client, job, program, rules

FORM_WIDTH: Final = int(PendingColumn.FORM2_US - PendingColumn.FORM1_US)
"""Columns of a form."""


@procedure
def fill_pending(w, slot, row):
    """The row of a pending launch."""
    launch = launch_in(w, slot)
    profile = kernel(w, launch.identity)
    queued_us, between_us, dependents = behind(w, launch)
    needs, fold, steps = needed_tiles(w, launch)
    producer, policy, posts = tiling(w, slot)
    row[PendingColumn.ID] = launch.id
    row[PendingColumn.TENANT] = launch.tenant
    row[PendingColumn.JOB] = job_number(w, launch)
    row[PendingColumn.IDENTITY] = launch.identity
    row[PendingColumn.LAUNCHABLE] = 1.0 if is_launchable(w, launch) else 0.0
    row[PendingColumn.PRIORITY] = program(w, launch.tenant).priority
    row[PendingColumn.BLOCKS] = blocks_to_run(w, launch)
    row[PendingColumn.THREADS] = profile.block_threads
    row[PendingColumn.BLOCKS_PER_SM] = profile.blocks_per_sm
    row[PendingColumn.SMS] = profile.uses_sms
    row[PendingColumn.PROFILED_US] = told_us(profile)
    row[PendingColumn.PROFILED_GAP_US] = profile.gap_us
    row[PendingColumn.PROFILED_ISSUE] = profile.issue
    row[PendingColumn.PROFILED_DRAM] = profile.dram
    row[PendingColumn.ISSUED_US] = to_us(launch.issued_ps)
    row[PendingColumn.WAITED_US] = (w.now_ps - launch.issued_ps) / 1e6
    row[PendingColumn.JOB_ARRIVED_US] = to_us(launch.arrived_ps)
    row[PendingColumn.DEADLINE_US] = to_us(launch.deadline_ps)
    row[PendingColumn.JOB_LEFT_US] = left_us(w, launch)
    row[PendingColumn.PREEMPTED] = 1.0 if was_preempted(w, launch) else 0.0
    row[PendingColumn.STREAM] = stream_of(w, launch)
    row[PendingColumn.UPSTREAM] = launch.upstream
    row[PendingColumn.NODES] = profile.nodes
    row[PendingColumn.PARENT] = launch.parent_id
    row[PendingColumn.QUEUED_US] = queued_us
    row[PendingColumn.BETWEEN_US] = between_us
    row[PendingColumn.DEPENDENTS] = dependents
    row[PendingColumn.PRODUCER] = producer
    row[PendingColumn.NEEDS] = needs
    row[PendingColumn.FOLD] = fold
    row[PendingColumn.STEPS] = steps
    row[PendingColumn.SYNCHRONISABLE] = 1.0 if may_synchronise(w, slot) else 0.0
    row[PendingColumn.ROWS] = profile.rows
    row[PendingColumn.COLUMNS] = profile.columns
    row[PendingColumn.SLICES] = profile.slices
    row[PendingColumn.POLICY] = policy
    row[PendingColumn.POSTS] = posts
    fill_forms(w, slot, row)


@procedure
def fill_forms(w, slot, row):
    """The forms that a pending launch may be given."""
    count = forms_of(w, slot)
    row[PendingColumn.FORMS] = count
    row[PendingColumn.FORM1_US : PendingColumn.FORM3_PER_SM + 1] = 0.0
    for form in range(count):
        profile = kernel(w, form_of(w, launch_in(w, slot).identity, form))
        first = PendingColumn.FORM1_US + form * FORM_WIDTH
        row[first] = told_us(profile)
        row[first + 1] = profile.rows
        row[first + 2] = profile.columns
        row[first + 3] = profile.slices
        row[first + 4] = profile.blocks_per_sm


@procedure
def told_us(profile):
    """A profiled duration; NaN if the kernel was never measured."""
    return profile.profiled_us if profile.profiled_us > 0.0 else np.nan


@procedure
def fill_running(w, slot, row):
    """The row of a launched, unfinished kernel or graph."""
    launch = launch_in(w, slot)
    profile = kernel(w, launch.identity)
    waiting, resident = on_gpu(w, slot)
    _, policy, posts = tiling(w, slot)
    start_ps = started_ps(w, launch)
    row[RunningColumn.ID] = launch.id
    row[RunningColumn.TENANT] = launch.tenant
    row[RunningColumn.JOB] = job_number(w, launch)
    row[RunningColumn.IDENTITY] = launch.identity
    row[RunningColumn.PRIORITY] = program(w, launch.tenant).priority
    row[RunningColumn.STREAM_PRIORITY] = launch.priority
    row[RunningColumn.STARTED] = 1.0 if start_ps < NEVER else 0.0
    row[RunningColumn.PREEMPTING] = preempting(w, launch)
    row[RunningColumn.LAUNCHED_US] = to_us(launch.launched_ps)
    row[RunningColumn.STARTED_US] = to_us(start_ps)
    row[RunningColumn.ELAPSED_US] = elapsed_us(w, launch)
    row[RunningColumn.BLOCKS] = profile.grid_blocks
    row[RunningColumn.BLOCKS_WAITING] = waiting
    row[RunningColumn.BLOCKS_RESIDENT] = resident
    row[RunningColumn.PROFILED_US] = told_us(profile)
    row[RunningColumn.PROFILED_ISSUE] = profile.issue
    row[RunningColumn.PROFILED_DRAM] = profile.dram
    row[RunningColumn.DEADLINE_US] = to_us(launch.deadline_ps)
    row[RunningColumn.IDEMPOTENT] = profile.idempotent if posts == KERNEL else 0.0
    row[RunningColumn.PREEMPTIBLE] = 1.0 if may_preempt(w, launch) else 0.0
    row[RunningColumn.STREAM] = launch.stream
    row[RunningColumn.NODES] = profile.nodes
    row[RunningColumn.PARENT] = launch.parent_id
    row[RunningColumn.POLICY] = policy
    row[RunningColumn.POSTS] = posts


@procedure
def fill_tenants(w, out):
    """The rows of all tenants, shape ``(tenants, columns)``."""
    for tenant in range(rules(w).tenants):
        c = client(w, tenant)
        p = program(w, tenant)
        row = out[tenant]
        row[TenantColumn.PRIORITY] = p.priority
        row[TenantColumn.WEIGHT] = p.weight
        row[TenantColumn.SLO_US] = p.slo_us
        row[TenantColumn.ALONE_US] = p.answer_us
        row[TenantColumn.DEVICE_US] = p.device_us
        row[TenantColumn.JOBS_A_US] = p.jobs_a_us
        row[TenantColumn.JOBS_WAITING] = c.arrived - c.completed - c.rejected
        row[TenantColumn.JOBS_DONE] = c.completed
        pending, launched = kernels_of(w, tenant)
        row[TenantColumn.KERNELS_PENDING] = pending
        row[TenantColumn.KERNELS_LAUNCHED] = launched
        oldest = oldest_unanswered(w, tenant)
        row[TenantColumn.OLDEST_ARRIVED_US] = to_us(job(w, tenant, oldest).arrived_ps) if oldest != NO_JOB else np.inf
        row[TenantColumn.LAST_TURNAROUND_US] = c.last_turnaround_us
        row[TenantColumn.MEAN_TURNAROUND_US] = c.mean_turnaround_us
        first, sms = partition_of(w, tenant)
        row[TenantColumn.PARTITION_FIRST] = first
        row[TenantColumn.PARTITION_SMS] = sms
        row[TenantColumn.LAST_END_US] = to_us(max(0, c.last_end_ps))
        row[TenantColumn.PAUSE_US] = to_us(c.pause_ps)
        show_tenant(w, tenant, row)
    fill_left(w, out)


@procedure
def list_jobs(w, out):
    """Rows of the jobs in the system; returns their number. As many as fit are written."""
    rows = 0
    for tenant in range(rules(w).tenants):
        c = client(w, tenant)
        for number in range(c.first, c.arrived):
            j = job(w, tenant, number)
            if j.state == HAS_LEFT:
                continue
            if rows < out.shape[0]:
                out[rows, JobColumn.TENANT] = tenant
                out[rows, JobColumn.JOB] = number
                out[rows, JobColumn.ARRIVED_US] = to_us(j.arrived_ps)
                out[rows, JobColumn.DEADLINE_US] = to_us(j.deadline_ps)
                out[rows, JobColumn.STARTED_US] = to_us(j.started_ps)
                out[rows, JobColumn.UNFINISHED] = j.unfinished / j.operations
                out[rows, JobColumn.REJECTABLE] = 1.0 if rejectable(w, tenant, number) else 0.0
            rows += 1
    return rows


def deadlock(problem: Problem, view: View, outstanding: Iterable[int], held: Iterable[str]) -> DeadlockError:
    """The error that says what waits for what.

    Args:
        outstanding: by tenant, operations of its hosts that have not finished.
        held: whose blocks wait for tiles of another (:func:`gpusched_env.scheduling.synchronising.held_slots`).
    """
    pending, waiting = view.pending, []
    for tenant, (its_program, count) in enumerate(zip(problem.programs, outstanding, strict=True)):
        if count:
            kernels = pending.id[pending.tenant == tenant].astype(int).tolist()[:3]
            waiting.append(
                f"tenant {its_program.tenant.name}: {count} operations unfinished, "
                + (f"kernels {kernels} wait for a launch" if kernels else "none waits for the scheduler")
            )
    blocked = view.running.id.astype(int).tolist()[:5]
    if blocked:
        waiting.append(f"launched but unfinished: {blocked}")
    return DeadlockError(f"nothing can happen any more at {view.time_us:.3f} us: {'; '.join([*waiting, *held])}")
