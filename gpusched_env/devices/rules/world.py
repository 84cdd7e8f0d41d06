"""What the rules read of a device, by access functions, and what they write down of what happened: rows of the
timeline's tables.

Compiled code reads its own memory instead (:mod:`gpusched_env.devices.compiled.views`).
"""

from __future__ import annotations

from typing import Any, Final

from gpusched_env.compiling import procedure
from gpusched_env.hardware.clock import PS_PER_US
from gpusched_env.scheduling.timeline import DETAILS, Columns, Timeline
from gpusched_env.scheduling.view import TenantColumn
from gpusched_env.workload.host.world import job


def flight(w: Any, launch: Any) -> Any:
    """A launch that nothing is before any more: ``started_ps``, ``first_started_ps``, ``preemptions``."""
    return launch


def job_number(w: Any, launch: Any) -> int:
    """The number of a launch's job."""
    return int(launch.job.number)


def copied_bytes(w: Any, copy: Any) -> int:
    """What a copy copies."""
    return int(copy.op.bytes)


# ---- what rows of views say of launches -----------------------------------------------------------------------------


def launch_in(w: Any, slot: Any) -> Any:
    """The launch in a slot (the reference device has no slots: that is the launch itself): ``id``, ``tenant``,
    ``identity``, ``priority``, ``stream``, ``upstream`` (unfinished launches that it waits for), ``parent_id``, and its
    times."""
    return slot


def kernel(w: Any, identity: int) -> Any:
    """What everybody is told of a kernel or graph (:func:`.numbers.kernel_numbers`)."""
    return w.kernels[identity]


def is_launchable(w: Any, launch: Any) -> bool:
    """Whether a pending launch may be launched now."""
    return bool(w.queues.launchable(launch))


def may_synchronise(w: Any, slot: Any) -> bool:
    """Whether the tiles of a pending launch and its producer may be synchronised now."""
    return bool(w.queues.synchronisable(slot))


def forms_of(w: Any, slot: Any) -> int:
    """How many forms a pending launch may be given."""
    return len(w.queues.forms(slot))


def form_of(w: Any, identity: int, form: int) -> int:
    """The identity of a kernel in another form."""
    return int(w.forms[identity][form])


def left_us(w: Any, launch: Any) -> float:
    """Profiled device time of what is left of a launch's job; of a child: as of its parent."""
    return float(launch.left_us)


def was_preempted(w: Any, launch: Any) -> bool:
    """Whether a pending launch has been launched before."""
    return bool(launch.preempted)


def stream_of(w: Any, launch: Any) -> int:
    """The stream that a pending launch was issued into, or, if it was preempted, launched into; -1: none."""
    return int(launch.stream)


def blocks_to_run(w: Any, launch: Any) -> int:
    """Blocks of a launch that are not on the SMs: all, or what was left at a preemption."""
    return int(launch.blocks)


def behind(w: Any, launch: Any) -> tuple[float, float, int]:
    """What stands before a pending launch of a window: profiled time left of what it would be behind in its stream, and
    of those of them that are behind all that it waits for, and how many pending launches wait for it; 0 of others."""
    return w.queues.own.behind(launch)  # type: ignore[no-any-return]


def needed_tiles(w: Any, launch: Any) -> tuple[int, int, int]:
    """What a launch needs of the tiles of another: the kind of needs, fold, steps; -1, 0, 0: nothing."""
    return launch.needed_tiles  # type: ignore[no-any-return]


def tiling(w: Any, slot: Any) -> tuple[int, int, int]:
    """Id of the unfinished launch whose tiles a launch needs (-1: none), under which policy it waits for them, and
    under which it posts its own."""
    return slot.synchronised  # type: ignore[no-any-return]


def started_ps(w: Any, launch: Any) -> int:
    """When a launch has started, since it was launched last; :data:`NEVER`: it has not."""
    return int(launch.started_ps)


def preempting(w: Any, launch: Any) -> int:
    """Whether a preemption of a launch is under way: 0 or 1."""
    return int(launch.preempting)


def elapsed_us(w: Any, launch: Any) -> float:
    """How long a launch has run: since its start, and before a preemption that kept its progress."""
    return float(launch.elapsed_ps(w.now_ps) / PS_PER_US)


def on_gpu(w: Any, slot: Any) -> tuple[int, int]:
    """Blocks of a launch that wait and that are resident; of a graph summed over its nodes."""
    return slot.on_gpu  # type: ignore[no-any-return]


# ---- what they say of tenants ---------------------------------------------------------------------------------------


def kernels_of(w: Any, tenant: int) -> tuple[int, int]:
    """How many kernels and graphs of a tenant wait for the scheduler, and are launched and unfinished."""
    return w.queues.count(tenant)  # type: ignore[no-any-return]


def partition_of(w: Any, tenant: int) -> tuple[int, int]:
    """A tenant's partition: first SM and number of SMs."""
    return w.launches.partitions[tenant]  # type: ignore[no-any-return]


def fill_left(w: Any, out: Any) -> None:
    """Fill ``LAUNCHED_LEFT_US`` and ``RUNNING_LEFT_US`` of all tenants: profiled time left of their launched kernels,
    summed, and the least of those that have started."""
    for tenant, row in enumerate(out):
        row[TenantColumn.LAUNCHED_LEFT_US], row[TenantColumn.RUNNING_LEFT_US] = w.queues.left_us(tenant)


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
    """The tables of a timeline by the numbers above."""
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
