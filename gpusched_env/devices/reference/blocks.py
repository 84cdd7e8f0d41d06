"""Resident kernels (grids), their thread blocks, the SMs that hold them, and how fast they progress.

The order of sums is part of the rules, because the last bits of a sum hang on it: on an SM over cohorts in order of
age, over SMs by kinds of equal traffic in order of demand and weight, each times its number.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import InitVar, dataclass
from typing import Any

from gpusched_env.devices.reference.tiling import Tiling
from gpusched_env.hardware import contention
from gpusched_env.hardware.clock import NEVER, PS_PER_US
from gpusched_env.hardware.occupancy import BlockNeeds
from gpusched_env.hardware.placement import fit, within


class Queueing(enum.Enum):
    """Whether a grid hands out blocks."""

    QUEUED = enum.auto()
    DISPATCHED = enum.auto()
    """Not in the queue: all its blocks are handed out."""
    RETURNING = enum.auto()
    """Not in the queue: saved blocks are read back."""
    DRAINING = enum.auto()
    """Out of the queue for good: the grid leaves when its resident blocks have ended."""
    FROZEN = enum.auto()
    """Out of the queue for good: its resident blocks are saved or killed."""


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
    """Blocks of the whole kernel."""
    tiling: Tiling | None = None
    """Tiles of its launch, where they are synchronised."""
    saved: int = 0
    """How many of :attr:`waiting` continue with :attr:`saved_left` of their work."""
    saved_left: float = 1.0
    id: int = -1
    """Id of its launch."""
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
        """The number of the next saved block, and what is left of it."""
        return (-1, self.saved_left) if self.tiling is None else self.tiling.saved.pop(0)

    @property
    def over(self) -> bool:
        """Whether it leaves the GPU: its blocks have ended, or it is drained."""
        return self.resident == 0 and (self.waiting == 0 or self.state is Queueing.DRAINING)


class Block:
    """One resident thread block."""

    __slots__ = (
        "end_ps", "floor", "grid", "held", "left", "number", "passed", "rate", "since_ps", "start_ps", "stopped",
        "work",
    )  # fmt: skip

    def __init__(self, grid: Grid, number: int, work: float, now: int) -> None:
        self.grid = grid
        self.number = number
        """Number of a block that needs and posts the same, where tiles are synchronised; -1: they are not."""
        self.work = self.left = work
        """Blocks of work at its start, and at ``since_ps``."""
        self.passed = 0
        """How many of the times that it waits are over."""
        self.floor = 0.0
        """What is left of its work at its limit, where it waits next; 0: it goes on to its end."""
        self.held = number >= 0
        """Whether it is at its limit: it holds its SM and makes no progress."""
        self.rate = 0.0
        """Blocks of work a microsecond."""
        self.start_ps = self.since_ps = now
        self.end_ps = NEVER
        self.stopped = False
        """Whether it is stopped for a preemption: it holds its SM and makes no progress."""

    @property
    def cohort(self) -> tuple[Grid, int, float, bool, int]:
        """Blocks on an SM that have this in common are equal: neighbours in age, summed up as one."""
        return (self.grid, self.start_ps, self.work, self.stopped, self.number)

    @property
    def progresses(self) -> bool:
        """Whether it uses issue slots and memory."""
        return not self.stopped and not self.held

    @property
    def limited(self) -> bool:
        """Whether it has a limit before its end."""
        return self.grid.tiling is not None and self.passed < self.grid.tiling.waits(self.number)

    def reach_limit(self, now: int) -> None:
        """Stop at the limit: the block has done what it may do."""
        self.left, self.since_ps, self.rate, self.end_ps = self.floor, now, 0.0, NEVER
        self.held = True

    def find_limit(self) -> None:
        """Find how far a block that is held may go, now that tiles were posted."""
        tiling, latency_us = self.grid.tiling, self.grid.latency_us
        assert tiling is not None
        while self.limited and tiling.may_pass(self.number, self.passed):
            self.passed += 1
        self.floor = tiling.left_at(self.number, self.passed, latency_us) if self.limited else 0.0
        self.held = self.limited and self.left <= self.floor

    def change_rate(self, rate: float, now: int) -> None:
        """Go on at another rate; its end, or when it reaches its limit, is computed here and nowhere else."""
        if rate == self.rate:
            return
        self.left -= self.rate * ((now - self.since_ps) / PS_PER_US)
        self.since_ps = now
        self.rate = rate
        self.end_ps = NEVER
        if rate > 0.0:
            self.end_ps = now + max(1, math.floor((self.left - self.floor) / rate * PS_PER_US + 0.5))

    def pause(self, ps: int) -> None:
        """Put everything off by the time for which the block's context was switched out."""
        self.since_ps += ps
        if self.end_ps < NEVER:
            self.end_ps += ps


