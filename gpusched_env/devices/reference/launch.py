"""One launch of a kernel, or one copy, on its way from the host to its completion."""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING

from simpy.events import Event

from gpusched_env.scenarios.problem import HostOp
from gpusched_env.scheduling.commands import Partition

if TYPE_CHECKING:
    from gpusched_env.devices.reference.host import Job


class Stage(enum.IntEnum):
    """Where a launch is."""

    PENDING = 0
    """Issued by the host; waits for the scheduler."""
    LAUNCHED = 1
    """Handed to its stream."""
    ON_DEVICE = 2
    """In a hardware queue or running."""
    FINISHED = 3


class Launch:
    """A kernel launch or a copy of a job. Ids count up in order of issue."""

    __slots__ = (
        "id",
        "op",
        "job",
        "tenant",
        "stage",
        "issued_us",
        "launched_us",
        "arrives_us",
        "started_us",
        "priority",
        "partition",
        "blocks",
        "saved",
        "saved_left",
        "slot",
        "preempting",
        "preemptions",
        "restore_us",
        "done",
    )

    def __init__(self, id_: int, op: HostOp, job: Job, tenant: int, issued_us: float, blocks: int) -> None:
        self.id = id_
        self.op = op
        self.job = job
        self.tenant = tenant
        self.stage = Stage.PENDING
        self.issued_us = issued_us
        self.launched_us = math.inf
        self.arrives_us = math.inf
        self.started_us = math.inf
        self.priority = 0
        self.partition: Partition | None = None
        self.blocks = blocks
        """Blocks still to run when it is (re)launched."""
        self.saved = 0
        self.saved_left = 1.0
        self.slot = -1
        self.preempting = False
        self.preemptions = 0
        self.restore_us = 0.0
        """Time to read saved block state back when it is launched again."""
        self.done: Event
        """Fires when it has finished; set when it reaches the head of its stream."""
