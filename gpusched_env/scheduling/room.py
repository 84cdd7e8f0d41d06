"""What a scheduler that waits is waiting for, where it can say so: it need not be asked before.

A device that asks it all the same gets waits for answers, and plays to the picosecond alike.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gpusched_env.scheduling.contract import Scheduler

NOTHING_DUE: Final[NDArray[np.float64]] = np.empty(0)
UNBOUNDED: Final = 2**62
"""More launches than are ever in flight."""


class Room(NamedTuple):
    """Room for a launch: as long as there is none, a scheduler answers each question with ``Wait``.

    A tenant has room if a kernel of it in ``view.pending`` is launchable, and what it has in flight is within bounds.
    Where it is only the time left that is not, the scheduler waits until that will be, by what is predicted now.
    """

    most_launched: NDArray[np.int64]
    """Launches in flight from which on a tenant has no room, ``(tenants,)``; 0: it has none whatever ends."""
    most_left_us: NDArray[np.float64]
    """Predicted time left in flight (``LAUNCHED_LEFT_US``) up to which a tenant has room, ``(tenants,)``; ``inf``: it
    does not matter."""
    due_us: NDArray[np.float64] = NOTHING_DUE
    """How long after its start the scheduler looks at a kernel with blocks yet to run, by identity; empty: never."""
    least_us: float = 0.0
    """The shortest wait (>= 0); what is due is looked at so much later."""
    any_change: bool = False
    """Whether it is also asked when something else is issued, or is not in flight any more."""

    @classmethod
    def of_any(cls, tenants: int) -> Room:
        """There is room wherever a kernel is launchable."""
        return cls(np.full(tenants, UNBOUNDED), np.full(tenants, np.inf))


@runtime_checkable
class WaitsForRoom(Scheduler, Protocol):
    """A scheduler that can say what it waits for."""

    waits_for: Room | None
    """Without which it waits after its latest command; ``None``: it is to be asked whenever it can be."""
