"""Resident kernels: what their blocks need, and how many wait, are resident, have ended."""

from __future__ import annotations

import enum
import math
from dataclasses import InitVar, dataclass

from gpusched_env.devices.reference.tiling import Tiling
from gpusched_env.hardware.placement import within
from gpusched_env.hardware.records import BlockNeeds


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
    blocks: int
    """Of the whole kernel."""
    tiling: Tiling | None = None
    """Where tiles are synchronised."""
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

    def next_block(self, noise: float) -> tuple[int, float]:
        """The number (-1: none) and the work of the next block that it hands out, one that never ran.

        Args:
            noise: how much more work it has than others.
        """
        if self.tiling is None:
            return -1, 1.0 + noise
        number = self.tiling.block_at(self.blocks - self.waiting)
        return number, self.tiling.work(number, self.latency_us) + self.tiling.order_work(self.latency_us) + noise

    def next_saved(self) -> tuple[int, float]:
        """The number and what is left of the next saved one."""
        return (-1, self.saved_left) if self.tiling is None else self.tiling.saved.pop(0)

    @property
    def over(self) -> bool:
        """Whether it leaves: its blocks have ended, or it is drained."""
        return self.resident == 0 and (self.waiting == 0 or self.state is Queueing.DRAINING)
