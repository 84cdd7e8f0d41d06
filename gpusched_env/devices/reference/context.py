"""What stands in front of the hardware: a context with its hardware queues and SMs, and the copy engines' queues."""

from __future__ import annotations

import itertools
import sys
from collections import deque

import simpy
from simpy.events import ProcessGenerator

from gpusched_env.devices.reference.blocks import Grid, Rates, Sm
from gpusched_env.devices.reference.dispatcher import Dispatcher
from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.streams import Streams
from gpusched_env.devices.reference.world import Alarm, Phase, World
from gpusched_env.devices.rules import l2
from gpusched_env.devices.rules.copies import ON_DEVICE, direction, engine_for
from gpusched_env.devices.rules.meter import gpu_changed
from gpusched_env.devices.rules.world import RESIDENCY, add_row, log_copy, log_kernel
from gpusched_env.hardware.clock import to_ps
from gpusched_env.hardware.occupancy import BlockNeeds
from gpusched_env.hardware.placement import sm_order
from gpusched_env.hardware.queues import held_ps
from gpusched_env.scenarios.program import ChildOp


class Context:
    """A context, whose kernels enter the hardware queue (channel) of their stream when they are ready.

    The heads of the channels are among the grids that the dispatcher sees; a grid makes room when it is fully
    dispatched. More streams than channels alias: they wait for each other (Bakita & Anderson, RTAS 2024), or the
    hardware holds some of them at a time (:mod:`gpusched_env.hardware.queues`).
    """

    def __init__(self, world: World, streams: Streams, index: int, *, active: bool) -> None:
        """``active``: it has the GPU."""
        gpu, self._kernels, self._clock = world.problem.gpu, world.problem.kernels, world.clock
        self._world, self._streams, self._index = world, streams, index
        self._alarm = Alarm(self._clock)
        self.active = active
        self._paused_ps = 0
        """When it was switched out."""
        rules = world.rules
        self.sms = [Sm(rank, int(number), rules) for rank, number in enumerate(sm_order(gpu))]
        self.dispatcher = Dispatcher(self.sms)
        self._rates = Rates(self.sms, rules)
        self._needs = [BlockNeeds.read(profile.block) for profile in self._kernels]
        self._channels: list[deque[Launch]] = [deque() for _ in range(rules.channels)]
        self._held, self._period_ps = rules.held_queues, rules.queue_period_ps
        self._places: dict[int, int] = {}
        """Places of the hardware queues that were used, in order of first use, where they take turns."""
        self._heads: deque[Launch] = deque()
        """Channel heads that wait for a free slot among the resident grids."""
        self._resident: dict[int, Launch] = {}
        self._slots = gpu.resident_grids
        self._serials = itertools.count()

    @property
    def time_ps(self) -> int:
        """Up to when its blocks have made progress."""
        return self._clock.now if self.active else self._paused_ps

    # ---- the SMs are brought to the present ----------------------------------------------------------------------

    def touch(self) -> None:
        """Something about the SMs may have changed at the present time."""
        if self.active:
            self._alarm.set(self._clock.now, Phase.SMS, self._index, self._settle)

    def set_bandwidth(self, bytes_per_us: float) -> None:
        """Cores of the CPU leave so much of the memory's bandwidth."""
        self._rates.bandwidth = bytes_per_us
        self.touch()

    def _settle(self) -> None:
        """Bring the SMs to the present; wait for the next block end."""
        now, dispatcher = self._clock.now, self.dispatcher
        for sm, grid, blocks, start_ps in dispatcher.end_blocks(now):
            if self._world.timeline.detail == "blocks":
                add_row(self._world, RESIDENCY, (sm, grid.id, blocks, start_ps, now))
        entered = True
        while entered:
            if dispatcher.changed:
                dispatcher.dispatch(now)
            self._report()
            entered = self._enter()
        self._rates.update(now)
        busy_sms = sum(1 for sm in self.sms if sm.blocks)
        gpu_changed(self._world, busy_sms, self._rates.traffic)
        self._alarm.set(min(sm.next_ps for sm in self.sms), Phase.SMS, self._index, self._settle)

    def _report(self) -> None:
        """Pass on what the dispatcher has done, in order of launches."""
        for grid in _taken(self.dispatcher.started):
            self._streams.started(self._resident[grid.id])
        for grid in _taken(self.dispatcher.dispatched):
            self._leave_channel(self._resident[grid.id])
        for launch in sorted(self._resident.values(), key=lambda launch: launch.id):
            if launch.grid is not None and launch.grid.over:
                self.take_off(launch, keeps_progress=True)

    def _enter(self) -> bool:
        """Let channel heads become resident grids, as far as slots are free."""
        entered = False
        while self._heads and len(self._resident) < self._slots:
            launch = self._heads.popleft()
            op = launch.op
            scale = op.scale * l2.cold_l2_factor(self._world, launch.tenant, launch.job.number, op.cold)
            launch.grid = Grid(
                self._needs[op.identity], scale, launch.blocks, launch.priority, launch.partition, launch.whole,
                launch.tiling, launch.saved, launch.saved_left, launch.id, next(self._serials),
            )  # fmt: skip
            self._resident[launch.id] = launch
            self.dispatcher.enqueue(launch.grid)
            entered = True
        return entered

    # ---- hardware queues -------------------------------------------------------------------------------------------

    def _queue(self, launch: Launch) -> int:
        number = launch.id if launch.stream < 0 else launch.stream + launch.branch
        return number % len(self._channels)

    def _channel(self, launch: Launch) -> deque[Launch]:
        return self._channels[self._queue(launch)]

    def held_ps(self, launch: Launch) -> int:
        """When the hardware takes kernels from the queue of one that is ready: now or later."""
        if self._period_ps == 0:
            return self._clock.now
        place = self._places.setdefault(self._queue(launch), len(self._places))
        return held_ps(place, len(self._places), self._held, self._period_ps, self._clock.now)

    def submit(self, launch: Launch) -> None:
        """A kernel is ready."""
        channel = self._channel(launch)
        channel.append(launch)
        if channel[0] is launch:
            self._heads.append(launch)
            self.touch()

    def _leave_channel(self, launch: Launch) -> None:
        """A grid is dispatched or withdrawn; one whose saved blocks came back may have left before."""
        channel = self._channel(launch)
        if channel and channel[0] is launch:
            channel.popleft()
            if channel:
                self._heads.append(channel[0])

    def withdraw(self, launch: Launch) -> None:
        """A grid has left the dispatcher's queue for good, and makes room in its hardware queue."""
        self._leave_channel(launch)
        self.touch()

    def take_off(self, launch: Launch, *, keeps_progress: bool) -> None:
        """Remove a grid without resident blocks: the kernel has ended, or is pending again with what is left of it."""
        grid = launch.grid
        assert grid is not None
        del self._resident[launch.id]
        launch.grid = None
        launch.preempting = False
        launch.preemption.stop()
        launch.alarm.stop()
        self.touch()
        if grid.waiting == 0:
            log_kernel(self._world, launch)
            brought_bytes = self._kernels[launch.identity].brought_bytes * launch.op.scale
            l2.note_l2_traffic(self._world, launch.tenant, brought_bytes)
            self._streams.ended(launch)
            return
        whole = launch.whole, 0, 1.0
        rest = grid.waiting, grid.saved, grid.saved_left
        launch.blocks, launch.saved, launch.saved_left = rest if keeps_progress else whole
        if launch.tiling is not None and not keeps_progress:
            launch.tiling.start_over()
        self._streams.preempted(launch, keeps_progress=keeps_progress)

    def has_others_beside(self, node: Launch) -> bool:
        """Whether kernels that are not of a node's graph are resident."""
        return any(launch.parent is not node.parent for launch in self._resident.values())

    # ---- turns -------------------------------------------------------------------------------------------------------

    def activate(self) -> None:
        """The context gets the GPU."""
        self.active = True
        for sm in self.sms:
            for block in sm.blocks:
                block.pause(self._clock.now - self._paused_ps)
        self.touch()

    def deactivate(self) -> None:
        """The context loses the GPU; its blocks stop where they are."""
        self.active = False
        self._paused_ps = self._clock.now
        self._alarm.stop()
        gpu_changed(self._world, 0, 0.0)


