"""Thread blocks on SMs: what they hold, and the work that is left of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from gpusched_env.devices.reference.grid import Grid
from gpusched_env.hardware.clock import NEVER, PS_PER_US
from gpusched_env.hardware.placement import fit


class Block:
    """One resident thread block."""

    __slots__ = (
        "end_ps", "floor", "grid", "held", "left", "number", "passed", "rate", "since_ps", "start_ps", "stopped",
        "work",
    )  # fmt: skip

    def __init__(self, grid: Grid, number: int, work: float, now: int) -> None:
        self.grid = grid
        self.number = number
        """Where tiles are synchronised, that of a block that needs and posts the same; -1: they are not."""
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
        """For a preemption: it holds its SM and makes no progress."""

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
        """It has done what it may do."""
        self.left, self.since_ps, self.rate, self.end_ps = self.floor, now, 0.0, NEVER
        self.held = True

    def find_limit(self) -> None:
        """Of a block that is held: how far it may go, now that tiles were posted."""
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
        """Its context was switched out for a time."""
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
            limits.threads - self.threads,
            limits.warps - self.warps,
            limits.blocks - len(self.blocks),
            limits.registers - self.registers,
            carveout - self.shared_bytes,
            needs.threads,
            needs.warps,
            needs.registers,
            needs.shared_bytes,
        )
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
        """Its blocks in order of age, equal ones together."""
        for _, blocks in itertools.groupby(self.blocks, lambda block: block.cohort):
            yield list(blocks)

    @property
    def next_ps(self) -> int:
        """When its next block ends or reaches its limit."""
        return min((block.end_ps for block in self.blocks), default=NEVER)
