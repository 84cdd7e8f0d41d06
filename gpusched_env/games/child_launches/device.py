"""What a GPU is to a scheduler of child launches: the protocol of both devices at warp granularity."""

from __future__ import annotations

from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.child_launches.problem import LaunchProblem
from gpusched_env.games.child_launches.view import Decision, RequestView

NO_LIMIT: Final = 1 << 40
"""Room in a pool that is not limited."""


class LaunchDevice(Protocol):
    """One GPU that runs one application.

    Use: ``view = reset(problem)``, then ``apply(decision)`` and ``view = advance()`` until that is ``None``: the
    application has finished.
    """

    @property
    def time_ps(self) -> int:
        """Simulated time since the reset."""

    @property
    def totals(self) -> np.void:
        """A row of :data:`~gpusched_env.games.child_launches.timeline.TOTALS`."""

    @property
    def launches(self) -> NDArray[np.void]:
        """Rows of :data:`~gpusched_env.games.child_launches.timeline.LAUNCH`; -1: not yet."""

    def reset(self, problem: LaunchProblem) -> RequestView | None:
        """Start the application and run to the first request.

        Raises:
            DeadlockError: as of :meth:`advance`.
        """

    def apply(self, decision: Decision) -> None:
        """Say what is to be done with the request. A launch that the pool has no room for fails or takes longer.

        Raises:
            IllegalCommand: nothing is asked now, or this is no decision.
        """

    def advance(self) -> RequestView | None:
        """The next request; ``None`` at the end.

        Raises:
            DeadlockError: the application has not finished, but nothing can happen any more.
        """

    def snapshot(self) -> Any:
        """What :meth:`restore` needs to come back to the present request; can be pickled.

        Raises:
            GpuschedError: the present request has its decision, but :meth:`advance` was not called.
        """

    def restore(self, snapshot: Any) -> RequestView | None:
        """Return to a snapshot exactly, of the same kind of device; gives what ``advance`` gave there.

        Raises:
            DeadlockError: nothing could happen any more there.
            InputError: this is no snapshot.
        """


def deadlock_text(
    problem: LaunchProblem, now_ps: int, *, waiting: int, in_use: int, head: int, live_warps: int, resident_blocks: int
) -> str:
    """What waits for what.

    Args:
        problem: of the application.
        now_ps: time.
        waiting: launches without a hardware queue.
        in_use: hardware queues.
        head: the launch whose blocks are to be handed out next, or -1.
        live_warps: on SMs.
        resident_blocks: on SMs.
    """
    text = (
        f"{problem.name}: nothing can happen any more after {now_ps / 1e6:.6g} us: {waiting} launches wait for one of "
        f"{problem.machine.launches.hardware_queues} hardware queues, of which {in_use} are in use"
    )
    if problem.held_until == "children":
        text += " until children have finished"
    if head >= 0:
        text += f"; the blocks of launch {head}, next in order, have no room on any SM"
    if problem.parents == "wait":
        text += f"; {resident_blocks} blocks, with {live_warps} warps left, hold their SMs until their children finish"
    return text
