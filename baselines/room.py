"""Room for urgent kernels, by saving the blocks of less urgent ones on as many SMs as they lack."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gpusched_env.baselines.evict import SETTLED_US, reaches_us
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Partition, Preempt, Wait
from gpusched_env.scheduling.view import RunningColumn, View

R = RunningColumn
Row = NDArray[np.float64]


class RoomMaker:
    """Frees SMs for one urgent kernel at a time.

    A block goes to the SM with the most room, so the urgent kernel takes the SMs that are emptied, wherever they
    are. A view does not tell which SMs are whose. The dispatcher breaks ties in placement order, so the SMs of
    kernels at least as urgent, which were placed on emptied SMs too, are taken to be the first ones. Where that was
    wrong and the kernel still lacks room, the SMs behind are freed, once round the GPU.
    """

    def __init__(self, knowledge: Knowledge, spread: bool = True, reserved: int = 0) -> None:
        """``spread``: an SM for each waiting block, as on an empty GPU; ``False``: as many as hold them. ``reserved``:
        the first SMs in placement order on which nothing less urgent runs, so that there is nothing to free."""
        self._knowledge, self._spread, self._reserved = knowledge, spread, reserved
        self._kernel = -1
        """The kernel for which room is made; -1: none."""
        self._range = Partition(0, 1)
        """The SMs being freed."""
        self._asked: set[int] = set()
        """Kernels whose blocks there were saved."""
        self._covered = 0
        """SMs freed for the kernel, those included."""

    def make(self, view: View, kernels: Iterable[Row]) -> Preempt | Wait:
        """The next save for the sake of the most urgent kernel that lacks room, or when to look again.

        Args:
            view: the present.
            kernels: rows of ``view.running`` that are next in their streams.
        """
        looks_us = math.inf
        lacking: list[Row] = []
        least = view.running.array[:, R.PRIORITY].max(initial=-math.inf)
        for kernel in kernels:
            if kernel[R.PRIORITY] == least or not kernel[R.BLOCKS_WAITING]:
                continue
            # Only when it is there does a view tell which of its blocks do not fit beside others.
            arrived_us = reaches_us(view, kernel, self._knowledge.gpu) + SETTLED_US
            if arrived_us > view.time_us:
                looks_us = min(looks_us, arrived_us)
            elif self._lacking_sms(view, kernel) > 0:
                lacking.append(kernel)
        urgent = min(lacking, key=lambda kernel: float(kernel[R.PRIORITY]), default=None)
        save = WAIT if urgent is None else self._save(view, urgent)
        return Wait(min(save.until_us, looks_us)) if isinstance(save, Wait) else save

    def _save(self, view: View, urgent: Row) -> Preempt | Wait:
        """The next save for the sake of a kernel; ``WAIT``: others are under way, or there is nothing to free."""
        rows = view.running.array
        less_urgent = (rows[:, R.PRIORITY] > urgent[R.PRIORITY]) & (rows[:, R.BLOCKS_RESIDENT] > 0)
        # Graphs cannot be preempted.
        victims = rows[less_urgent & (rows[:, R.NODES] == 1)]
        lacking = self._lacking_sms(view, urgent)
        if int(urgent[R.ID]) != self._kernel:
            self._kernel, self._covered = int(urgent[R.ID]), 0
            self._next_range(view, max(self._held_sms(view, urgent), self._reserved), lacking)
        elif not any(row[R.PREEMPTING] or row[R.ID] not in self._asked for row in victims):
            self._next_range(view, self._range.first + self._range.sms, lacking)
        for row in victims:
            if row[R.ID] not in self._asked and not row[R.PREEMPTING]:
                # None of its blocks was on the SMs freed at this instant: the others are freed at a later one.
                if not row[R.PREEMPTIBLE]:
                    return Wait(view.time_us + SETTLED_US)
                self._asked.add(int(row[R.ID]))
                return Preempt(int(row[R.ID]), "save", self._range)
        return WAIT

    def _next_range(self, view: View, first: int, sms: int) -> None:
        """Go on with ``sms`` SMs from rank ``first`` on, as far as they have not been freed."""
        others = view.sms - self._reserved
        sms = min(sms, others - self._covered)
        if sms > 0:
            self._range = Partition(self._reserved + (first - self._reserved) % others, sms)
            self._covered += sms
            self._asked.clear()

    def _lacking_sms(self, view: View, kernel: Row) -> int:
        """SMs that a launched kernel needs for its waiting blocks beyond those that are idle."""
        return max(0, self._sms_for(kernel, R.BLOCKS_WAITING) - (view.sms - view.busy_sms))

    def _held_sms(self, view: View, urgent: Row) -> int:
        """SMs that kernels at least as urgent hold, if each was given as many as :meth:`_sms_for` says."""
        return sum(
            self._sms_for(row, R.BLOCKS_RESIDENT) for row in view.running.array if row[R.PRIORITY] <= urgent[R.PRIORITY]
        )

    def _sms_for(self, kernel: Row, blocks: R) -> int:
        """SMs for a launched kernel's waiting or resident blocks: one each, or as many as hold them."""
        known = self._knowledge.kernels[int(kernel[R.IDENTITY])]
        on_each = 1 if self._spread else known.blocks_per_sm
        return min(math.ceil(int(kernel[blocks]) / on_each), known.sms)
