"""Resident kernels: what their blocks need, and how many wait, are resident, have ended."""

from __future__ import annotations

import enum
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.hardware.placement import within


class BlockNeeds(NamedTuple):
    """What one block of a kernel needs: the fields of :data:`~gpusched_env.hardware.records.BLOCK_DTYPE`."""

    threads: int
    warps: int
    registers: int
    shared_bytes: int
    carveout_bytes: int
    latency_us: float
    rho: float
    wait: float
    dram_bytes: float
    spread: float

    @classmethod
    def read(cls, block: NDArray[np.void]) -> BlockNeeds:
        """The needs in a record of shape ``(1,)``."""
        return cls(*block.item())


class Tiles:
    """How many blocks of a kernel have ended: what its consumers wait for. It never goes back, also not at a reset."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.ended = 0
        self.finished = False
        """Whether the kernel has finished, or has vanished."""

    def have(self, need: int) -> bool:
        """Whether ``need`` of the blocks have ended."""
        return self.finished or self.ended >= need


class Queueing(enum.Enum):
    """Whether a grid hands out blocks."""

    QUEUED = enum.auto()
    DISPATCHED = enum.auto()
    """All are handed out."""
    RETURNING = enum.auto()
    """Saved ones are read back."""
    DRAINING = enum.auto()
    """No more: it leaves when its resident blocks have ended."""
    FROZEN = enum.auto()
    """No more: its resident blocks are saved or killed."""


class Grid:
    """A kernel among the resident ones of a context."""

    def __init__(
        self,
        needs: BlockNeeds,
        scale: float,
        waiting: int,
        priority: int,
        partition: tuple[int, int],
        tiles: Tiles,
        awaits: Tiles | None = None,
        saved: int = 0,
        saved_left: float = 1.0,
    ) -> None:
        """
        Args:
            needs: what one block needs.
            scale: actual over profiled duration of this launch.
            waiting: blocks to run.
            priority: stream priority, lower is more urgent.
            partition: first SM rank and number of SMs that may hold its blocks.
            tiles: of this kernel.
            awaits: of the producer that its blocks wait for.
            saved: how many of ``waiting`` continue with ``saved_left`` of their work.
        """
        self.needs = needs
        self.latency_us = needs.latency_us * scale
        self.dram_bytes = needs.dram_bytes * scale
        self.log_idle = math.log1p(-needs.rho)
        self.waiting = waiting
        """Blocks that are not handed out, saved ones included."""
        self.resident = 0
        self.saved = saved
        self.saved_left = saved_left
        """Work left of each saved block."""
        self.priority = priority
        self.first, self.sms = partition
        self.tiles = tiles
        self.awaits = awaits
        self.state = Queueing.QUEUED
        self.begun = False
        """Whether a block has started."""
        self.serial = -1
        """Number in order of becoming resident in its context."""
        self.id = -1
        """Of its launch."""

    def share_sms(self, other: Grid, sms: int) -> bool:
        """Whether the partitions of two grids have an SM in common."""
        return within(other.first, self.first, self.sms, sms) or within(self.first, other.first, other.sms, sms)

    def need_of_next(self) -> int:
        """How many of its producer's blocks the next one that it hands out needs; 0: it waits for none."""
        if self.awaits is None or self.awaits.finished:
            return 0
        number = self.tiles.blocks - self.waiting
        return -(-(number + 1) * self.awaits.blocks // self.tiles.blocks)

    @property
    def over(self) -> bool:
        """Whether it leaves: its blocks have ended, or it is drained."""
        return self.resident == 0 and (self.waiting == 0 or self.state is Queueing.DRAINING)
