"""A context: tenants that share the GPU's SMs block by block, and the hardware queues in front of them."""

from __future__ import annotations

import itertools
from collections import deque

from gpusched_env.devices.reference.blocks import Sm
from gpusched_env.devices.reference.clock import Alarm, Phase
from gpusched_env.devices.reference.dispatcher import Dispatcher, Residency
from gpusched_env.devices.reference.grid import Grid
from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.rates import Rates
from gpusched_env.devices.reference.setting import Setting
from gpusched_env.devices.reference.streams import Streams
from gpusched_env.devices.reference.world import World
from gpusched_env.devices.rules import l2
from gpusched_env.devices.rules.logs import RESIDENCY, add_row, log_kernel
from gpusched_env.devices.rules.meter import gpu_changed
from gpusched_env.hardware.placement import sm_order
from gpusched_env.hardware.queues import held_ps
from gpusched_env.hardware.records import BlockNeeds


class Context:
    """A kernel that is ready enters the hardware queue (channel) of its stream.

    The heads of the channels are among the grids that the dispatcher sees; a grid makes room when it is fully
    dispatched. More streams than channels alias: they wait for each other (Bakita & Anderson, RTAS 2024), or the
    hardware holds some of them at a time (:mod:`gpusched_env.hardware.queues`).
    """

    def __init__(self, setting: Setting, world: World, streams: Streams, index: int, *, active: bool) -> None:
        """``active``: it has the GPU."""
        gpu, self._kernels, self._clock = setting.problem.gpu, setting.problem.kernels, setting.clock
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
        """Of the hardware queues that were used, in order of first use, where they take turns."""
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
        self._record(dispatcher.end_blocks(now))
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
            scale = op.scale * l2.stretch(self._world, launch.tenant, launch.job.number, op.cold)
            launch.grid = Grid(
                self._needs[op.identity], scale, launch.blocks, launch.priority, launch.partition, launch.whole,
                launch.tiling, launch.saved, launch.saved_left, launch.id, next(self._serials),
            )  # fmt: skip
            self._resident[launch.id] = launch
            self.dispatcher.enqueue(launch.grid)
            entered = True
        return entered

    def _record(self, ended: list[Residency]) -> None:
        if self._world.timeline.detail == "blocks":
            for sm, grid, blocks, start_ps in ended:
                add_row(self._world, RESIDENCY, (sm, grid.id, blocks, start_ps, self._clock.now))

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
            l2.bring(self._world, launch.tenant, self._kernels[launch.identity].brought_bytes * launch.op.scale)
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
