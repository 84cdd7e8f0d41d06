"""Handing a launch to a stream."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands.command import AnyCommand, OperationOf
from gpusched_env.scheduling.commands.partition import Partition, check_partition, partition_of, sms_of
from gpusched_env.scheduling.commands.world import any_launchable
from gpusched_env.scheduling.showing import Shown
from gpusched_env.scheduling.view import PendingColumn
from gpusched_env.workload.memory import conflict

PRIORITY_OF_STREAM: Final = 1
"""The number ``priority`` of a launch at that of its stream (stream priorities are 0 and below)."""
OWN_STREAM: Final = -1
"""The number ``stream`` of a launch into its own stream."""


@dataclass(frozen=True, slots=True)
class Launch(AnyCommand):
    """Hand a pending launch (a kernel, or a graph as a whole) to a stream.

    It starts when it has reached the device and everything that it waits for has ended: what was launched into the
    same stream before it, what its program's order and events put before it. A kernel that was preempted goes back
    to its place (and continues, or restarts after a reset) when it is launched again.

    A stream has a sub-stream for each priority, as CUDA's streams have fixed ones: a launch at another priority than
    the one before it waits for that by an event, which takes longer. A stream of the scheduler's own may have a mask of
    SMs (``SetUp.streams``). The GPU is told once of a partition: a launch with one that is neither its stream's nor,
    where that has none, its tenant's keeps the host busy as :class:`SetPartition` does.

    Legal: ``view.pending.launchable`` is 1: nothing that it waits for is pending itself. The priority is one
    that the GPU has. A stream is its own or one of the scheduler's; a preempted kernel goes back to its own. A
    partition is its tenant's where the scenario says ``restart_us``.

    Cost: ``launch_latency_us`` from the decision to the start on an idle stream. At another priority than the
    launch before it in its stream, and in another stream than what it has to wait for, ``event_latency_us`` after that
    one ended. With a partition of its own, ``partition_change_us`` of host time.
    """

    NAME: ClassVar = "launch"
    VERB: ClassVar = "launch"
    NUMBERS: ClassVar = ("launch", "priority", "stream", "first_sm", "sms")
    anywhere: ClassVar = staticmethod(any_launchable)

    launch: int
    """Launch id: ``view.pending.id``."""
    priority: int | None = None
    """Stream priority, CUDA's convention: 0 is the default, lower is more urgent; ``None``: its stream's."""
    partition: Partition | None = None
    """SMs that may hold its blocks; ``None``: its stream's mask, or else its tenant's partition (by default the whole
    GPU)."""
    stream: int | None = None
    """Row of ``Knowledge.streams``: its own stream (``None``) or one of the scheduler's."""

    def numbers(self) -> tuple[int, ...]:
        priority = PRIORITY_OF_STREAM if self.priority is None else self.priority
        return self.launch, priority, OWN_STREAM if self.stream is None else self.stream, *sms_of(self.partition)

    @classmethod
    def of(cls, *numbers: int) -> Launch:
        launch, priority, stream, first_sm, sms = numbers
        return cls(
            launch,
            None if priority == PRIORITY_OF_STREAM else priority,
            partition_of(first_sm, sms),
            None if stream == OWN_STREAM else stream,
        )

    def check(self, view: Shown, problem: Problem, operation_of: OperationOf) -> None:
        pending = view.pending
        # Tables have a handful of rows, where plain lists beat NumPy's temporaries.
        ids = pending.array[:, PendingColumn.ID].tolist()
        row = ids.index(self.launch) if self.launch in ids else None
        if row is None or pending.array[row, PendingColumn.LAUNCHABLE] != 1.0:
            legal = pending.id[pending.launchable == 1.0].astype(int).tolist()
            why = _why_not(self.launch, view, problem, operation_of)
            raise IllegalCommand(f"{self}: {why}; launchable now: {legal[:10]}")
        lowest = 1 - problem.gpu.priorities
        if self.priority is not None and not lowest <= self.priority <= 0:
            raise IllegalCommand(f"{self}: stream priority must be in {lowest}..0 on {problem.gpu.name}")
        if self.stream is None and self.partition is None:
            return
        row = pending.array[row]
        if self.stream is not None and problem.streams[int(row[PendingColumn.STREAM])].windowed:
            open_ = open_streams(row, view, problem)
            if self.stream not in open_:
                raise IllegalCommand(f"{self}: the streams of the scheduler's own that may take it are {open_[:10]}")
        elif self.stream is not None and self.stream != row[PendingColumn.STREAM]:
            own = [number for number, stream in enumerate(problem.streams) if stream.tenant < 0]
            if self.stream not in own:
                raise IllegalCommand(f"{self}: the streams of the scheduler's own are {own}")
            if row[PendingColumn.PREEMPTED]:
                raise IllegalCommand(
                    f"{self}: a preempted kernel goes back to its place in stream {row[PendingColumn.STREAM]:.0f}"
                )
        check_partition(self, self.partition, view.sms)
        if self.partition is not None and problem.scenario.restart_us > 0.0:
            raise IllegalCommand(f"{self}: a partition is a process's own (restart_us); give SetPartition")


def open_streams(pending: NDArray[np.float64], view: Shown, problem: Problem) -> list[int]:
    """Rows of the scheduler's own streams that may take a launch of a window, a row of ``view.pending``, which is
    launchable."""
    assert problem.window is not None
    kept = view.pending.stream[view.pending.preempted == 1.0]
    held = Counter([*view.running.stream.astype(int).tolist(), *kept.astype(int).tolist()])
    older = view.dependencies.waits_for[view.dependencies.launch == pending[PendingColumn.ID]]
    behind = set(view.running.stream[np.isin(view.running.id, older)].astype(int).tolist())
    own = [number for number, stream in enumerate(problem.streams) if stream.tenant < 0]
    return [number for number in own if held[number] < problem.window.depth and behind <= {number}]


def _why_not(launch: int, view: Shown, problem: Problem, operation_of: OperationOf) -> str:
    """Why a launch is not launchable: in a window a hazard, or no stream has room."""
    streams = view.pending.stream[view.pending.id == launch]
    if not streams.size or not problem.streams[int(streams[0])].windowed:
        return f"launch {launch} is not launchable"
    older = view.dependencies.waits_for[view.dependencies.launch == launch]
    if not older.size:
        return f"launch {launch} must wait for room in a stream of the scheduler's own"
    first = int(older[0])
    hazard = conflict(operation_of(first), operation_of(launch))
    return f"launch {launch} must wait for launch {first}: {hazard}"
