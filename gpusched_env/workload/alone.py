"""How a host program runs when nobody else uses the GPU: a recurrence over one stream.

Used to scale recorded host times to the unprofiled wall time, to profile turnarounds and gaps, and to
check the devices against (a tenant alone must do exactly this).
"""

from __future__ import annotations

from collections.abc import Iterable

from gpusched_env.hardware.specs import Timing
from gpusched_env.workload.workload import OpKind


def run_alone(
    ops: Iterable[tuple[int, float, float]], timing: Timing, host_scale: float = 1.0
) -> tuple[float, list[float], list[float]]:
    """Run one iteration of a host program on an idle GPU.

    Args:
        ops: ``(kind, host_us, device_us)`` in program order (``kind`` an :class:`OpKind`).
        timing: the GPU's latencies.
        host_scale: factor on all host times.

    Returns:
        the host's time at the end of the last operation, and start and end of each device operation
        (microseconds since the host began; ``SYNC`` has no entry).
    """
    host = 0.0
    device_free = -1e30
    last_end = 0.0
    starts: list[float] = []
    ends: list[float] = []
    for kind, host_us, device_us in ops:
        host += host_us * host_scale
        if kind == OpKind.SYNC:
            if last_end > 0.0:
                host = max(host, last_end + timing.sync_latency_us)
            continue
        start = max(host + timing.launch_latency_us, device_free)
        last_end = start + device_us
        device_free = last_end + timing.stream_gap_us
        starts.append(start)
        ends.append(last_end)
    return host, starts, ends