def _taken(grids: list[Grid]) -> list[Grid]:
    """Grids of a list in order of launches; the list is emptied."""
    found = sorted(grids, key=lambda grid: grid.id)
    grids.clear()
    return found


class CopyEngines:
    """Host-device copies queue for an engine; copies and memsets within the device run at once."""

    def __init__(self, world: World, streams: Streams) -> None:
        self._world, self._streams = world, streams
        self._clock = clock = world.clock
        self._engines = [simpy.Resource(clock), simpy.Resource(clock), simpy.Resource(clock, sys.maxsize)]

    def submit(self, copy: Launch) -> None:
        """A copy or memset is ready."""
        self._clock.process(self._carry_out(copy))

    def _carry_out(self, copy: Launch) -> ProcessGenerator:
        assert not isinstance(copy.op, ChildOp)
        way = direction(copy.kind)
        engine = ON_DEVICE if way == ON_DEVICE else engine_for(self._world, way)
        with self._engines[engine].request() as turn:
            yield turn
            yield copy.alarm.at(self._clock.now, Phase.COPY_STARTS, copy.id)
            self._streams.started(copy)
            yield copy.alarm.at(self._clock.now + to_ps(copy.op.device_us), Phase.COPY_ENDS, copy.id)
        self._end(copy, way)

    def _end(self, copy: Launch, way: int) -> None:
        log_copy(self._world, way, copy)
        self._streams.ended(copy)
