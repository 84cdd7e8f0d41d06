"""What an episode takes of a GPU: buffers of copies, the record of blocks, the words that recall launches, and
partitions of its SMs.

A GPU hands out SMs in groups (of 8 on Hopper), so a partition has as many groups as come nearest to what was asked
for, one at least.

Words of recalls are written by the driver's own writes in a stream beside all others, which need neither an SM nor a
copy engine: a copy might wait behind the very work that is to stop.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.cuda.kernels import shared_numbers
from gpusched_env.devices.cuda.launching import HostClock
from gpusched_env.errors import GpuError, InputError
from gpusched_env.scenarios.program import HostOp, NodeOp
from gpusched_env.workload.workload import OpKind


class CopyBuffers:
    """Buffers for the copies of a problem."""

    def __init__(self, cupy: Any, most_bytes: int) -> None:
        """Make buffers for copies of at most ``most_bytes``."""
        self._runtime = cupy.cuda.runtime
        self._host, self._host_at = shared_numbers(cupy, -(-max(1, most_bytes) // 8))
        self._here, self._there = (cupy.zeros(max(1, most_bytes), np.uint8) for _ in range(2))

    def start(self, op: HostOp | NodeOp, stream: Any) -> None:
        """Put a copy or memset into a stream."""
        runtime, size = self._runtime, max(1, op.bytes)
        here, there = self._here.data.ptr, self._there.data.ptr
        if op.kind is OpKind.MEMSET:
            runtime.memsetAsync(here, 0, size, stream.ptr)
            return
        target, source, kind = {
            OpKind.COPY_TO_DEVICE: (here, self._host_at, runtime.memcpyHostToDevice),
            OpKind.COPY_TO_HOST: (self._host_at, here, runtime.memcpyDeviceToHost),
            OpKind.COPY_ON_DEVICE: (there, here, runtime.memcpyDeviceToDevice),
        }[op.kind]
        runtime.memcpyAsync(target, source, size, kind, stream.ptr)


MOST_BLOCKS: Final = 1 << 22
"""Most blocks of one episode; they take 100 MB of the GPU's memory."""
BLOCK_BYTES: Final = 24
"""``Block`` in ``synthetic.cu``: start and end in the GPU's time, and SM."""


class BlockRecord:
    """The record of the blocks of one episode."""

    def __init__(self, cupy: Any) -> None:
        self._cp = cupy
        self._blocks = cupy.zeros((MOST_BLOCKS, 3), np.uint64)
        self.clear()

    def clear(self) -> None:
        """Forget all blocks, for a new episode."""
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


RECALL_BYTES: Final = 16
"""``Recall`` in ``synthetic.cu``: blocks that are through, and the seed of a launch that is recalled."""
STOP_AT: Final = 8
"""Bytes of ``Recall`` before the seed of the launch."""


class Recalls:
    """The words by which launches of one problem are recalled."""

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
        """Address of the record of a launch with a slot."""
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


class Partitions:
    """The SMs of one GPU, split once; each partition is made when it is first asked for."""

    def __init__(self, number: int) -> None:
        """Split the SMs of the GPU of a ``number`` in this machine, which is in use already.

        Raises:
            GpuError: the driver does not split it.
        """
        from cuda.core import Device, SMResourceOptions

        self._device = Device(number)
        self._device.set_current()
        whole = self._device.resources.sm
        self._sms = int(whole.sm_count)
        self.unit = int(whole.min_partition_size)
        self._groups: list[Any] = []
        failure: Exception | None = None
        for count in range(self._sms // self.unit, 1, -1):
            try:
                self._groups, _ = whole.split(SMResourceOptions(count=(self.unit,) * count))
                break
            except Exception as error:  # cuda-core has no class of its own for errors of the driver.
                failure = error
        if not self._groups:
            raise GpuError(f"the driver does not split the GPU's {self._sms} SMs: {failure}")
        self._contexts: dict[tuple[int, int], Any] = {}

    def stream(self, first: int, sms: int, priority: int) -> Any:
        """A stream of cuda-core whose work runs on a partition.

        Args:
            first: of its SMs.
            sms: how many.
            priority: of the stream.
        """
        from cuda.core import ContextOptions, StreamOptions

        place = groups_of(first, sms, self._sms, len(self._groups))
        context = self._contexts.get(place)
        if context is None:
            chosen = self._groups[slice(*place)]
            context = self._contexts[place] = self._device.create_context(ContextOptions(resources=chosen))
        return context.create_stream(StreamOptions(nonblocking=True, priority=priority))

    def close(self) -> None:
        """Give the contexts back; their streams are gone before."""
        for context in self._contexts.values():
            context.close()
        self._contexts = {}


def groups_of(first: int, sms: int, all_sms: int, groups: int) -> tuple[int, int]:
    """The first group of a partition, and the one behind its last.

    Args:
        first: of its SMs.
        sms: how many.
        all_sms: of the GPU.
        groups: that it is split into.
    """
    begin, end = (round(place * groups / all_sms) for place in (first, first + sms))
    begin = min(begin, groups - 1)
    return begin, max(begin + 1, end)
