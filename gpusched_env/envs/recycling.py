"""Tables of observations whose memory is used again once nobody holds them.

Memory that is fresh from the operating system costs more to touch than a step costs to write: for hundreds of
environments, several times what copying takes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from gpusched_env.envs.observations import NamedTables, Observation

KEPT = 4
"""Most sets of tables whose memory is kept: a loop holds the last observation while the next one is made."""
UNHELD = 3
"""References to memory that nobody outside holds: the list's, the loop's, and the counting function's."""


class Recycled:
    """Makes sets of float32 tables, each with memory that no table made before shares, as long as anyone holds it.

    A table, and every view of it, holds a reference to the memory behind it.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._parts: list[tuple[str, int, int, tuple[int, ...]]] = []
        self._size = 0
        for name, shape in shapes.items():
            first, self._size = self._size, self._size + math.prod(shape)
            self._parts.append((name, first, self._size, shape))
        self._kept: list[NDArray[np.float32]] = []

    def tables(self) -> Observation:
        """A set of tables, with anything in them."""
        memory = self._unheld()
        return NamedTables({name: memory[first:end].reshape(shape) for name, first, end, shape in self._parts})

    def _unheld(self) -> NDArray[np.float32]:
        for memory in self._kept:
            if sys.getrefcount(memory) <= UNHELD:
                return memory
        memory = np.empty(self._size, np.float32)
        if len(self._kept) < KEPT:
            self._kept.append(memory)
        return memory
