"""One launch of a kernel, or one copy, on its way from the host to its completion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from simpy.events import Event

from gpusched_env.devices.reference.phases import Timer
from gpusched_env.scenarios.problem import HostOp
from gpusched_env.scheduling.commands import Partition

if TYPE_CHECKING:
    from gpusched_env.devices.reference.host import Job


class Launch:
    """A kernel launch or a copy of a job. Ids count up in order of issue."""

    on_device = False
    """Whether it is in a hardware queue or running."""
    launched_us = math.inf
    arrives_us = math.inf
    """When it reaches the device."""
    started_us = math.inf
    priority = 0
    partition: Partition | None = None
    saved = 0
    saved_left = 1.0
    slot = -1
    """Its slot among the resident grids; -1: none."""
    preempting = False
    preemptions = 0
    restore_us = 0.0
    """Time to read saved block state back when it is launched again."""
    readback_us = -math.inf
    """When the blocks that were saved while it stays launched are (or were) read back."""
    readback: Timer | None = None
    """The timer to that moment."""
    preemption: Timer | None = None
    """The step of its preemption that is under way."""
    done: Event
    """Fires when it has finished; set when it reaches the head of its stream."""

    def __init__(self, id_: int, op: HostOp, job: Job, tenant: int, issued_us: float, blocks: int) -> None:
        self.id = id_
        self.op = op
        self.job = job
        self.tenant = tenant
        self.issued_us = issued_us
        self.blocks = blocks
        """Blocks still to run when it is (re)launched."""

    @property
    def running(self) -> bool:
        """Whether it has started and is among the resident grids."""
        return self.slot >= 0 and self.started_us < math.inf

    def elapsed_us(self, now: float) -> float:
        """Time since its first block started; 0 before."""
        return now - self.started_us if self.started_us < math.inf else 0.0
