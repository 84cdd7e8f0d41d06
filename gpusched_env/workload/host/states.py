"""What hosts have at run time: states, timers, arrival processes as numbers, and the plain objects that keep them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpusched_env.hardware.clock import NEVER
from gpusched_env.workload.tenant import ArrivalProcess, Backlog, Bursts, ClosedLoop, Periodic, Poisson, Regimes, Trace
from gpusched_env.workload.trace_replay import TraceReplay
from gpusched_env.workload.workload import OpKind

RANDOM_STREAMS: Final = (1, 2)
"""Spawn keys of a tenant's random number generators: of its arrivals, and of what varies from job to job."""

# Timers of this module.
ARRIVAL: Final = 0
"""Timer of the next job of a tenant."""
DEADLINE: Final = 1
"""Timer of the earliest deadline of a tenant's jobs that is not past."""
HOST: Final = 2
"""Timer of the next step of a host thread."""

# Arrival processes.
CLOSED_LOOP: Final = 0
POISSON: Final = 1
PERIODIC: Final = 2
BURSTS: Final = 3
BACKLOG: Final = 4
REGIMES: Final = 5
TRACE: Final = 6


def arrival_numbers(process: ArrivalProcess, replay: TraceReplay | None = None) -> dict[str, float]:
    """An arrival process as the numbers that :func:`program` has; ``replay``: what it plays, if it is a trace."""
    numbers = {
        "arrivals": 0.0, "start_us": process.start_us, "think_us": 0.0, "rate_per_s": 0.0, "period_us": 0.0,
        "burst_go": 0.0, "busy_rate_per_s": 0.0, "calm_us": 0.0, "busy_us": 0.0, "times": 0, "span_ps": 0,
        "drawn": 0, "repeats": 0,
    }  # fmt: skip
    match process:
        case ClosedLoop():
            return numbers | {"arrivals": CLOSED_LOOP, "think_us": process.think_us}
        case Poisson():
            return numbers | {"arrivals": POISSON, "rate_per_s": process.rate_per_s}
        case Periodic():
            return numbers | {"arrivals": PERIODIC, "period_us": process.period_us}
        case Bursts():
            burst_go = 1.0 - 1.0 / process.mean_size
            return numbers | {"arrivals": BURSTS, "rate_per_s": process.rate_per_s, "burst_go": burst_go}
        case Regimes():
            both = {"rate_per_s": process.rate_per_s, "busy_rate_per_s": process.busy_rate_per_s}
            return numbers | both | {"arrivals": REGIMES, "calm_us": process.calm_us, "busy_us": process.busy_us}
        case Backlog():
            return numbers | {"arrivals": BACKLOG}
        case Trace():
            assert replay is not None
            played = {"drawn": process.window == "drawn", "repeats": process.at_end == "repeats"}
            return numbers | played | {"arrivals": TRACE, "times": len(replay.times_ps), "span_ps": replay.span_ps}


# States of a job.
WAITING: Final = 0
SERVED: Final = 1
"""State of a job that its tenant's host has taken up."""
HAS_LEFT: Final = 2
"""State of a job that was completed or rejected."""

# Until how many jobs a closed loop goes on, where that is no number.
NO_LIMIT: Final = -1
NO_LIMIT_UNSTARTED: Final = -2
"""No limit to the jobs of a closed loop, and nobody has told it to come or go."""

# States of a host thread.
IDLE: Final = 0
"""State of a thread that has done its part of the job, or has no job."""
SPENDING: Final = 1
"""State of a thread whose timer runs to the end of the host time before its operation; or it looks again."""
BLOCKED: Final = 2
"""State of a thread that is blocked: what its operation needs has not happened yet."""
RETURNING: Final = 3
"""State of a thread whose timer runs to the return of a synchronisation."""

AWAKE: Final = 0
"""``Client.asleep_until_ps`` of a host that does not sleep before a job."""

# Lengths of a request that are drawn.
PROMPT: Final = 0
ANSWER: Final = 1

NO_JOB: Final = -1
"""What stands in place of a job's number where there is none."""

# States of a mark.
UNISSUED: Final = -1
"""``Mark.launch`` of an operation that was not issued yet."""
DONE_BY_HOST: Final = -2
"""``Mark.launch`` of an operation that is the host's alone, and done."""

SYNC: Final = int(OpKind.SYNC)
SYNC_STREAM: Final = int(OpKind.SYNC_STREAM)
SYNC_EVENT: Final = int(OpKind.SYNC_EVENT)
HOST_ONLY: Final = int(OpKind.HOST)


@dataclass(frozen=True)
class JobOps:
    """What a job does: its operations begin at ``first_op``, thread after thread."""

    first_op: int
    device_ops: int
    marks: int
    threads: tuple[int, ...]
    batch: int = 0
    tokens: int = 0
    """An engine's step: ``batch``, its number of requests (0: a prefill), and ``tokens`` of each."""


@dataclass
class HostClient:
    """A tenant at run time."""

    threads: int
    first_thread: int
    arrived: int = 0
    until: int = NO_LIMIT_UNSTARTED
    """Number of jobs after which no more come in a closed loop; below 0: no limit."""
    taken: int = 0
    completed: int = 0
    rejected: int = 0
    first: int = 0
    """Oldest job that is not gone."""
    due_job: int = 0
    slo_misses: int = 0
    host_job: int = -1
    busy: int = 0
    """Threads that have not done with the job that its host serves."""
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
    """How long its host sleeps before a job."""
    owed_ps: int = 0
    """How much longer its host sleeps before the next job, once."""
    asleep_until_ps: int = AWAKE
    throttled_ps: int = -NEVER
    """When it was last throttled."""
    trace_first: int = 0
    """Request of its trace that is the episode's first."""
    trace_from_ps: int = 0
    """Time of its trace at which the episode begins."""
    regime: int = 0
    """Regime of arrivals whose rate switches: 1 in busy times."""
    jobs_us: float = 0.0
    jobs_since_ps: int = 0
    last_turnaround_us: float = 0.0
    mean_turnaround_us: float = 0.0
    answered: int = 0
    """Jobs that have completed, or requests that have their first token."""
    running: int = 0
    """Requests that a serving engine runs."""
    cached: int = 0
    """Tokens of running requests in the cache of a serving engine."""
    prefills: int = 0
    """1 while its step is a prefill."""
    prefill_left: int = 0
    """Tokens that it has still to prefill after this step, of the newest request that runs."""
    l2_job: int = -1
    """Last job with a resident kernel; with what follows its share of the L2 (:mod:`gpusched_env.devices.rules.l2`)."""
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
    """Number of its operations on the device that have not ended."""
    marks: int = 0
    state: int = WAITING
    overdue: int = 0
    arrived_ps: int = 0
    started_ps: int = NEVER
    deadline_ps: int = NEVER
    due_ps: int = NEVER
    """Deadline of its launches."""
    factor: float = 1.0
    prompt: int = 0
    answer: int = 0
    """Lengths of a serving engine's request in tokens: its prompt, and its answer."""
    tokens: int = 0
    """Tokens of its answer, so far."""
    cached: int = 0
    """Tokens of it in the cache, while it runs."""
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
