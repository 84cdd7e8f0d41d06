"""The SMs of one context: a Python handle on the compiled block-level simulation."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.reference import blocks, state
from gpusched_env.hardware.placement import sm_order
from gpusched_env.hardware.records import gpu_record
from gpusched_env.hardware.specs import GpuSpec

NONE: Sequence[int] = ()


class SmArray:
    """All SMs of a GPU with the grids that are queued for them and resident on them.

    Time moves only in :meth:`step`. Grids live in slots; :meth:`add` gives one, :meth:`remove` frees it.
    The arrays are laid out for the compiled loops (:mod:`~gpusched_env.devices.reference.state`); single
    numbers are read and written through memory views, several times as fast as through NumPy.
    """

    def __init__(self, gpu: GpuSpec, *, each_wave: bool = False) -> None:
        """``each_wave``: make every wave an event of its own instead of jumping over steady states."""
        record = gpu_record(gpu)[0]
        rows, slots = gpu.limits.blocks, gpu.resident_grids
        self._order = sm_order(gpu)
        self._limits = np.array([record[name] for name in ("threads", "warps", "blocks", "registers", "shared_bytes")])
        self._sms = np.zeros((state.SM_FIELDS, gpu.sms), np.int64)
        self._memory = np.ones((state.MEMORY_FIELDS, gpu.sms))
        self._memory[state.DEMAND] = 0.0
        self._serial = 0
        self._rows = np.zeros((state.ROW_FIELDS, rows, gpu.sms))
        self._rows[state.LEFT] = 1.0
        self._held = np.zeros((state.HELD_FIELDS, rows, gpu.sms), np.int64)
        self._grids = np.zeros((slots, state.GRID_FIELDS), np.int64)
        self._work = np.zeros((slots, state.WORK_FIELDS))
        self._lists = np.zeros((state.LISTS, slots), np.int64)
        self._counts = np.zeros(state.COUNTS, np.int64)
        self._clock = np.array([0.0, math.inf, 0.0])
        self._ended = np.zeros((gpu.sms * rows, 4))
        physics = ("sub_partitions", "dram_bytes_per_us", "dram_norm", "issue", "oldest_first", "light_wait")
        self._arrays = (
            self._limits, np.array([record[name] for name in physics]), self._sms, self._memory, self._rows, self._held,
            self._grids, self._work, self._lists, self._counts, self._clock, self._ended,
        )  # fmt: skip
        self._step = functools.partial(blocks.step, *self._arrays)
        self._jumping = not each_wave
        self._grid = self._grids.data
        self._count = self._counts.data
        self._queue, self._started, self._dispatched, self._finished = (row.data for row in self._lists)
        self._free = list(range(slots - 1, -1, -1))
        self._changed = False
        self.grids = 0
        """Grids queued or resident."""
        self.next_us = math.inf
        """Time of the next block end under the present residency; ``inf``: none."""
        self.busy_sms = 0
        """SMs with a resident block, after the last step."""
        self.traffic = 0.0
        """DRAM traffic, bytes/us, after the last step."""
        self.started = NONE
        self.dispatched = NONE
        self.finished = NONE
        """Slots whose first block started, whose last block was handed out, whose blocks have all ended
        (or been drained), during the last step."""

    @property
    def now_us(self) -> float:
        """Time up to which everything is simulated."""
        return float(self._clock[state.NOW])

    @property
    def full(self) -> bool:
        """Whether no further grid can be resident."""
        return not self._free

    def add(
        self,
        block: NDArray[np.void],
        scale: float,
        waiting: int,
        priority: int,
        partition: tuple[int, int],
        saved: int = 0,
        saved_left: float = 1.0,
    ) -> int:
        """Queue a grid behind those of its priority; it starts in the next step.

        Args:
            block: what one block needs (:data:`BLOCK_DTYPE`, shape ``(1,)``).
            scale: actual over profiled duration of this launch.
            waiting: blocks to run.
            priority: lower is more urgent.
            partition: first SM rank and number of SMs that may hold its blocks.
            saved: how many of ``waiting`` continue with ``saved_left`` of their work.

        Returns:
            its slot.
        """
        slot = self._free.pop()
        threads, warps, registers, shared, carveout, latency_us, rho, wait, dram_bytes, spread = block.item()
        first, sms = partition
        self._grids[slot] = (
            threads, warps, 1, registers, shared, carveout,
            waiting, 0, saved, priority, first, sms, state.IN_QUEUE, 0, self._serial,
        )  # fmt: skip
        self._serial += 1
        self._work[slot] = (
            latency_us * scale, rho, math.log1p(-rho), wait, dram_bytes * scale, spread, saved_left,
        )  # fmt: skip
        self.enqueue(slot)
        self.grids += 1
        return slot

    def enqueue(self, slot: int) -> None:
        """Let a grid hand out blocks: the queue is in order of priority, then of arrival."""
        queue, grid = self._queue, self._grid
        priority, serial = grid[slot, state.PRIORITY], grid[slot, state.SERIAL]
        position = self._count[state.QUEUE]
        self._count[state.QUEUE] = position + 1
        while position > 0:
            before = queue[position - 1]
            if (grid[before, state.PRIORITY], grid[before, state.SERIAL]) < (priority, serial):
                break
            queue[position] = before
            position -= 1
        queue[position] = slot
        grid[slot, state.QUEUED] = state.IN_QUEUE
        self._changed = True

    def remove(self, slot: int) -> None:
        """Free the slot of a grid that has neither queued nor resident blocks."""
        self._free.append(slot)
        self.grids -= 1

    @property
    def ahead(self) -> bool:
        """Whether waves that have not begun are accounted for already (see :meth:`catch_up`)."""
        return bool(self._count[state.AHEAD])

    def catch_up(self, now: float) -> None:
        """:meth:`step`, without jumping on.

        Needed before :meth:`add` where :attr:`ahead`: blocks that end at this very moment leave, and are
        replaced, before a grid arrives.
        """
        jumping, self._jumping = self._jumping, False
        self.step(now)
        self._jumping = jumping

    def step(self, now: float) -> None:
        """Advance to ``now`` (at most :attr:`next_us`) and dispatch; fills the lists of what happened."""
        self.next_us, self.traffic, self.busy_sms, started, dispatched, finished = self._step(
            self._jumping, self._changed, now
        )
        self._changed = False
        self.started = self._started[:started].tolist() if started else NONE
        self.dispatched = self._dispatched[:dispatched].tolist() if dispatched else NONE
        self.finished = self._finished[:finished].tolist() if finished else NONE

    def stay(self, now: float) -> None:
        """Let time pass to ``now`` without progress (the context was switched out)."""
        self._clock[state.NEXT] += now - self._clock[state.NOW]
        self._clock[state.NOW] = now
        self.next_us = float(self._clock[state.NEXT])

    def ended_rows(self) -> NDArray[np.float64]:
        """Residencies that ended in the last step: columns SM, slot, blocks, start (us)."""
        ended = self._ended[: self._count[state.ENDED]].copy()
        ended[:, 0] = self._order[ended[:, 0].astype(np.int64)]
        return ended

    def withdraw(self, slot: int) -> None:
        """Hand out no further blocks of a grid (at the present time)."""
        self._leave_queue(slot, state.NOT_QUEUED)

    def suspend(self, slot: int) -> None:
        """Hand out no blocks of a grid until it is queued again."""
        self._leave_queue(slot, state.RETURNS)

    def _leave_queue(self, slot: int, queued: int) -> None:
        self._grid[slot, state.QUEUED] = queued
        length = self._count[state.QUEUE]
        queue = self._queue[:length].tolist()
        if slot not in queue:
            return
        self._give_waves_back()
        queue.remove(slot)
        self._lists[state.QUEUE, : length - 1] = queue
        self._count[state.QUEUE] = length - 1
        self._changed = True

    def _give_waves_back(self) -> None:
        now = float(self._clock[state.NOW])
        blocks.progress(now, self._sms, self._rows, self._held, self._grids, self._counts, self._clock)

    def stop(self, slot: int, first: int, sms: int) -> int:
        """Stop the progress of a grid's blocks that are resident on ``sms`` SMs from rank ``first`` on.

        They keep what they hold.

        Returns:
            their number.
        """
        self._give_waves_back()
        self._changed = True
        return int(blocks.stop(slot, first, sms, self._sms, self._rows, self._held))

    def evict(self, slot: int) -> int:
        """Take a grid's stopped blocks off the SMs: they wait again, to go on where they were; their number."""
        self._changed = True
        return int(blocks.evict(slot, self._sms, self._rows, self._held, self._grids, self._work, self._counts))

    def waiting(self, slot: int, now: float) -> int:
        """Blocks of a grid not handed out at ``now`` (at most :attr:`next_us`)."""
        if not self._count[state.AHEAD]:
            return self._grid[slot, state.WAITING]
        return int(blocks.waiting_blocks(slot, now, self._sms, self._rows, self._held, self._grids, self._clock))

    def saved(self, slot: int) -> tuple[int, float]:
        """How many waiting blocks continue from a save, and with how much of their work left."""
        return self._grid[slot, state.SAVED], float(self._work[slot, state.SAVED_LEFT])

    def resident(self, slot: int) -> int:
        """Blocks of a grid on SMs."""
        return self._grid[slot, state.RESIDENT]

    @property
    def resident_threads(self) -> int:
        """Threads of all resident blocks."""
        return self._count[state.RESIDENT_THREADS]

    def usage(self) -> dict[str, NDArray[np.int64]]:
        """By resource, what is in use on every SM, in order of SM ids (for inspection)."""
        fields = {
            "threads": state.THREADS, "warps": state.WARPS, "blocks": state.BLOCKS, "registers": state.REGISTERS,
            "shared": state.SHARED, "carveout": state.CARVEOUT,
        }  # fmt: skip
        by_sm = np.argsort(self._order)
        return {name: self._sms[field][by_sm] for name, field in fields.items()}

    def residents(self) -> list[tuple[int, int, int, float, float]]:
        """All rows of equal blocks: SM, slot, blocks, share of work left, rate (1/us) (for inspection)."""
        return [
            (
                int(self._order[rank]),
                int(self._held[state.GRID, r, rank]),
                int(self._held[state.COUNT, r, rank]),
                float(self._rows[state.LEFT, r, rank]),
                float(self._rows[state.RATE, r, rank]),
            )
            for rank in range(len(self._order))
            for r in range(self._sms[state.ROWS, rank])
        ]
