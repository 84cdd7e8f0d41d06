"""Preemptive-resume priority: an urgent kernel saves less urgent ones to memory, which go on after it.

The fine-grained preemption that Gilman and Walls propose (*Characterizing Concurrency Mechanisms for NVIDIA
GPUs under Deep Learning Workloads*, Performance 2021; their observations O7 to O10), which no driver offers.
Saving costs the time to write the resident blocks' registers and shared memory, restoring the same again.
One of the authors' ways to hide the cost is to keep the room open between kernels that follow each other
closely, rather than let best-effort blocks have it for a moment.

The authors save as many blocks as the urgent kernel lacks room for. So do we, by whole SMs (:mod:`.room`): nothing
where the SMs that are idle have room for it, else all less urgent blocks on as many SMs as it lacks. Drivers preempt
whole kernels instead: then all blocks of the less urgent ones go. In both cases they come back as soon as the urgent
kernel has its room, into what it leaves.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gpusched_env.baselines.evict import evict, may_start_us
from gpusched_env.baselines.pending import ID, TENANT, launchable_rows
from gpusched_env.baselines.priority_streams import stream_priorities
from gpusched_env.baselines.room import RoomMaker
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command, Launch, PreemptionMode, Wait
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn, View

P, R, T = PendingColumn, RunningColumn, TenantColumn


class PreemptivePriority:
    """Fine-grained preemption: urgent kernels save the running kernels of less urgent tenants, which resume later."""

    commands = ("preempt",)

    def __init__(
        self, mode: PreemptionMode = "save", keep_open_us: float = 0.0, depth: int = 16, fine: bool = True
    ) -> None:
        """``mode``: what happens to running kernels: ``save``, ``drain`` at the next block boundary, or ``reset``
        (kernels that are not idempotent are drained). ``keep_open_us``: 0, less urgent kernels go on in the room that
        urgent ones leave, and between them; above, only where a request's last kernel ended that long ago; ``inf``:
        only between requests. ``depth``: kernels that a tenant has in its stream at most (>= 1). ``fine``: save
        only the blocks on as many SMs as an urgent kernel lacks; ``False``, or with another mode, or where room is
        kept open (which blocks left on the GPU would fill): whole kernels.

        Raises:
            InputError: a value is out of range.
        """
        if mode not in ("save", "drain", "reset") or not keep_open_us >= 0.0 or depth < 1:
            given = f"mode {mode!r}, keep_open_us {keep_open_us}, depth {depth}"
            raise InputError(f"preemptive-priority: {given}; mode is save, drain or reset, the others >= 0 and >= 1")
        self._mode: PreemptionMode = mode
        self._keep_open_us, self._depth = keep_open_us, depth
        self._fine = fine and mode == "save" and keep_open_us == 0.0

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Give each tenant a stream priority."""
        self._knowledge = knowledge
        urgencies = [tenant.priority for tenant in knowledge.tenants]
        self._priorities = stream_priorities(urgencies, knowledge.gpu.priorities)
        self._room = RoomMaker(knowledge)

    def decide(self, view: View) -> Command:
        """Launch the most urgent kernel whose turn it is; make room for launched ones that lack it."""
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
