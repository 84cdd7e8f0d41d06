"""Resident kernels: what their blocks need, and how many wait, are resident, have ended."""

from __future__ import annotations

import enum
import math
from dataclasses import InitVar, dataclass
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


@dataclass(eq=False)
class Grid:
    """A kernel among the resident ones of a context."""

    needs: BlockNeeds
    """What one block needs."""
    scale: InitVar[float]
    """Actual over profiled duration of this launch."""
    waiting: int
    """Blocks that are not handed out, saved ones included."""
    priority: int
    """Stream priority, lower is more urgent."""
    partition: InitVar[tuple[int, int]]
    """First SM rank and number of SMs that may hold its blocks."""
    tiles: Tiles
    """Of this kernel."""
    awaits: Tiles | None = None
    """Of the producer that its blocks wait for."""
    saved: int = 0
    """How many of :attr:`waiting` continue with :attr:`saved_left` of their work."""
    saved_left: float = 1.0
    id: int = -1
    """Of its launch."""
    serial: int = -1
    """Number in order of becoming resident in its context."""
    resident: int = 0
    state: Queueing = Queueing.QUEUED
    started: bool = False
    """Whether a block has started."""

    def __post_init__(self, scale: float, partition: tuple[int, int]) -> None:
        self.latency_us = self.needs.latency_us * scale
        self.dram_bytes = self.needs.dram_bytes * scale
        self.log_idle = math.log1p(-self.needs.rho)
        self.first, self.sms = partition

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
