"""What the device needs of a real GPU, and handing work to it so that it can be called back.

A kernel that was preempted takes back with it what waits for it, directly or not: that is held, and handed over
again, in order, when the kernel is. Copies and graphs cannot be called back; they are held until all that they wait
for has ended.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.cuda.real_time.tables import Tables
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import HostOp
from gpusched_env.workload.workload import OpKind


@dataclass(frozen=True, slots=True)
class GpuWork:
    """A kernel, copy or graph for the GPU."""

    launch: int
    """Id of the launch, unique in the episode."""
    op: HostOp
    """What it carries out (``kind``, ``identity``, ``scale``, ``bytes``, ``nodes``)."""
    stream: int
    """Row of the problem's streams."""
    priority: int
    """Priority of the stream, CUDA's convention: 0 is the default, lower is more urgent. A stream at a priority on some
    SMs is a queue: it starts its work in the order of submission."""
    sms: tuple[int, int] | None
    """First and number of the SMs that its blocks may run on; ``None``: all."""
    after: tuple[int, ...]
    """Ids of earlier work, of other queues, that must have ended before it starts."""
    blocks: int = -1
    """Blocks that a kernel has left to run after it was recalled; -1: all."""


class Report(NamedTuple):
    """Work has started or ended."""

    at_ps: int
    """When it happened, by :meth:`Gpu.now_ps`."""
    launch: int
    ended: bool
    left: int = 0
    """Blocks of a kernel that was recalled that have not run: it has ended without them."""


class Gpu(Protocol):
    """A GPU that carries work out: ``prepare``, ``start``, then the others until ``stop``; ``close`` at the end."""

    def prepare(self, problem: Problem, *, blocks: bool = False) -> None:
        """Make kernels, buffers and streams for a problem; takes seconds the first time.

        Args:
            problem: whose work comes next.
            blocks: record where and when every block of a kernel runs.

        Raises:
            InputError: the GPU cannot do what the problem needs.
        """

    def start(self) -> None:
        """Begin at time 0, with nothing on the GPU."""

    def now_ps(self) -> int:
        """Time since :meth:`start`, picoseconds."""

    def submit(self, work: GpuWork) -> None:
        """Hand work to its queue; it is on its way when this returns.

        Raises:
            GpuError: the GPU or its driver has failed.
        """

    def recall(self, launches: list[int]) -> None:
        """Let no further block of kernels begin; blocks that run finish. The problem offers ``preempt``.

        A kernel ends then, as what waits for it finds; how many blocks have not run is in its report. None of them
        begins a block because another one has ended early.

        Args:
            launches: ids in the order in which they were submitted; all that waits for the first of them is among them.

        Raises:
            GpuError: the GPU or its driver has failed.
        """

    def poll(self) -> list[Report]:
        """What has happened since the last call, in order of time; the start of some work before its end. Of kernels
        that were recalled before any of their blocks began only the end.

        Raises:
            GpuError: a kernel has failed.
        """

    def pause(self, until_ps: int) -> None:
        """Return when it is ``until_ps``, or earlier when there may be something to poll."""

    def blocks(self) -> NDArray[np.int64]:
        """Blocks that were recorded since :meth:`start`, in the order of their ends: of kernels that have ended, not of
        those in graphs. Shape ``(blocks, 4)``: SM, launch, start and end in picoseconds."""

    def stop(self) -> None:
        """End the episode: nothing is left on the GPU when this returns."""

    def close(self) -> None:
        """Give back all that the GPU was used with."""


@runtime_checkable
class DrivenGpu(Gpu, Protocol):
    """A GPU that compiled code can drive between two decisions for an interval."""

    def tables(self, problem: Problem, operations: Sequence[HostOp | None]) -> Tables:
        """What compiled code needs in an episode, before it begins (:meth:`start`).

        Args:
            problem: that was prepared.
            operations: rows of the arena's table.

        Raises:
            GpuError: the GPU or its driver.
        """

    @property
    def clock_ns(self) -> tuple[int, int]:
        """When the episode began by the host's clock, and how far the GPU's is ahead."""


class LaunchPlace(Enum):
    """Where a launch is."""

    HELD = auto()
    ON_GPU = auto()
    RECALLED = auto()
    """Still on the GPU, with no further blocks to begin: the launch was recalled."""
    AWAY = auto()
    """Away from the GPU: the launch was preempted, and is with the scheduler."""


