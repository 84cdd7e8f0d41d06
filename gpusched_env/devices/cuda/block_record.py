"""Where and when each block ran, written by the blocks themselves."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.cuda.clock import HostClock
from gpusched_env.errors import InputError

MOST_BLOCKS: Final = 1 << 22
"""Of one episode; they take 100 MB of the GPU's memory."""
BLOCK_BYTES: Final = 24
"""``Block`` in ``synthetic.cu``: start and end in the GPU's time, and SM."""


class BlockRecord:
    """Of one episode."""

    def __init__(self, cupy: Any) -> None:
        self._cp = cupy
        self._blocks = cupy.zeros((MOST_BLOCKS, 3), np.uint64)
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self._launches: list[tuple[int, int]] = []
        """Launches, whose blocks lie one behind the other, and how many each has."""
        self._taken = 0

    def place(self, launch: int, blocks: int) -> int:
        """Address for the blocks of a launch.

        Raises:
            InputError: there are too many.
        """
        first = self._taken
        if first + blocks > MOST_BLOCKS:
            raise InputError(f"the episode has more than {MOST_BLOCKS:,} blocks; record='kernels' records none")
        self._launches.append((launch, blocks))
        self._taken += blocks
        return int(self._blocks.data.ptr) + BLOCK_BYTES * first

    def rows(self, clock: HostClock, unfinished: Collection[int]) -> NDArray[np.int64]:
        """What was recorded, in the order of ends; the GPU has nothing left to do.

        Args:
            clock: of the episode.
            unfinished: launches that are left out; so are blocks that were recalled.

        Returns:
            shape ``(blocks, 4)``: SM, launch, start and end in picoseconds.
        """
        if not self._launches:
            return np.empty((0, 4), np.int64)
        launches = np.repeat(*np.array(self._launches).T)
        found = self._cp.asnumpy(self._blocks[: self._taken]).astype(np.int64)
        ran = (found[:, 1] > 0) & ~np.isin(launches, list(unfinished))
        rows: NDArray[np.int64] = np.column_stack([found[:, 2], launches, clock.ps(found[:, :2])])[ran]
        return rows[np.argsort(rows[:, 3], kind="stable")]
