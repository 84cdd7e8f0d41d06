"""The SMs of one context: a Python handle on the compiled block-level simulation."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.reference import blocks
from gpusched_env.devices.reference.state import GRID_DTYPE, ROW_DTYPE, SM_DTYPE, STATE_DTYPE
from gpusched_env.hardware.placement import sm_order
from gpusched_env.hardware.records import gpu_record
from gpusched_env.hardware.specs import GpuSpec


class SmArray:
    """All SMs of a GPU with the grids that are queued for them and resident on them.

    Time moves only in :meth:`step`. Grids live in slots; :meth:`add` gives one, :meth:`remove` frees it.
    """

    def __init__(self, gpu: GpuSpec, *, each_wave: bool = False) -> None:
        """``each_wave``: make every wave an event of its own instead of jumping over steady states."""
        slots = gpu.resident_grids
        self._gpu = gpu_record(gpu)[0]
        self._order = sm_order(gpu)
        self._sms = np.zeros(gpu.sms, SM_DTYPE)
        self._sms["throttle"] = 1.0
        self._rows = np.zeros((gpu.sms, gpu.limits.blocks), ROW_DTYPE)
        self._grids = np.zeros(slots, GRID_DTYPE)
        self._queue = np.zeros(slots, np.int64)
        self._state = np.zeros(1, STATE_DTYPE)
        self._state["next_us"] = math.inf
        self._finished = np.zeros(slots, np.int64)
        self._dispatched = np.zeros(slots, np.int64)
        self._started = np.zeros(slots, np.int64)
        self._ended = np.zeros((gpu.sms * gpu.limits.blocks, 4), np.float64)
        self._free = list(range(slots - 1, -1, -1))
        self._changed = False
        self._jumping = not each_wave
        self._orders = 0
        self.grids = 0
        """Grids queued or resident."""
        self.next_us = math.inf
        """Time of the next block end under the present residency; ``inf``: none."""
        self.started: list[int] = []
        self.dispatched: list[int] = []
        self.finished: list[int] = []
        """Slots whose first block started, whose last block was handed out, whose blocks have all ended
        (or been drained), during the last step."""

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
        grid = self._grids[slot]
        grid["block"] = block[0]
        demands = grid["block"]
        for field in ("latency_us", "issue_us", "dram_bytes"):
            demands[field] *= scale
        grid["waiting"] = waiting
        grid["resident"] = 0
        grid["saved"] = saved
        grid["saved_left"] = saved_left
        grid["priority"] = priority
        grid["first"], grid["sms"] = partition
        grid["queued"] = 1
        grid["frozen"] = 0
        grid["started"] = 0
        length = int(self._state[0]["queue"])
        position = length
        while position > 0 and self._grids[self._queue[position - 1]]["priority"] > priority:
            self._queue[position] = self._queue[position - 1]
            position -= 1
        self._queue[position] = slot
        self._state[0]["queue"] = length + 1
        self._changed = True
        self.grids += 1
        return slot

    def remove(self, slot: int) -> None:
        """Free the slot of a grid that has neither queued nor resident blocks."""
        self._free.append(slot)
        self.grids -= 1

    def step(self, now: float) -> None:
        """Advance to ``now`` (at most :attr:`next_us`) and dispatch; fills the lists of what happened."""
        blocks.step(
            now,
            self._changed,
            self._jumping,
            self._gpu,
            self._order,
            self._sms,
            self._rows,
            self._grids,
            self._queue,
            self._state[0],
            self._finished,
            self._dispatched,
            self._started,
            self._ended,
        )
        self._changed = False
        state = self._state[0]
        self.next_us = float(state["next_us"])
        self.finished = self._finished[: state["finished"]].tolist()
        self.dispatched = self._dispatched[: state["dispatched"]].tolist()
        self.started = self._started[: state["started"]].tolist()

    def stay(self, now: float) -> None:
        """Let time pass to ``now`` without progress (the context was switched out)."""
        state = self._state[0]
        if state["next_us"] < math.inf:
            state["next_us"] += now - state["now"]
        state["now"] = now
        self.next_us = float(state["next_us"])

    def ended_rows(self) -> NDArray[np.float64]:
        """Residencies that ended in the last step: columns SM, slot, blocks, start (us)."""
        return self._ended[: self._state[0]["ended_rows"]]

    def withdraw(self, slot: int) -> bool:
        """Hand out no further blocks of a grid (at the present time); whether it was still queued."""
        length = int(self._state[0]["queue"])
        queue = self._queue[:length].tolist()
        if slot not in queue:
            return False
        blocks.progress(self._state[0]["now"], self._gpu, self._sms, self._rows, self._grids, self._state[0])
        queue.remove(slot)
        self._queue[: length - 1] = queue
        self._state[0]["queue"] = length - 1
        self._grids[slot]["queued"] = 0
        self._changed = True
        return True

    def freeze(self, slot: int) -> None:
        """Stop the progress of a grid's resident blocks; they keep what they hold."""
        self._grids[slot]["frozen"] = 1
        self._sms["dirty"] = 1
        self._changed = True

    def evict(self, slot: int) -> tuple[int, float]:
        """Take a grid's resident blocks off the SMs: their number and remaining work, in blocks."""
        self._changed = True
        count, work = blocks.evict(slot, self._gpu, self._sms, self._rows, self._grids, self._state[0])
        return int(count), float(work)

    def waiting(self, slot: int, now: float) -> int:
        """Blocks of a grid not handed out at ``now`` (at most :attr:`next_us`)."""
        return int(blocks.waiting_blocks(slot, now, self._gpu, self._sms, self._rows, self._grids, self._state[0]))

    def saved(self, slot: int) -> tuple[int, float]:
        """How many waiting blocks continue from a save, and with how much of their work left."""
        grid = self._grids[slot]
        return int(grid["saved"]), float(grid["saved_left"])

    def resident(self, slot: int) -> int:
        """Blocks of a grid on SMs."""
        return int(self._grids[slot]["resident"])

    @property
    def busy_sms(self) -> int:
        return int(self._state[0]["busy_sms"])

    @property
    def traffic(self) -> float:
        """DRAM traffic, bytes/us."""
        return float(self._state[0]["traffic"])

    @property
    def resident_threads(self) -> int:
        return int(self._state[0]["resident_threads"])
