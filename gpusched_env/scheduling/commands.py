"""What a scheduler may tell a device. Illegal commands are refused and change nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

PreemptionMode = Literal["drain", "save", "reset"]
"""``drain``: hand out no further blocks, running ones finish; ``save``: running blocks are written to
memory and continue later; ``reset``: running blocks are killed and the kernel starts over
(idempotent kernels only)."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A contiguous range of SMs in placement order, wrapping around at the end."""

    first: int
    """First SM, rank in placement order."""
    sms: int
    """Number of SMs (>= 1)."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Hand a pending kernel to its tenant's stream.

    A kernel that was preempted continues (or restarts, after a reset) when it is launched again.
    """

    kernel: int
    """Launch id: ``view.pending.id``."""
    priority: int = 0
    """Stream priority, CUDA's convention: 0 is the default, lower is more urgent."""
    partition: Partition | None = None
    """SMs that may hold its blocks; ``None``: its tenant's partition (by default the whole GPU)."""


@dataclass(frozen=True, slots=True)
class Preempt:
    """Take a running kernel off the GPU, or off some SMs only.

    The whole kernel becomes pending again, and goes on when it is launched again. At one instant that can be done
    once to a tenant: where nothing takes time, launching and preempting could otherwise go on for ever.

    With a ``partition`` (mode ``save`` only), those of its blocks that are resident there when the command takes
    effect stop, and hold their SMs while their registers and shared memory are written out; the kernel's other
    blocks go on, and it stays launched. Then the room is free, and the saved blocks are read back, which takes as
    long again; until that is done the kernel hands out no blocks. After that it is dispatched like any other
    kernel, the saved blocks before those that never ran: what waits at a more urgent stream priority gets the room
    first. It can be preempted again as soon as the save is over. Where no block of it is resident nothing happens.
    Gilman and Walls (Performance 2021) propose this as fine-grained preemption.
    """

    kernel: int
    """Launch id: ``view.running.id``."""
    mode: PreemptionMode
    partition: Partition | None = None
    """SMs whose blocks of the kernel are saved; ``None``: all of the kernel."""


@dataclass(frozen=True, slots=True)
class SetPartition:
    """Confine the kernels that a tenant launches from now on to some SMs; once at one instant."""

    tenant: int
    """Row of ``view.tenants``."""
    partition: Partition | None
    """``None``: the whole GPU."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing until the next event, or until ``until_us`` (simulated time) at the latest."""

    until_us: float = math.inf


Command = Launch | Preempt | SetPartition | Wait

WAIT = Wait()
