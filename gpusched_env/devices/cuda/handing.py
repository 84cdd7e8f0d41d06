"""Handing work to a GPU so that it can be called back: where the scenario offers preemption.

A kernel that was preempted takes back with it what waits for it, in its queue and by events, directly or not: that is
held here, and handed over again, in order, when the kernel is or when it turns out to have ended. Copies and graphs
cannot be called back; they are held until all that they wait for has ended.

What was called back before it began leaves when it is its turn in its queue, once other queues' work that it waits for
has ended or has been drained; a kernel that is launched again into that queue is behind it for so long.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum, auto

from gpusched_env.devices.cuda.gpu import Gpu, Report, Work
from gpusched_env.workload.workload import OpKind


class Place(Enum):
    """Where a launch is."""

    HELD = auto()
    ON_GPU = auto()
    RECALLED = auto()
    """Still on the GPU, with no further blocks to begin."""
    AWAY = auto()
    """With the scheduler, preempted."""


@dataclass(slots=True)
class Order:
    """A launch that has not finished."""

    work: Work
    """It waits for all in ``after``, of its own queue too."""
    place: Place = Place.HELD
    preempted: bool = False
    """Whether the scheduler wants it back."""
    started: bool = False
    """Whether that was told: once, though it may start again."""

    @property
    def queue(self) -> tuple[int, int, tuple[int, int] | None]:
        """Its stream at a priority on some SMs."""
        return self.work.stream, self.work.priority, self.work.sms


class Handing:
    """Between a device and its GPU, in one episode."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._orders: dict[int, Order] = {}
        """By id, each behind those that it waits for."""
        self._told: list[Report] = []

    @property
    def busy(self) -> bool:
        """Whether anything is on the GPU."""
        return any(order.place in (Place.ON_GPU, Place.RECALLED) for order in self._orders.values())

    def submit(self, work: Work) -> None:
        """Hand work over when that can be done; its ``after`` names all that it waits for.

        Raises:
            GpuError: the GPU or its driver has failed.
        """
        known = self._orders.get(work.launch)
        if known is None:
            order = self._orders[work.launch] = Order(work)
            self._try(order)
            return
        known.work, known.place = work, Place.HELD
        self._go_on()

    def recall(self, launch: int) -> None:
        """Preempt a kernel: its end is reported with the blocks that it has left.

        Raises:
            GpuError: the GPU or its driver has failed.
        """
        order = self._orders[launch]
        if order.place is Place.HELD:
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
                if other.place is Place.ON_GPU:
                    other.place = Place.RECALLED
                    called.append(id_)
        if called:
            self._gpu.recall(called)

    def keep(self, launches: Collection[int]) -> None:
        """Of launches that are with the scheduler only some have not vanished: nothing waits for others any more."""
        gone = [id_ for id_, order in self._orders.items() if order.place is Place.AWAY and id_ not in launches]
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
        order.place = Place.HELD
        if not order.preempted:
            return False
        self._give_back(order)
        return True

    def _give_back(self, order: Order) -> None:
        order.place, order.preempted, order.started = Place.AWAY, False, False

    def _go_on(self) -> bool:
        """Hand over what is held up no more; returns whether there was any."""
        held = [order for order in self._orders.values() if order.place is Place.HELD]
        return sum(self._try(order) for order in held) > 0

    def _try(self, order: Order) -> bool:
        """Hand work over if that can be done now."""
        before = [self._orders[id_] for id_ in order.work.after if id_ in self._orders]
        if any(other.place is not Place.ON_GPU for other in before):
            return False
        if before and order.work.op.kind is not OpKind.KERNEL:
            return False
        after = tuple(other.work.launch for other in before if other.queue != order.queue)
        order.place = Place.ON_GPU
        self._gpu.submit(replace(order.work, after=after))
        return True
