"""Pictures and words of a fleet under way, from its reports so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.fleet.co_location import NOW
from gpusched_env.games.fleet.device import Fleet
from gpusched_env.games.fleet.problem import FleetProblem

SIZE: Final = (240, 480)
"""Height and width of a picture."""
BACKGROUND: Final = (255, 255, 255)
JOBS: Final = (200, 200, 200)
GPUS: Final = (0, 114, 178)
WAITING: Final = (230, 159, 0)
Counts = Sequence[tuple[int, int, int]]
"""Of each report: GPUs in use, jobs on them, jobs waiting."""


def text(fleet: Fleet, counts: Counts) -> str:
    """A line of the day, one of its GPUs, one for each GPU in use; lines end in newlines."""
    state = fleet.state
    used, running, waiting = counts[-1] if counts else (0, 0, 0)
    lines = [f"{fleet.problem.name}, hour {state.clock[NOW] / 3.6e9:.2f}", f"GPUs {used}   jobs {running} + {waiting}"]
    for gpu in np.flatnonzero(state.count).tolist():
        jobs = state.slots[gpu, : state.count[gpu]]
        trainings = int(state.training[jobs].sum())
        lines.append(
            f"GPU {gpu}: load {state.load[gpu]:.2f}, {state.claimed_gb[gpu]:.0f} of {state.size_gb[gpu]:.0f} GB, "
            f"training {trainings}, inference {len(jobs) - trainings}, sleep {state.sleep_us[gpu] / 1e3:.0f} ms, "
            f"latency over SLO {state.ratio[gpu]:.2f}"
        )
    return "\n".join(lines) + "\n"


def picture(problem: FleetProblem, counts: Counts) -> NDArray[np.uint8]:
    """The day so far, from left to right, uint8 of shape ``(*SIZE, 3)``: blue the GPUs in use, grey behind them the
    jobs on them, orange on top of these those that wait. The height is the most jobs at any time."""
    height, width = SIZE
    image = np.full((height, width, 3), BACKGROUND, np.uint8)
    if not counts:
        return image
    reports = -(-problem.horizon_us // problem.report_us)
    used, running, waiting = np.array(counts).T
    at = np.arange(width) * reports // width
    scale = (height - 1) / max(1, int((running + waiting).max()))
    rows = np.arange(height)[::-1, None]
    for tops, colour in ((running + waiting, WAITING), (running, JOBS), (used, GPUS)):
        columns = np.where(at < len(counts), tops[np.minimum(at, len(counts) - 1)] * scale, 0.0)
        image[rows < columns] = colour
    return image