class Sm:
    """A streaming multiprocessor: resources in use, and its blocks in order of age."""

    def __init__(self, rank: int, number: int, limits: Any) -> None:
        """``limits``: ``threads``, ``warps``, ``blocks``, ``registers`` that it can hold."""
        self.rank = rank
        """Place in placement order."""
        self.number = number
        self._limits = limits
        self.blocks: list[Block] = []
        self.threads = self.warps = self.registers = self.shared_bytes = 0
        self.carveout_bytes = 0
        """Shared memory that it is configured to; the first block on an idle SM chooses it."""
        self.changed = False
        """Whether its residents have changed since their rates were computed."""

    def room(self, grid: Grid) -> int:
        """How many more blocks of a grid it can take."""
        limits, needs = self._limits, grid.needs
        carveout = self.carveout_bytes if self.blocks else needs.carveout_bytes
        fitting = fit(
            limits.threads - self.threads, limits.warps - self.warps, limits.blocks - len(self.blocks),
            limits.registers - self.registers, carveout - self.shared_bytes,
            needs.threads, needs.warps, needs.registers, needs.shared_bytes,
        )  # fmt: skip
        return min(fitting, needs.residents - sum(block.grid is grid for block in self.blocks))

    def place(self, block: Block) -> None:
        """Take a new block, behind the last of its cohort, or as the youngest."""
        if not self.blocks:
            self.carveout_bytes = block.grid.needs.carveout_bytes
        place = len(self.blocks)
        for at in range(len(self.blocks), 0, -1):
            if self.blocks[at - 1].cohort == block.cohort:
                place = at
                break
        self.blocks.insert(place, block)
        self._hold(block.grid, 1)

    def remove(self, block: Block) -> None:
        """A block leaves."""
        self.blocks.remove(block)
        self._hold(block.grid, -1)

    def _hold(self, grid: Grid, blocks: int) -> None:
        needs = grid.needs
        self.threads += blocks * needs.threads
        self.warps += blocks * needs.warps
        self.registers += blocks * needs.registers
        self.shared_bytes += blocks * needs.shared_bytes
        grid.resident += blocks
        self.changed = True

    def cohorts(self) -> Iterator[list[Block]]:
        """The blocks of the SM in order of age, equal ones together."""
        for _, blocks in itertools.groupby(self.blocks, lambda block: block.cohort):
            yield list(blocks)

    @property
    def next_ps(self) -> int:
        """When its next block ends or reaches its limit."""
        return min((block.end_ps for block in self.blocks), default=NEVER)


class Rates:
    """Sets the rates of all blocks of a context."""

    def __init__(self, sms: list[Sm], physics: Any) -> None:
        """Make the rates of ``sms``; ``physics``: the fields of :data:`~gpusched_env.hardware.occupancy.GPU_DTYPE`."""
        self._sms = sms
        self._physics = physics
        self._times_us: list[list[float]] = [[] for _ in sms]
        """By SM, durations of its cohorts before memory throttling."""
        self._asked = [contention.NO_TRAFFIC for _ in sms]
        """By SM, what it asks of DRAM at that pace."""
        self.traffic = 0.0
        """DRAM traffic, bytes/us."""
        self.bandwidth = physics.dram_bytes_per_us
        """DRAM bandwidth for all of that, bytes/us; cores of the CPU may take some."""

    def update(self, now: int) -> None:
        """Set new rates, where something has changed."""
        for sm in self._sms:
            for block in sm.blocks:
                if block.held:
                    block.find_limit()
                    sm.changed |= not block.held
            if sm.changed:
                self._share_slots(sm)
        level = self._share_bandwidth()
        for sm in self._sms:
            throttled = contention.throttle(*self._asked[sm.rank], level)
            for cohort, time_us in zip(sm.cohorts(), self._times_us[sm.rank], strict=True):
                rate = contention.block_rate(time_us, cohort[0].grid.dram_bytes, throttled)
                for block in cohort:
                    block.change_rate(rate if block.progresses else 0.0, now)
            sm.changed = False

    def _share_slots(self, sm: Sm) -> None:
        """Durations of an SM's cohorts that share its issue slots, and its traffic at that pace."""
        physics = self._physics
        running = [(cohort[0].grid, len(cohort)) for cohort in sm.cohorts() if cohort[0].progresses]
        warps_on = [contention.warps_on(count, grid.needs.warps, physics.sub_partitions) for grid, count in running]
        everybody = contention.NO_WARPS
        for (grid, _), warps in zip(running, warps_on, strict=True):
            everybody = contention.with_warps(everybody, warps, grid.needs.rho, grid.log_idle)
        sharing = contention.share_slots(everybody, physics.issue, physics.oldest_first, physics.light_wait)
        older, asked = contention.NO_WARPS, contention.NO_TRAFFIC
        running_us = []
        for (grid, count), warps in zip(running, warps_on, strict=True):
            rho, wait = grid.needs.rho, grid.needs.wait
            time_us = grid.latency_us * contention.slot_stretch(sharing, older, warps, rho, wait, grid.log_idle)
            running_us.append(time_us)
            older = contention.with_warps(older, warps, rho, grid.log_idle)
            asked = contention.with_traffic(asked, count, warps, grid.dram_bytes, time_us)
        self._asked[sm.rank] = asked
        durations = iter(running_us)
        self._times_us[sm.rank] = [
            next(durations) if cohort[0].progresses else cohort[0].grid.latency_us for cohort in sm.cohorts()
        ]

    def _share_bandwidth(self) -> float:
        """The fair level of DRAM traffic for a weight of 1 (bytes/us; 0: nobody is held up); sets the traffic."""
        asking = Counter(asked for asked in self._asked if asked.demand > 0.0)
        kinds = sorted(asking)
        self.traffic, level = contention.share_bandwidth(
            [kind.demand for kind in kinds],
            [kind.loading for kind in kinds],
            [float(asking[kind]) for kind in kinds],
            len(kinds),
            self.bandwidth,
            self._physics.dram_norm,
        )
        return level
