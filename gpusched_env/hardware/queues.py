"""Hardware queues: what happens where more streams are used than the hardware holds at a time.

On some GPUs the streams beyond it share a queue with others (``Timing.queue_period_us`` is 0). On others each stream
has a queue of its own, and the hardware holds so many of them, some for a period, then the next ones. Quach et al.
(ECLIP, ISLPED 2025, observation 2): up to 8 queues of an MI50 run undisturbed, with more the hardware switches between
them periodically.
"""

from __future__ import annotations

from gpusched_env.compiling import law
from gpusched_env.hardware.specs import GpuSpec


def queue_count(gpu: GpuSpec, streams: int) -> int:
    """Hardware queues of a context on ``gpu`` into which ``streams`` streams go."""
    return max(gpu.channels, streams) if gpu.timing.queue_period_us > 0.0 else gpu.channels


@law
def held_ps(place: int, queues: int, channels: int, period_ps: int, now_ps: int) -> int:
    """When a queue is held by the hardware next, from which it then takes kernels: now or later.

    Queues take turns: in period ``n`` those from place ``n * channels`` on are held, counted round. The paper says that
    they do, not in which order.

    Args:
        place: of the queue, in order of first use (0 to ``queues - 1``).
        queues: that were used so far.
        channels: queues that the hardware holds at a time.
        period_ps: how long (above 0).
        now_ps: the present.
    """
    if queues <= channels:
        return now_ps
    turn = now_ps // period_ps
    while (place - turn * channels) % queues >= channels:
        turn += 1
    return max(now_ps, turn * period_ps)
