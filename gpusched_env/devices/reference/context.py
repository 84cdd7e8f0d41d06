"""A context: tenants that share the GPU's SMs block by block, and the hardware queues in front of them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from gpusched_env.devices.reference.blocks import Sm
from gpusched_env.devices.reference.clock import Alarm, Phase
from gpusched_env.devices.reference.dispatcher import Dispatcher, Residency
from gpusched_env.devices.reference.grid import Grid
from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.parts import started
from gpusched_env.devices.reference.rates import Rates

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice


class Context:
    """A kernel that is ready enters the hardware queue (channel) of its stream.

    The heads of the channels are among the grids that the dispatcher sees; a grid makes room when it is fully
    dispatched. More streams than channels alias: they wait for each other (Bakita & Anderson, RTAS 2024).
    """

    def __init__(self, device: ReferenceDevice, index: int, *, active: bool) -> None:
        self._device = device
        self._clock = device.clock
        self._index = index
        self._alarm = Alarm(device.clock)
        self.active = active
        self._paused_ps = 0
        """When it was switched out."""
        physics = device.physics
        self.sms = [Sm(rank, int(number), physics) for rank, number in enumerate(device.sm_order)]
        self.dispatcher = Dispatcher(self.sms)
        self._rates = Rates(self.sms, physics)
        self._channels: list[deque[Launch]] = [deque() for _ in range(device.problem.gpu.channels)]
        self._heads: deque[Launch] = deque()
        """Channel heads that wait for a free slot among the resident grids."""
        self._resident: dict[int, Launch] = {}
        self._slots = device.problem.gpu.resident_grids
        self._serial = 0

    @property
    def time_ps(self) -> int:
        """Up to when its blocks have made progress."""
        return self._clock.now if self.active else self._paused_ps

    # ---- the SMs are brought to the present ----------------------------------------------------------------------

    def touch(self) -> None:
        """Something about the SMs may have changed at the present time."""
        if self.active:
            self._alarm.set(self._clock.now, Phase.SMS, self._index, self._settle)

    def _settle(self) -> None:
        """Bring the SMs to the present; wait for the next block end."""
        now, dispatcher = self._clock.now, self.dispatcher
        self._record(dispatcher.end_blocks(now))
        entered = True
        while entered:
            if dispatcher.changed:
                dispatcher.dispatch(now)
            self._tell()
            entered = self._enter()
        self._rates.update(now)
        busy_sms = sum(1 for sm in self.sms if sm.blocks)
        self._device.meter.gpu_changed(now, busy_sms, self._rates.traffic)
        self._alarm.set(min(sm.next_ps for sm in self.sms), Phase.SMS, self._index, self._settle)

    def _tell(self) -> None:
        """Pass on what the dispatcher has done, in order of launches."""
        for grid in _taken(self.dispatcher.started):
            started(self._device, self._resident[grid.id])
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
            launch.grid = grid = Grid(
                self._device.needs[op.identity], op.scale, launch.blocks, launch.priority, launch.partition,
                launch.tiles, launch.awaits, launch.saved, launch.saved_left,
            )  # fmt: skip
            grid.id, grid.serial = launch.id, self._serial
            self._serial += 1
            self._resident[launch.id] = launch
            self.dispatcher.enqueue(grid)
            entered = True
        return entered

    def _record(self, ended: list[Residency]) -> None:
        if self._device.record == "blocks":
            for sm, grid, blocks, start_ps in ended:
                self._device.timeline.blocks.add(sm, grid.id, blocks, start_ps, self._clock.now)

    # ---- hardware queues -------------------------------------------------------------------------------------------

    def _channel(self, launch: Launch) -> deque[Launch]:
        number = launch.id if launch.stream < 0 else launch.stream + launch.branch
        return self._channels[number % len(self._channels)]

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
            self._device.kernel_ended(launch)
            return
        whole = launch.tiles.blocks, 0, 1.0
        kept = grid.waiting, grid.saved, grid.saved_left
        launch.blocks, launch.saved, launch.saved_left = kept if keeps_progress else whole
        self._device.streams.preempted(launch, keeps_progress=keeps_progress)

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
        self._device.meter.gpu_changed(self._clock.now, 0, 0.0)


def _taken(grids: list[Grid]) -> list[Grid]:
    """Grids of a list in order of launches; the list is emptied."""
    found = sorted(grids, key=lambda grid: grid.id)
    grids.clear()
    return found
