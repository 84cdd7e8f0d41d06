"""What the L2 keeps of a program from one iteration to the next, and what empties it.

A program that runs alone finds in the L2 what it has touched an iteration ago, if all of that fits: the recorded
durations of its kernels are such *warm* ones. What others bring into the L2 meanwhile takes the room that is free and
then drives out what the program left. A kernel whose data is gone takes longer by its recorded share
(:attr:`Op.cold <gpusched_env.workload.workload.Op.cold>`).

Both constants are shares of the data sheet's capacity. They were read off recordings of an H200 (50 MB): replays of
networks alone, each behind a read of 4 to 256 MiB (``data/measurements/h200/cache.jsonl.gz``). Both halves of these
networks give the same two values (``tests/hardware/test_l2_recordings.py``); no pair of networks was looked at for
them. Repeated on another H200, the halves gave 0.52 and 0.7 for the first, 0.24 and 0.12 for the second: that much is
scatter.
"""

from __future__ import annotations

import math
from typing import Final

from gpusched_env.compiling import law

HOLDS: Final = 0.72
"""Share of its capacity that the L2 holds of several programs before one of them loses anything. (It is made of two
halves, which keep some lines twice.)"""
FADES: Final = 0.08
"""Share of the capacity: beyond :data:`HOLDS`, each so much drives out all but a share 1/e of what was left."""


@law
def l2_share_lost(capacity_bytes: float, footprint_bytes: float, brought_bytes: float) -> float:
    """Share of a program's data that the L2 has lost, 0 to 1.

    Args:
        capacity_bytes: of the data sheet (> 0).
        footprint_bytes: that an iteration of the program touches.
        brought_bytes: that others have brought in since the program has touched its data.
    """
    beyond = footprint_bytes + brought_bytes - HOLDS * capacity_bytes
    if beyond <= 0.0:
        return 0.0
    return 1.0 - math.exp(-beyond / (FADES * capacity_bytes))


def keeps(capacity_bytes: float, footprint_bytes: float) -> bool:
    """Whether a program finds its data in the L2 again when nobody else runs."""
    return footprint_bytes <= HOLDS * capacity_bytes
