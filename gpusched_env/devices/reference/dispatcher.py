"""Which block goes where: leftover dispatch, head of line by priority, most-room placement.

Rules (Amert et al., RTSS 2017; Gilman et al., 2020; see ``docs/hardware-model.md``): only the first waiting grid of the
highest priority hands out blocks; a grid leaves the queue when its last block is handed out; nothing behind it starts,
even where it would fit. Grids whose partitions share no SM do not block each other. A block goes to the SM with the
most room for its kernel, ties in placement order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gpusched_env.devices.reference.blocks import Block, Grid, Queueing, Sm
from gpusched_env.hardware.placement import block_noise, within


class Residency(NamedTuple):
    """Equal blocks that have ended together on an SM."""

    sm: int
    grid: Grid
    blocks: int
    start_ps: int


class Dispatcher:
    """Hands out the blocks of queued grids to SMs."""

    def __init__(self, sms: list[Sm]) -> None:
        """Make a dispatcher for ``sms``, in placement order."""
        self.sms = sms
        self.queue: list[Grid] = []
        """Grids with blocks to hand out, by priority, then in order of becoming resident."""
        self.changed = False
        """Whether grids or their places in the queue have changed, so that any SM may get blocks."""
        self.started: list[Grid] = []
        self.dispatched: list[Grid] = []
        """Grids whose first block has started, whose last block was handed out, since these lists were emptied."""

    def enqueue(self, grid: Grid) -> None:
        """Let a grid hand out blocks."""
        grid.state = Queueing.QUEUED
        self.queue.append(grid)
        self.queue.sort(key=lambda queued: (queued.priority, queued.serial))
        self.changed = True

    def leave(self, grid: Grid, state: Queueing) -> None:
        """Let a grid hand out no more blocks."""
        grid.state = state
        if grid in self.queue:
            self.queue.remove(grid)
        self.changed = True

    def _unblocked(self) -> Iterator[Grid]:
        """Queued grids that no earlier one on their SMs holds up; the queue may lose the present one meanwhile."""
        before: list[Grid] = []
        for grid in list(self.queue):
            if not any(grid.share_sms(other, len(self.sms)) for other in before):
                yield grid
            if grid.waiting > 0:
                before.append(grid)

    def _may_hold(self, sm: Sm, grid: Grid) -> bool:
        return within(sm.rank, grid.first, grid.sms, len(self.sms))

    def dispatch(self, now: int) -> None:
        """Hand out blocks to any SM until nothing fits that may go."""
        self.changed = False
        for grid in self._unblocked():
            for blocks in (grid.saved, grid.waiting - grid.saved):
                for sm, share in zip(self.sms, self._shares(grid, blocks), strict=True):
                    for _ in range(share):
                        self._hand_out(grid, sm, now)

    def _shares(self, grid: Grid, blocks: int) -> list[int]:
        """How many of some blocks of a grid go to each SM; they are numbered SM after SM, in placement order."""
        room = [sm.room(grid) if self._may_hold(sm, grid) else 0 for sm in self.sms]
        shares = [0] * len(room)
        # A block takes one off its SM's room: so one goes to each SM with the most room before the level sinks.
        for level in range(max(room), 0, -1):
            for rank, fitting in enumerate(room):
                if fitting >= level and blocks > 0:
                    shares[rank] += 1
                    blocks -= 1
        return shares

    def _dispatch_to(self, sm: Sm, now: int) -> None:
        """Hand out blocks to an SM that just got room; all others were full before."""
        head = next((grid for grid in self._unblocked() if self._may_hold(sm, grid)), None)
        if head is None:
            return
        for _ in range(min(sm.room(head), head.waiting)):
            self._hand_out(head, sm, now)
        if head.waiting == 0:
            # The grids behind it may start anywhere.
            self.dispatch(now)

    def _hand_out(self, grid: Grid, sm: Sm, now: int) -> None:
        """Start the next block of a grid on an SM: saved ones first."""
        if grid.saved > 0:
            number, work = grid.next_saved()
            grid.saved -= 1
        else:
            spread = grid.needs.spread
            noise = spread * block_noise(sm.rank, grid.serial, grid.waiting) if spread > 0.0 else 0.0
            number, work = grid.next_block(noise)
        sm.place(Block(grid, number, work, now))
        grid.waiting -= 1
        if not grid.started:
            grid.started = True
            self.started.append(grid)
        if grid.waiting == 0:
            grid.state = Queueing.DISPATCHED
            self.queue.remove(grid)
            self.dispatched.append(grid)

    def end_blocks(self, now: int) -> list[Residency]:
        """Let blocks leave whose end has come, SM by SM, older ones first, and hand out others after each.

        Blocks that have come to their limit stay there.
        """
        for sm in self.sms:
            for block in sm.blocks:
                if block.end_ps <= now and block.limited:
                    block.reach_limit(now)
                    sm.changed = True
        ended = []
        for sm in self.sms:
            if sm.next_ps > now:
                continue
            for cohort in [cohort for cohort in sm.cohorts() if cohort[0].end_ps <= now]:
                grid = cohort[0].grid
                ended.append(Residency(sm.number, grid, len(cohort), cohort[0].start_ps))
                for block in cohort:
                    sm.remove(block)
                    if grid.tiling is not None:
                        grid.tiling.end(block.number)
                    self._dispatch_to(sm, now)
        return ended
