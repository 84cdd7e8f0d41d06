"""Which stretch of an episode to look at block by block."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpusched_env.experiments.lib.episodes import Run

KERNELS = 600
"""Kernels that the window should hold, about: enough to see a pattern, few enough to tell apart."""
SEARCH_KERNELS = 20_000
"""How far to look for it: everything before the window is simulated block by block as well."""
SAME_US = 1e-3
"""Times closer than this are equal."""
LEAD = 0.1
"""Share of the window that lies before the tenants meet."""


def interesting_window(runs: Sequence[Run]) -> tuple[float, float]:
    """Start and end (us) of a stretch that begins shortly before two tenants first meet.

    They meet when a kernel of a second tenant starts. Without such a moment the window begins with the episode.

    Args:
        runs: of several schedulers on one seed; the first, which has recorded its kernels, says where to look. Where it
            has few kernels, the window goes on until all runs have ended.
    """
    run = runs[0]
    assert run.timeline is not None
    end_us = max(each.metrics.end_us for each in runs)
    table = run.timeline.kernels.dict()
    if len(run.timeline.kernels) == 0:
        return 0.0, end_us
    order = np.argsort(table["started_us"], kind="stable")
    started, tenant = table["started_us"][order], table["tenant"][order]
    meeting = np.flatnonzero(tenant[:SEARCH_KERNELS] != tenant[0])
    first = int(meeting[0]) if len(meeting) else 0
    last_us = float(started[first + KERNELS]) if first + KERNELS < len(started) else end_us
    start_us = max(0.0, float(started[first]) - LEAD * (last_us - float(started[first])))
    return start_us, last_us


def same_start(short: Run, whole: Run) -> bool:
    """Whether ``short``, run again up to an earlier end, did what ``whole`` did until then.

    It does on a simulated device (within a nanosecond: recording blocks splits sums) with a scheduler that does
    not look at the horizon, and does not on a real GPU.
    """
    if short.timeline is None or whole.timeline is None:
        return False
    first, second = short.timeline.kernels, whole.timeline.kernels
    started = dict(zip(second.column("id"), second.column("started_us"), strict=True))
    rows = zip(first.column("id"), first.column("started_us"), strict=True)
    return all(abs(started.get(launch, math.inf) - us) <= SAME_US for launch, us in rows)
