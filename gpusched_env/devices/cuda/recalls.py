"""Recalling launches of a GPU: a word for each in the GPU's memory, which its blocks read before they begin.

The words are written by the driver's own writes in a stream beside all others, which need neither an SM nor a copy
engine: a copy or a fill might wait behind the very work that is to stop.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gpusched_env.errors import GpuError

RECALL_BYTES: Final = 16
"""``Recall`` in ``synthetic.cu``: blocks that are through, and the seed of a launch that is recalled."""
STOP_AT: Final = 8
"""Where that seed is in it, bytes."""


class Recalls:
    """Of one problem."""

    def __init__(self, cupy: Any, slots: int) -> None:
        """
        Args:
            cupy: the module.
            slots: most launches on the GPU.
        """
        from cuda.bindings import driver

        self._driver = driver
        self._records = cupy.zeros((slots, RECALL_BYTES // 8), np.uint64)
        self._at = int(self._records.data.ptr)
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self.clear()

    def clear(self) -> None:
        """Begin an episode; nothing is on the GPU."""
        self._on: dict[int, tuple[int, int, int]] = {}
        """Launches on the GPU: slot, seed and number of blocks."""
        self.unfinished: set[int] = set()
        """Launches that left the GPU with blocks that have not run."""

    def address(self, slot: int) -> int:
        """Of the record of a launch with a slot."""
        return self._at + RECALL_BYTES * slot

    def note(self, launch: int, slot: int, seed: int, blocks: int) -> None:
        """A kernel was launched."""
        self._on[launch] = slot, seed, blocks

    def stop(self, launches: list[int]) -> None:
        """Let no further block of kernels begin.

        The last one is told first: when the first one leaves for having been told, those behind it know.

        Args:
            launches: in the order in which they were launched.

        Raises:
            GpuError: the driver does not write.
        """
        for launch in reversed(launches):
            slot, seed, _ = self._on[launch]
            at = self.address(slot) + STOP_AT
            (status,) = self._driver.cuStreamWriteValue32(int(self._stream.ptr), at, seed, 0)
            if status != 0:
                raise GpuError(f"the GPU did not take the recall of launch {launch}: {status}")

    def left(self, launch: int, ran: int) -> int:
        """Blocks that have not run of a launch that has ended; of copies and graphs none."""
        known = self._on.get(launch)
        return 0 if known is None else known[2] - ran

    def forget(self, launch: int, left: int) -> None:
        """A launch is not on the GPU any more, and has so many blocks left."""
        self._on.pop(launch, None)
        if left:
            self.unfinished.add(launch)
        else:
            self.unfinished.discard(launch)
