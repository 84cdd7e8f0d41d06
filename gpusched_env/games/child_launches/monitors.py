"""What the hardware of SPAWN counts, and every other controller of child launches may look at.

Section IV of the paper (HPCA 2017): child blocks in the system, their mean residency, how many run on average, the mean
residency of child warps. It computes averages over windows of 1,024 cycles; where it leaves a choice open, all readings
are kept, and the scheduler has the parameter. Counters are brought up to date when something happens, not every cycle.
Both simulated devices count by these functions.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gpusched_env.compiling import procedure

WINDOW_CYCLES: Final = 1024
RECENT: Final = 1.0 / 16.0
"""Weight of the newest in an exponential mean."""

_COUNTS = ("inside", "running", "blocks", "blocks_ps", "window", "running_ps", "since_ps", "busy_windows")
_WARPS = ("warps", "warps_ps", "within_1024_ps", "within_4096_ps")
_MEANS = ("recent_ps", "window_running", "last_running", "busy_running", "warp_ps", "warp_1024_ps", "warp_4096_ps")
MONITOR: Final = np.dtype([(name, np.int64) for name in (*_COUNTS, *_WARPS)] + [(name, np.float64) for name in _MEANS])
"""
* ``inside``: child blocks between the decision to launch them and their end (``n``). ``running``: on SMs.
* ``blocks``, ``blocks_ps``: child blocks that ended, and the sum of their residencies. ``recent_ps``: exponential mean.
* ``window``: number of the present one; ``running_ps``: integral of ``running`` in it, up to ``since_ps``.
* ``window_running``: mean of ``running`` over the last whole window; ``last_running``: over the last in which any ran;
  ``busy_running``: sum of such means over all windows in which any ran, ``busy_windows`` of them.
* ``warps``, ``warps_ps``: child warps that ended in this window, and the sum of their residencies; ``within_1024_ps``,
  ``within_4096_ps``: with each counted as so many cycles at most. ``warp_ps``, ``warp_1024_ps``, ``warp_4096_ps``:
  means over the last window in which any ended.
"""


@procedure
def advance(monitor: Any, now_ps: int, window_ps: int) -> None:
    """Bring the windows of a :data:`MONITOR` up to ``now_ps``."""
    window = now_ps // window_ps
    if window > monitor.window:
        end_ps = (monitor.window + 1) * window_ps
        _close(monitor, (monitor.running_ps + monitor.running * (end_ps - monitor.since_ps)) / window_ps, 1)
        if monitor.warps > 0:
            monitor.warp_ps = monitor.warps_ps / monitor.warps
            monitor.warp_1024_ps = monitor.within_1024_ps / monitor.warps
            monitor.warp_4096_ps = monitor.within_4096_ps / monitor.warps
            monitor.warps = 0
            monitor.warps_ps = 0
            monitor.within_1024_ps = 0
            monitor.within_4096_ps = 0
        passed = window - monitor.window - 1
        if passed > 0:
            _close(monitor, float(monitor.running), passed)
        monitor.window = window
        monitor.running_ps = 0
        monitor.since_ps = window * window_ps
    monitor.running_ps += monitor.running * (now_ps - monitor.since_ps)
    monitor.since_ps = now_ps


@procedure
def _close(monitor: Any, mean: float, windows: int) -> None:
    monitor.window_running = mean
    if mean > 0.0:
        monitor.last_running = mean
        monitor.busy_running += mean * windows
        monitor.busy_windows += windows


@procedure
def block_started(monitor: Any, now_ps: int, window_ps: int) -> None:
    """A child block is on an SM."""
    advance(monitor, now_ps, window_ps)
    monitor.running += 1


@procedure
def block_ended(monitor: Any, now_ps: int, window_ps: int, residency_ps: int) -> None:
    """A child block has left its SM."""
    advance(monitor, now_ps, window_ps)
    monitor.running -= 1
    monitor.inside -= 1
    monitor.blocks += 1
    monitor.blocks_ps += residency_ps
    if monitor.blocks == 1:
        monitor.recent_ps = float(residency_ps)
    else:
        monitor.recent_ps += RECENT * (residency_ps - monitor.recent_ps)


@procedure
def warps_ended(monitor: Any, now_ps: int, window_ps: int, residency_ps: int, count: int) -> None:
    """``count`` warps of a child block have ended."""
    advance(monitor, now_ps, window_ps)
    monitor.warps += count
    monitor.warps_ps += count * residency_ps
    monitor.within_1024_ps += count * min(residency_ps, window_ps)
    monitor.within_4096_ps += count * min(residency_ps, 4 * window_ps)