@dataclass(slots=True)
class Order:
    """A launch that has not finished."""

    work: GpuWork
    """Work of the launch, which waits for all in ``after``, of its own queue too."""
    place: LaunchPlace = LaunchPlace.HELD
    preempted: bool = False
    """Whether the scheduler wants it back."""
    started: bool = False
    """Whether its start was told: once, though it may start again."""

    @property
    def queue(self) -> tuple[int, int, tuple[int, int] | None]:
        """Queue of the launch: its stream at a priority on some SMs."""
        return self.work.stream, self.work.priority, self.work.sms


class RecallableQueue:
    """What stands between a device and its GPU in one episode."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._orders: dict[int, Order] = {}
        """Unfinished launches by id, each behind those that it waits for."""
        self._told: list[Report] = []

    @property
    def busy(self) -> bool:
        """Whether anything is on the GPU."""
        return any(order.place in (LaunchPlace.ON_GPU, LaunchPlace.RECALLED) for order in self._orders.values())

    def submit(self, work: GpuWork) -> None:
        """Hand work over when that can be done; its ``after`` names all that it waits for.

        Raises:
            GpuError: the GPU or its driver has failed.
        """
        known = self._orders.get(work.launch)
        if known is None:
            order = self._orders[work.launch] = Order(work)
            self._try(order)
            return
        known.work, known.place = work, LaunchPlace.HELD
        self._go_on()

    def recall(self, launch: int) -> None:
        """Preempt a kernel: its end is reported with the blocks that it has left.

        Raises:
            GpuError: the GPU or its driver has failed.
        """
        order = self._orders[launch]
        if order.place is LaunchPlace.HELD:
            # It had started when a kernel before it was preempted too late.
            self._told.append(Report(self._gpu.now_ps(), launch, True, order.work.blocks))
            self._give_back(order)
            return
        order.preempted = True
        called = []
        behind: set[int] = set()
        for id_, other in self._orders.items():
            if other is order or not behind.isdisjoint(other.work.after):
                behind.add(id_)
                if other.place is LaunchPlace.ON_GPU:
                    other.place = LaunchPlace.RECALLED
                    called.append(id_)
        if called:
            self._gpu.recall(called)

    def keep(self, launches: Collection[int]) -> None:
        """Forget the launches with the scheduler that have vanished, all but these: nothing waits for them any more."""
        gone = [id_ for id_, order in self._orders.items() if order.place is LaunchPlace.AWAY and id_ not in launches]
        for id_ in gone:
            del self._orders[id_]
        if gone:
            self._go_on()

    def poll(self) -> list[Report]:
        """What there is to tell of what has happened since the last call, in order of time.

        Raises:
            GpuError: a kernel has failed.
        """
        found, self._told = self._told, []
        while True:
            reports = self._gpu.poll()
            found += [report for report in reports if self._hear(report)]
            # What is handed over now may have started already.
            if not any(report.ended for report in reports) or not self._go_on():
                return sorted(found, key=lambda report: report.at_ps)

    def _hear(self, report: Report) -> bool:
        """Note a report; returns whether the device is to be told."""
        order = self._orders[report.launch]
        if not report.ended:
            again, order.started = order.started, True
            return not again
        if report.left == 0:
            del self._orders[report.launch]
            return True
        order.work = replace(order.work, blocks=report.left)
        order.place = LaunchPlace.HELD
        if not order.preempted:
            return False
        self._give_back(order)
        return True

    def _give_back(self, order: Order) -> None:
        order.place, order.preempted, order.started = LaunchPlace.AWAY, False, False

    def _go_on(self) -> bool:
        """Hand over what is held up no more; returns whether there was any."""
        held = [order for order in self._orders.values() if order.place is LaunchPlace.HELD]
        return sum(self._try(order) for order in held) > 0

    def _try(self, order: Order) -> bool:
        """Hand work over if that can be done now."""
        before = [self._orders[id_] for id_ in order.work.after if id_ in self._orders]
        if any(other.place is not LaunchPlace.ON_GPU for other in before):
            return False
        if before and order.work.op.kind is not OpKind.KERNEL:
            return False
        after = tuple(other.work.launch for other in before if other.queue != order.queue)
        order.place = LaunchPlace.ON_GPU
        self._gpu.submit(replace(order.work, after=after))
        return True
