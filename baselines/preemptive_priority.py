"""Preemptive-resume priority: an urgent kernel saves less urgent ones to memory, which go on after it.

The fine-grained preemption that Gilman and Walls propose (*Characterizing Concurrency Mechanisms for NVIDIA
GPUs under Deep Learning Workloads*, Performance 2021; their observations O7 to O10), which no driver offers.
Saving costs the time to write the resident blocks' registers and shared memory, restoring the same again.

================================= ==================== =================================================================
As published                      Where                Here
================================= ==================== =================================================================
As many blocks are saved as the   O7                   By whole SMs (:mod:`.room`): nothing where idle SMs have room for
urgent kernel lacks room for                           it, else all less urgent blocks on as many SMs as it lacks: those
                                                       that it would use on an empty GPU, or (``spread=False``) only so
                                                       many as hold its blocks. They come back as soon as it has its
                                                       room, into what it leaves. With ``fine=False`` whole kernels, as
                                                       drivers do
Room may be kept open between     O8                   In time (``keep_open_us``): less urgent kernels stay off the GPU
kernels that follow each other                         between close kernels of a request. In space (``reserved``): they
closely, rather than given to                          never get some SMs, the first in placement order, so that small
best-effort blocks for a moment                        urgent kernels save nothing. Neither is quantified in the paper
Blocks may be drained, or killed, O9                   ``mode``. Killing needs idempotent kernels; others are drained
instead of saved
================================= ==================== =================================================================

Defaults are the plain mechanism: blocks saved one SM at a time, and no room kept.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gpusched_env.baselines.evict import evict, may_start_us
from gpusched_env.baselines.pending import ID, TENANT, launchable_rows
from gpusched_env.baselines.priority_streams import stream_priorities
from gpusched_env.baselines.ranges import Choice, Range
from gpusched_env.baselines.room import RoomMaker
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Partition, PreemptionMode, SetPartition, Wait
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn, View

P, R, T = PendingColumn, RunningColumn, TenantColumn


class PreemptivePriority:
    """Fine-grained preemption: urgent kernels save the running kernels of less urgent tenants, which resume later."""

    reads: Reads = ("priorities", "requests", "shapes", "completions", "progress")
    set_up = SetUp(commands=("preempt", "partition"))
    ranges: ClassVar = {
        "mode": Choice(("save", "drain", "reset")),
        "keep_open_us": Range(0.0, 2000.0),
        "depth": Range(1, 64, log=True),
        "fine": Choice((True, False)),
        "spread": Choice((True, False)),
        "reserved": Range(0.0, 0.75),
    }

    def __init__(
        self,
        mode: PreemptionMode = "save",
        keep_open_us: float = 0.0,
        depth: int = 16,
        fine: bool = True,
        reserved: float = 0.0,
        spread: bool = True,
    ) -> None:
        """``mode``: what happens to running kernels: ``save``, ``drain`` at the next block boundary, or ``reset``
        (kernels that are not idempotent are drained). ``keep_open_us``: 0, less urgent kernels go on in the room that
        urgent ones leave, and between them; above, only where a request's last kernel ended that long ago; ``inf``:
        only between requests. ``depth``: kernels that a tenant has in its stream at most (>= 1). ``fine``: save
        only the blocks on as many SMs as an urgent kernel lacks; ``False``, or with another mode, or where room is
        kept open in time (which blocks left on the GPU would fill): whole kernels. ``reserved``: share of the SMs, in
        [0, 1), that only the most urgent tenants use, who may use the others as well; rounded to whole SMs, of which
        at least one is left to the others. ``spread``: an urgent kernel gets as many SMs as it would use on an empty
        GPU, a block each; ``False``: as few as hold its blocks, which saves less and slows it.

        Raises:
            InputError: a value is out of range.
        """
        if mode not in ("save", "drain", "reset") or not keep_open_us >= 0.0 or depth < 1 or not 0.0 <= reserved < 1.0:
            given = f"mode {mode!r}, keep_open_us {keep_open_us}, depth {depth}, reserved {reserved}"
            right = "mode is save, drain or reset, the others >= 0, >= 1, and a share >= 0 and < 1"
            raise InputError(f"preemptive-priority: {given}; {right}")
        self._mode: PreemptionMode = mode
        self._reserved, self._spread = reserved, spread
        if not reserved:
            # A partition can always be set: a scheduler that may set one is asked more often.
            self.commands = ("preempt",)
        self._keep_open_us, self._depth = keep_open_us, depth
        self._fine = fine and mode == "save" and keep_open_us == 0.0

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Give each tenant a stream priority, and the less urgent ones their SMs."""
        self._knowledge = knowledge
        urgencies = [tenant.priority for tenant in knowledge.tenants]
        self._priorities = stream_priorities(urgencies, knowledge.gpu.priorities)
        sms = knowledge.gpu.sms
        reserved = min(round(self._reserved * sms), sms - 1)
        self._room = RoomMaker(knowledge, self._spread, reserved)
        others = [tenant for tenant, urgency in enumerate(urgencies) if urgency > min(urgencies)] if reserved else []
        self._confine = [SetPartition(tenant, Partition(reserved, sms - reserved)) for tenant in others]

    def decide(self, view: View) -> Command:
        """Launch the most urgent kernel whose turn it is; make room for launched ones that lack it."""
        if self._confine:
            return self._confine.pop()
        table = view.pending.array
        free_us = math.inf
        for row in sorted(launchable_rows(view), key=lambda row: (table[row, P.PRIORITY], table[row, ID])):
            tenant = int(table[row, TENANT])
            # What was launched behind a preempted kernel waits for it: it always comes back.
            if view.tenants.array[tenant, T.KERNELS_LAUNCHED] >= self._depth and not table[row, P.PREEMPTED]:
                continue
            free_us = self._free_us(view, float(table[row, P.PRIORITY]))
            if free_us <= view.time_us:
                return Launch(int(table[row, ID]), self._priorities[tenant])
            break
        if self._fine:
            room = self._room.make(view, self._next_in_streams(view))
            return Wait(min(room.until_us, free_us)) if isinstance(room, Wait) else room
        urgency = self._most_urgent_without_room(view)
        victims = np.flatnonzero(view.running.array[:, R.PRIORITY] > urgency).tolist()
        eviction = evict(view, victims, self._mode, self._knowledge.gpu)
        return eviction or (Wait(free_us) if free_us < math.inf else WAIT)

    def _free_us(self, view: View, urgency: float) -> float:
        """When a kernel of this urgency may go: not before more urgent ones have their room; ``inf``: at some event."""
        if (view.pending.array[:, P.PRIORITY] < urgency).any():
            return math.inf
        free_us = 0.0
        for kernel in self._next_in_streams(view):
            if kernel[R.PRIORITY] < urgency:
                if self._keep_open_us > 0.0:
                    return math.inf
                if kernel[R.BLOCKS_WAITING]:
                    free_us = max(free_us, may_start_us(view, kernel, self._knowledge.gpu))
        for tenant in view.tenants.array[view.tenants.array[:, T.PRIORITY] < urgency]:
            if tenant[T.JOBS_WAITING]:
                free_us = max(free_us, float(tenant[T.LAST_END_US]) + self._keep_open_us)
        return free_us

    def _most_urgent_without_room(self, view: View) -> float:
        """Urgency of the most urgent kernel that is next in its stream and does not fit on idle SMs."""
        most = math.inf
        for kernel in self._next_in_streams(view):
            sms = self._knowledge.kernels[int(kernel[R.IDENTITY])].sms
            if kernel[R.BLOCKS_WAITING] and sms > view.sms - view.busy_sms:
                most = min(most, float(kernel[R.PRIORITY]))
        return most

    @staticmethod
    def _next_in_streams(view: View) -> list[NDArray[np.float64]]:
        """The first launched kernel of each tenant."""
        first: dict[float, NDArray[np.float64]] = {}
        for kernel in view.running.array:
            first.setdefault(kernel[R.TENANT], kernel)
        return list(first.values())
