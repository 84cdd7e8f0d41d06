"""What the rules read of a device, by access functions, besides what its hosts have
(:mod:`gpusched_env.workload.host.world`); compiled code reads its own memory instead
(:mod:`gpusched_env.devices.compiled.ruling`)."""

from __future__ import annotations

from typing import Any


def flight(w: Any, launch: Any) -> Any:
    """A launch that nothing is before any more: ``started_ps``, ``first_started_ps``, ``preemptions``."""
    return launch


def job_number(w: Any, launch: Any) -> int:
    """The number of a launch's job."""
    return int(launch.job.number)


def copied_bytes(w: Any, copy: Any) -> int:
    """What a copy copies."""
    return int(copy.op.bytes)
