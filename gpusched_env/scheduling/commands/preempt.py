"""Taking a kernel off the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import numpy as np

from gpusched_env.compiling import procedure
from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands.command import AnyCommand, OperationOf
from gpusched_env.scheduling.commands.partition import Partition, check_partition, partition_of, sms_of
from gpusched_env.scheduling.commands.world import any_preemptible, on_gpu, preemption_of
from gpusched_env.scheduling.showing import Shown
from gpusched_env.scheduling.view import RunningColumn

PreemptionMode = Literal["drain", "save", "reset"]
"""``drain``: hand out no further blocks, running ones finish; ``save``: running blocks are written to
memory and continue later; ``reset``: running blocks are killed and the kernel starts over
(idempotent kernels only)."""
MODES: Final[tuple[PreemptionMode, ...]] = ("drain", "save", "reset")
"""Modes of preemption, by code."""


@procedure
def may_preempt(w: Any, launch: Any) -> Any:
    """Whether a launched kernel may be preempted now."""
    if not on_gpu(w, launch):
        return False
    preemption = preemption_of(w, launch)
    return preemption.preempting == 0 and preemption.preempted_ps < w.now_ps


@dataclass(frozen=True, slots=True)
class Preempt(AnyCommand):
    """Take a running kernel off the GPU, or off some SMs only.

    The whole kernel becomes pending again, and goes on when it is launched again. At one instant that can be done
    once to a kernel: where nothing takes time, launching and preempting could otherwise go on for ever.

    With a ``partition`` (mode ``save`` only), those of its blocks that are resident there when the command takes
    effect stop, and hold their SMs while their registers and shared memory are written out; the kernel's other
    blocks go on, and it stays launched. Then the room is free, and the saved blocks are read back, which takes as
    long again; until that is done the kernel hands out no blocks. After that it is dispatched like any other
    kernel, the saved blocks before those that never ran: what waits at a more urgent stream priority gets the room
    first. It can be preempted again as soon as the save is over. Where no block of it is resident nothing happens.
    Gilman and Walls (Performance 2021) propose this as fine-grained preemption.

    Graphs are units and cannot be preempted.

    Legal: ``view.running.preemptible`` is 1: it has started, is no graph, no preemption of it is under way, and
    none was commanded at this instant. ``reset`` also needs ``idempotent``, a ``partition`` the mode ``save``.

    Cost: ``drain``: ``drain_ack_us``, and the time until resident blocks end. ``save``: that request, and the
    time to write registers and shared memory of the resident blocks to DRAM; reading them back takes as long.
    ``reset``: ``reset_us``, and all that the kernel did.
    """

    NAME: ClassVar = "preempt"
    VERB: ClassVar = "preempt"
    ONCE: ClassVar = True
    NUMBERS: ClassVar = ("launch", "mode", "first_sm", "sms")
    anywhere: ClassVar = staticmethod(any_preemptible)

    launch: int
    """Launch id: ``view.running.id``."""
    mode: PreemptionMode
    """``drain``: its running blocks finish; ``save``: they are written to memory and continue later; ``reset``: they
    are killed, and it starts over."""
    partition: Partition | None = None
    """SMs whose blocks of the kernel are saved; ``None``: all of the kernel."""

    def numbers(self) -> tuple[int, ...]:
        return self.launch, MODES.index(self.mode), *sms_of(self.partition)

    @classmethod
    def of(cls, *numbers: int) -> Preempt:
        launch, mode, first_sm, sms = numbers
        return cls(launch, MODES[mode], partition_of(first_sm, sms))

    def check(self, view: Shown, problem: Problem, operation_of: OperationOf) -> None:
        rows = np.flatnonzero(view.running.id == self.launch)
        if not rows.size or not view.running.started[rows[0]]:
            raise IllegalCommand(f"{self}: launch {self.launch} is not running")
        row = view.running.array[rows[0]]
        if row[RunningColumn.PREEMPTING]:
            raise IllegalCommand(f"{self}: launch {self.launch} is being preempted already")
        if row[RunningColumn.NODES] > 1:
            raise IllegalCommand(f"{self}: launch {self.launch} is a graph, which cannot be preempted")
        if not row[RunningColumn.PREEMPTIBLE]:
            raise IllegalCommand(f"{self}: launch {self.launch} was preempted at this instant already, or has ended")
        if self.mode == "reset" and not row[RunningColumn.IDEMPOTENT]:
            raise IllegalCommand(f"{self}: launch {self.launch} is not idempotent and cannot be reset")
        if self.partition is not None and self.mode != "save":
            raise IllegalCommand(f"{self}: only mode save can be confined to a partition")
        check_partition(self, self.partition, view.sms)
