"""States of jobs, host threads and marks, timers, and arrival processes as numbers."""

from __future__ import annotations

from typing import Final

from gpusched_env.workload.arrivals import (
    ArrivalProcess,
    Backlog,
    Bursts,
    ClosedLoop,
    Periodic,
    Poisson,
    Regimes,
    Trace,
)
from gpusched_env.workload.traces.replay import Replay
from gpusched_env.workload.workload import OpKind

RANDOM_STREAMS: Final = (1, 2)
"""Spawn keys of a tenant's random number generators: of its arrivals, and of what varies from job to job."""

# Timers of this module.
ARRIVAL: Final = 0
"""The next job of a tenant."""
DEADLINE: Final = 1
"""The earliest deadline of a tenant's jobs that is not past."""
HOST: Final = 2
"""The next step of a host thread."""

# Arrival processes.
CLOSED_LOOP: Final = 0
POISSON: Final = 1
PERIODIC: Final = 2
BURSTS: Final = 3
BACKLOG: Final = 4
REGIMES: Final = 5
TRACE: Final = 6


def arrival_numbers(process: ArrivalProcess, replay: Replay | None = None) -> dict[str, float]:
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
"""Its tenant's host has taken it up."""
GONE: Final = 2
"""Completed or rejected."""

# Until how many jobs a closed loop goes on, where that is no number.
NO_LIMIT: Final = -1
UNTOLD: Final = -2
"""No limit, and nobody has told it to come or go."""

# States of a host thread.
IDLE: Final = 0
"""It has done its part of the job, or there is none."""
SPENDING: Final = 1
"""The timer runs to the end of the host time before its operation; or it looks again."""
BLOCKED: Final = 2
"""What its operation needs has not happened yet."""
RETURNING: Final = 3
"""The timer runs to the return of a synchronisation."""

AWAKE: Final = 0
"""``Client.asleep_until_ps`` of a host that does not sleep before a job."""

# Lengths of a request that are drawn.
PROMPT: Final = 0
ANSWER: Final = 1

NOBODY: Final = -1
"""In place of a job's number."""

# States of a mark.
UNISSUED: Final = -1
"""``Mark.launch`` of an operation that was not issued yet."""
HOST_S_OWN: Final = -2
"""Of one that is the host's alone, and done."""

SYNC: Final = int(OpKind.SYNC)
SYNC_STREAM: Final = int(OpKind.SYNC_STREAM)
SYNC_EVENT: Final = int(OpKind.SYNC_EVENT)
HOST_ONLY: Final = int(OpKind.HOST)
