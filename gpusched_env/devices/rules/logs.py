"""What happened, written down: rows of the timeline's tables, as far as its detail asks for them."""

from __future__ import annotations

from typing import Any, Final

from gpusched_env.compiling import procedure
from gpusched_env.devices.rules.world import copied_bytes, flight, job_number
from gpusched_env.scheduling.timeline import DETAILS, Columns, Timeline
from gpusched_env.workload.host.world import job

JOBS_ONLY: Final = DETAILS.index("jobs")
KERNELS: Final = DETAILS.index("kernels")
"""Least details of a timeline that has a table."""

JOB: Final = 0
REJECTION: Final = 1
REQUEST: Final = 2
KERNEL: Final = 3
SMS: Final = 4
DECISION: Final = 5
COPY: Final = 6
RESIDENCY: Final = 7
TURN: Final = 8


def tables(timeline: Timeline) -> tuple[Columns, ...]:
    """Its tables by the numbers above."""
    return (
        timeline.jobs, timeline.rejections, timeline.requests, timeline.kernels, timeline.sms, timeline.decisions,
        timeline.copies, timeline.blocks, timeline.turns,
    )  # fmt: skip


def add_row(w: Any, table: int, values: tuple[float, ...]) -> None:
    """Add a row to a table: whole numbers, then floats; compiled code writes to a log of its own."""
    tables(w.timeline)[table].add(*values)


@procedure
def log_job(w, tenant, number):
    """A job has completed."""
    if w.detail >= JOBS_ONLY:
        j = job(w, tenant, number)
        add_row(w, JOB, (tenant, number, j.arrived_ps, j.started_ps, w.now_ps))


@procedure
def log_rejection(w, tenant, number):
    """A job was rejected."""
    if w.detail >= JOBS_ONLY:
        add_row(w, REJECTION, (tenant, number, job(w, tenant, number).arrived_ps, w.now_ps))


@procedure
def log_request(w, tenant, number):
    """A request of a serving engine has completed."""
    if w.detail >= JOBS_ONLY:
        j = job(w, tenant, number)
        add_row(w, REQUEST, (tenant, number, j.first_token_ps, j.tokens, j.preemptions))


@procedure
def log_kernel(w, launch):
    """All blocks of a kernel have ended."""
    if w.detail >= KERNELS:
        f = flight(w, launch)
        add_row(
            w,
            KERNEL,
            (
                launch.id, launch.tenant, job_number(w, launch), launch.identity, launch.issued_ps, launch.launched_ps,
                f.first_started_ps, w.now_ps, launch.priority, f.preemptions, launch.stream, launch.parent_id,
            ),
        )  # fmt: skip


@procedure
def log_sms(w):
    """The meter's rates have changed."""
    if w.detail >= KERNELS:
        add_row(w, SMS, (w.now_ps, w.busy_sms, w.traffic, w.power_w))


@procedure
def log_turn(w, context):
    """A time-sliced context has got the GPU, or -1: it changes hands."""
    if w.detail >= KERNELS:
        add_row(w, TURN, (w.now_ps, context))


@procedure
def log_decision(w, command, launch):
    """A command was given: its code, and the id of its launch, or -1."""
    if w.detail >= KERNELS:
        add_row(w, DECISION, (w.now_ps, command, launch))


@procedure
def log_copy(w, engine, launch):
    """A copy has ended on an engine."""
    if w.detail >= KERNELS:
        add_row(w, COPY, (engine, launch.tenant, copied_bytes(w, launch), flight(w, launch).started_ps, w.now_ps))
