"""What schedulers read: words for the parts of what is known, and the columns and fields that each of them stands for.

A class declares in ``reads`` the words for what its decisions depend on, with any of its options. Published systems
differ in it: some know only who issued a launch, others how long each kernel takes and what it needs, or the very end
of every kernel. Tables show it beside what a scheduler may do (``commands``). A test hides parts from each scheduler,
which proves what is declared.

What no word stands for is open to everyone: which launches are pending (id, tenant, identity, stream, when they were
issued, whether they may be launched or were preempted), partitions, the time, the GPU, and what the scenario offers.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.scheduling.cores import CoreColumn
from gpusched_env.scheduling.view import JobColumn, PendingColumn, RunningColumn, TenantColumn

P, R, T, J, C = PendingColumn, RunningColumn, TenantColumn, JobColumn, CoreColumn
TRUTH: Final = "truth"
"""The word for what clairvoyant schedulers are told besides."""


@dataclass(frozen=True, slots=True)
class KnownPart:
    """A part of what is known. What belongs to several parts is read by who reads all of them."""

    meaning: str
    columns: tuple[enum.IntEnum, ...] = ()
    """Columns of a view's tables."""
    fields: tuple[str, ...] = ()
    """Fields of the view itself; a table's name stands for its rows."""
    of_tenants: tuple[str, ...] = ()
    """Fields of :class:`~gpusched_env.scenarios.knowledge.TenantKnowledge`."""
    of_kernels: tuple[str, ...] = ()
    """Fields of :class:`~gpusched_env.scenarios.knowledge.KernelKnowledge`."""


PARTS: Final[dict[str, KnownPart]] = {
    "priorities": KnownPart("urgencies of tenants", (P.PRIORITY, R.PRIORITY, T.PRIORITY), of_tenants=("priority",)),
    "weights": KnownPart("weights of tenants in the cost", (T.WEIGHT,), of_tenants=("weight",)),
    "objectives": KnownPart(
        "objectives of tenants, deadlines of jobs",
        (P.DEADLINE_US, R.DEADLINE_US, T.SLO_US, J.DEADLINE_US),
        of_tenants=("slo_us",),
    ),
    "requests": KnownPart(
        "which request a kernel belongs to, when requests arrive and end",
        (
            P.JOB, P.JOB_ARRIVED_US, P.JOB_LEFT_US, R.JOB, T.JOBS_WAITING, T.JOBS_DONE, T.OLDEST_ARRIVED_US,
            T.LAST_TURNAROUND_US, T.MEAN_TURNAROUND_US, T.OLDEST_REJECTABLE, T.NEWEST_REJECTABLE,
        ),
        ("jobs",),
    ),
    "profiles": KnownPart(
        "profiled durations of kernels, gaps and requests",
        (
            P.PROFILED_US, P.PROFILED_GAP_US, P.JOB_LEFT_US, P.QUEUED_US, P.BETWEEN_US, R.PROFILED_US, T.ALONE_US,
            T.DEVICE_US, T.LAUNCHED_LEFT_US, T.RUNNING_LEFT_US, P.FORM1_US, P.FORM2_US, P.FORM3_US,
        ),
        of_tenants=("alone_us", "device_us"),
        of_kernels=("duration_us", "gap_us"),
    ),
    "rates": KnownPart("mean rates of arrivals", (T.JOBS_A_US,), of_tenants=("jobs_a_us",)),
    "demands": KnownPart(
        "profiled shares of issue slots and DRAM bandwidth; what a job asks of the GPU",
        (P.PROFILED_ISSUE, P.PROFILED_DRAM, R.PROFILED_ISSUE, R.PROFILED_DRAM),
        of_tenants=("demand",),
        of_kernels=("issue", "dram"),
    ),
    "shapes": KnownPart(
        "blocks of kernels, their threads, and how many an SM holds",
        (
            P.BLOCKS, P.THREADS, P.BLOCKS_PER_SM, P.SMS, P.ROWS, P.COLUMNS, P.SLICES, R.BLOCKS, P.FORMS,
            P.FORM1_ROWS, P.FORM1_COLUMNS, P.FORM1_SLICES, P.FORM1_PER_SM,
            P.FORM2_ROWS, P.FORM2_COLUMNS, P.FORM2_SLICES, P.FORM2_PER_SM,
            P.FORM3_ROWS, P.FORM3_COLUMNS, P.FORM3_SLICES, P.FORM3_PER_SM,
        ),
        of_kernels=("grid", "block", "registers", "shared_bytes", "blocks", "threads", "blocks_per_sm", "sms", "forms"),
    ),
    "completions": KnownPart(
        "what is launched and unfinished, at every instant",
        (
            T.KERNELS_LAUNCHED, T.LAST_END_US, T.LAUNCHED_LEFT_US, T.RUNNING_LEFT_US, P.QUEUED_US, P.BETWEEN_US,
            J.UNFINISHED,
        ),
        ("running",),
    ),
    "progress": KnownPart(
        "how far launched kernels are: started, elapsed, blocks on SMs; busy SMs and occupancy",
        (
            R.STARTED, R.STARTED_US, R.ELAPSED_US, R.PREEMPTING, R.PREEMPTIBLE, R.BLOCKS_WAITING, R.BLOCKS_RESIDENT,
            T.LAUNCHED_LEFT_US, T.RUNNING_LEFT_US,
        ),
        ("busy_sms", "occupancy", "dram"),
    ),
    "dependencies": KnownPart(
        "what pending launches wait for, whose tiles they need, and how many wait for them",
        (
            P.UPSTREAM, P.DEPENDENTS, P.QUEUED_US, P.BETWEEN_US, P.PRODUCER, P.NEEDS,
            P.FOLD, P.STEPS, P.SYNCHRONISABLE, P.POLICY, P.POSTS, R.POLICY, R.POSTS,
        ),
        ("dependencies",),
    ),
    "cores": KnownPart(
        "CPU cores beside the GPU: tasks, misses, throttled time, and whose lock counts",
        (
            C.TASKS, C.LOCKED, C.MISSES, C.LAST_MISSES, C.THROTTLED, C.THROTTLED_US, C.MEMORY_US, C.COMPUTE_US,
            C.NEXT_TICK_US,
        ),
    ),
}  # fmt: skip
"""Parts of what is known, by the word for each."""

Reads = tuple[str, ...]
EVERYTHING: Final[Reads] = tuple(PARTS)
OBSERVED: Final[Reads] = tuple(word for word in PARTS if word != "cores")
"""What observations of environments have columns of."""


def reads_of(scheduler: object) -> Reads | None:
    """The words that a scheduler (or its class) declares, in the order of :data:`PARTS`; ``None``: it declares nothing.

    Raises:
        InputError: a word that there is not.
    """
    declared: Iterable[str] | None = getattr(scheduler, "reads", None)
    if declared is None:
        return None
    words = [*PARTS, TRUTH]
    given = tuple(declared)
    for word in given:
        if word not in words:
            name = getattr(scheduler, "__name__", type(scheduler).__name__)
            raise InputError(f"{name}.reads: {word!r} is no part of what is known; {did_you_mean(word, words)}")
    return tuple(word for word in words if word in given)
