"""Pictures and words of an application under way, from the launches so far."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.child_launches.device import LaunchDevice
from gpusched_env.games.child_launches.problem import LaunchProblem

SIZE: Final = (240, 480)
"""Height and width of a picture."""
BACKGROUND: Final = (255, 255, 255)
WAITING: Final = (230, 159, 0)
RUNNING: Final = (0, 114, 178)


def text(problem: LaunchProblem, device: LaunchDevice) -> str:
    """A line of the application, one of its children, one of the GPU; lines end in newlines."""
    launches, totals = device.launches, device.totals
    children = launches[launches["parent"] >= 0]
    queued = int((children["queued_ps"] < 0).sum())
    running = int(((children["started_ps"] >= 0) & (children["ended_ps"] < 0)).sum())
    ended = int((children["ended_ps"] >= 0).sum())
    kernels = int((launches["parent"] < 0).sum())
    return (
        f"{problem.name} on {problem.machine.gpu.name}   {device.time_ps / 1e6:,.1f} us   "
        f"kernel {kernels} of {len(problem.tables.kernels)}\n"
        f"requests {int(totals['decisions']):,}   launched {len(children):,}: {queued:,} without a hardware queue, "
        f"{running:,} running, {ended:,} ended\n"
        f"{int(totals['resident_blocks']):,} blocks on SMs\n"
    )


def picture(problem: LaunchProblem, device: LaunchDevice) -> NDArray[np.uint8]:
    """Children over time, from 0 to now: blue with blocks on SMs, orange above them before that; uint8, of shape
    ``(*SIZE, 3)``. The height is the most at any time."""
    height, width = SIZE
    now_ps = max(1, device.time_ps)
    children = device.launches
    children = children[children["parent"] >= 0]
    started = np.where(children["started_ps"] < 0, now_ps + 1, children["started_ps"])
    ended = np.where(children["ended_ps"] < 0, now_ps + 1, children["ended_ps"])
    instants = np.linspace(0, now_ps, width)
    waiting = _between(children["created_ps"], started, instants)
    running = _between(started, ended, instants)
    scale = (height - 1) / max(1, int((waiting + running).max(initial=0)))
    rows = np.arange(height)[::-1, None]
    image = np.full((height, width, 3), BACKGROUND, np.uint8)
    image[rows < (waiting + running) * scale] = WAITING
    image[rows < running * scale] = RUNNING
    return image


def _between(begin: NDArray[np.int64], end: NDArray[np.int64], instants: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many have begun and not ended at each instant."""
    begun = np.searchsorted(np.sort(begin), instants, side="right")
    return np.asarray(begun - np.searchsorted(np.sort(end), instants, side="right"))
