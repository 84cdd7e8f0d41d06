"""Pictures and words of an application that runs from a queue of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.task_queues.session import TaskSession

SIZE: Final = (240, 480)
"""Height and width of a picture."""
BACKGROUND: Final = (255, 255, 255)
QUEUED: Final = (230, 159, 0)
BUSY: Final = (0, 114, 178)


def text(session: TaskSession) -> str:
    """A line of the application, one of its queue, one of its workers; lines end in newlines."""
    view = session.view
    return (
        f"{session.problem.name} on {session.problem.machine.gpu.name}   {view.now_us:,.1f} us   {view.form.name}\n"
        f"queued {view.queued:,}   not written {view.unwritten:,}   taken {view.tasks:,}   "
        f"overwork {view.overwork:.2f}\n"
        f"{view.idle:,} of {view.workers:,} workers idle\n"
    )


def picture(history: Sequence[tuple[float, int, int]]) -> NDArray[np.uint8]:
    """Queued tasks (orange, above) and busy workers (blue, below) over time, each up to its most; uint8, of shape
    ``(*SIZE, 3)``.

    Args:
        history: of each step, the time, queued tasks and busy workers.
    """
    height, width = SIZE
    image = np.full((height, width, 3), BACKGROUND, np.uint8)
    if not history:
        return image
    times, *counts = np.array(history, float).T
    step = np.minimum(np.searchsorted(times, np.linspace(0.0, times[-1], width)), len(times) - 1)
    half = height // 2
    rows = np.arange(half)[::-1, None]
    for top, colour, count in ((0, QUEUED, counts[0]), (half, BUSY, counts[1])):
        image[top : top + half][rows < count[step] * ((half - 1) / max(1.0, count.max()))] = colour
    return image
