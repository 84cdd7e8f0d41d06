"""Iterations that overlap: what the host did for one while the device still worked for the one before.

Without a synchronisation between iterations the host is ahead of the device. It loads the next batch and launches the
first kernels while the device is busy, which so does not wait for that. A workload's iterations are played one after
the other: all of that would be waited for, and the program be slower than it was recorded. So much of that host time is
left out that an iteration alone takes no longer than the recorded one, and no more: of a host that is far ahead,
nothing is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gpusched_env.workload.importers.program import Iteration

AS_RECORDED: Final = 1.005
"""An iteration that takes at most so many times as long alone as recorded has kept its pace."""
_HALVINGS: Final = 6


def leave_out_overlap(iteration: Iteration, alone_us: Callable[[], float]) -> float:
    """Shorten the host times of ``iteration`` by what passed behind the one before, as far as it keeps it up.

    Args:
        iteration: as recorded.
        alone_us: how long it takes alone, as it is when this is called.

    Returns:
        the host time that was left out, microseconds.
    """
    recorded = [(op, op.host_us) for op in iteration.ops if op.ahead_us > 0.0]
    if not recorded or alone_us() <= AS_RECORDED * iteration.recorded_us:
        return 0.0

    def shortened_us(share: float) -> float:
        for op, host_us in recorded:
            op.host_us = host_us - share * op.ahead_us
        return alone_us()

    # Where something else makes it longer, host time is kept that changes nothing.
    most_us = AS_RECORDED * max(iteration.recorded_us, shortened_us(1.0))
    low, high = 0.0, 1.0
    if shortened_us(low) <= most_us:
        return 0.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if shortened_us(middle) <= most_us else (middle, high)
    shortened_us(high)
    return high * sum(op.ahead_us for op, _ in recorded)
