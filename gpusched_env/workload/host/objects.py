"""What hosts have at run time, as plain objects; names and meanings are those of :mod:`gpusched_env.workload.host`."""

from __future__ import annotations

from dataclasses import dataclass

from gpusched_env.hardware.clock import NEVER
from gpusched_env.workload.host.states import AWAKE, IDLE, UNISSUED, UNTOLD, WAITING


@dataclass(frozen=True)
class JobOps:
    """What a job does: its operations begin at ``first_op``, thread after thread."""

    first_op: int
    device_ops: int
    marks: int
    threads: tuple[int, ...]
    batch: int = 0
    tokens: int = 0
    """Of an engine's step: requests (0: a prefill), and tokens of each."""


@dataclass
class Client:
    """A tenant at run time."""

    threads: int
    first_thread: int
    arrived: int = 0
    until: int = UNTOLD
    """So many jobs and no more come in a closed loop; below 0: no limit."""
    taken: int = 0
    completed: int = 0
    rejected: int = 0
    first: int = 0
    """Oldest job that is not gone."""
    due_job: int = 0
    slo_misses: int = 0
    host_job: int = -1
    busy: int = 0
    """Threads that have not done with it."""
    host_factor: float = 1.0
    at_work: int = 0
    """Threads that spend host time, where that slows other tenants'."""
    outstanding: int = 0
    holds_lock: int = 0
    """The bandwidth lock: 1 from a launch to the return of a synchronisation behind which nothing is left."""
    last_end_ps: int = -NEVER
    partitioned_ps: int = -NEVER
    """When its partition was last set."""
    rejected_ps: int = -NEVER
    pause_ps: int = 0
    """What its host sleeps before a job."""
    owed_ps: int = 0
    """What is added to that, once."""
    asleep_until_ps: int = AWAKE
    throttled_ps: int = -NEVER
    """When it was last throttled."""
    trace_first: int = 0
    """Request of its trace that is the episode's first."""
    trace_from_ps: int = 0
    """Time of its trace at which the episode begins."""
    regime: int = 0
    """Of arrivals whose rate switches: 1 in busy times."""
    jobs_us: float = 0.0
    jobs_since_ps: int = 0
    last_turnaround_us: float = 0.0
    mean_turnaround_us: float = 0.0
    answered: int = 0
    """Jobs that have completed, or requests that have their first token."""
    running: int = 0
    """Requests that a serving engine runs."""
    cached: int = 0
    """Tokens of theirs in its cache."""
    prefills: int = 0
    """1 while its step is a prefill."""
    prefill_left: int = 0
    """Tokens that it has still to prefill after that, of the newest request that runs."""
    l2_job: int = -1
    """This and what follows: its share of the L2 (:mod:`gpusched_env.devices.rules.l2`)."""
    brought_bytes: float = 0.0
    seen_bytes: float = 0.0
    missing: float = 1.0


@dataclass(eq=False)
class Job:
    """One request of a tenant: an iteration of its program."""

    number: int
    variant: JobOps
    first_op: int = 0
    operations: int = 0
    unfinished: int = 0
    """Of its operations on the device."""
    marks: int = 0
    state: int = WAITING
    overdue: int = 0
    arrived_ps: int = 0
    started_ps: int = NEVER
    deadline_ps: int = NEVER
    due_ps: int = NEVER
    """Of its launches."""
    factor: float = 1.0
    prompt: int = 0
    answer: int = 0
    """Lengths of a serving engine's request, tokens."""
    tokens: int = 0
    """Of its answer, so far."""
    cached: int = 0
    """In the cache, while it runs."""
    preemptions: int = 0
    first_token_ps: int = NEVER


@dataclass
class Thread:
    tenant: int
    op: int = 0
    end: int = 0
    state: int = IDLE
    at_work: int = 0


@dataclass
class Mark:
    launch: int = UNISSUED
    finished: int = 0
    ended_ps: int = 0


@dataclass
class StreamBooks:
    outstanding: int = 0
    last_end_ps: int = -NEVER
