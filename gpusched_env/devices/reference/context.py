"""A context: hardware queues in front of the SMs, and the clock of its block ends."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

from simpy.events import Event

from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.phases import Phase, Timer, order
from gpusched_env.devices.reference.sms import SmArray

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice


TRAFFIC_CHANGE = 1e-9
"""Relative changes of traffic below this are rounding (the order in which SMs are added up), not events."""


class Context:
    """Tenants that share the GPU's SMs at block granularity.

    A kernel at the head of its stream enters the stream's hardware queue (channel); the head of each
    channel is among the grids that the dispatcher sees, and makes room when it is fully dispatched.
    More streams than channels alias: they wait for each other (Bakita & Anderson, RTAS 2024).
    """

    def __init__(self, device: ReferenceDevice, index: int, active: bool) -> None:
        self._device = device
        self._env = device.env
        self._meter = device.meter
        self.index = index
        self.active = active
        self._phase = order(Phase.COMPLETION, index)
        self._whole_gpu = (0, device.problem.gpu.sms)
        self._kernels = device.problem.kernels
        self._record_blocks = device.timeline.detail == "blocks"
        self.sms = SmArray(device.problem.gpu, each_wave=self._record_blocks)
        self._channels: list[deque[Launch]] = [deque() for _ in range(device.problem.gpu.channels)]
        self._at_head: deque[Launch] = deque()
        """Channel heads that wait for a free slot among the resident grids."""
        self.on_device: dict[int, Launch] = {}
        """Launches by slot."""
        self._timer_us = math.inf
        self._timer: Timer | None = None
        """For the next block end, at ``_timer_us``."""

    def submit(self, launch: Launch) -> None:
        """A kernel has reached the head of its stream."""
        launch.on_device = True
        channel = self._channels[launch.tenant % len(self._channels)]
        channel.append(launch)
        if len(channel) == 1:
            self._at_head.append(launch)
            self.settle()

    def _enter(self) -> None:
        """Let channel heads become resident grids, as far as slots are free."""
        while self._at_head and not self.sms.full:
            launch = self._at_head.popleft()
            op, own = launch.op, launch.partition
            partition = self._whole_gpu if own is None else (own.first, own.sms)
            block = self._kernels[op.identity].block
            launch.slot = slot = self.sms.add(
                block, op.scale, launch.blocks, launch.priority, partition, launch.saved, launch.saved_left
            )
            self.on_device[slot] = launch

    def settle(self) -> None:
        """Bring the SMs to the present and handle what happened; arm the clock for the next block end."""
        now, sms = self._env.now, self.sms
        if not self.active:
            sms.stay(now)
            return
        while True:
            if self._at_head:
                if sms.ahead:
                    sms.catch_up(now)
                    self._handle(now)
                self._enter()
            sms.step(now)
            self._handle(now)
            if not self._at_head or sms.full:
                break
        meter = self._meter
        if sms.busy_sms != meter.busy_sms or abs(sms.traffic - meter.traffic) > TRAFFIC_CHANGE * sms.traffic:
            meter.gpu_changed(now, sms.busy_sms, sms.traffic)
        self._arm(sms.next_us)

    def _handle(self, now: float) -> None:
        """Pass on what happened in the last step; grids that did the same, in order of their tenants.

        A context executes one kernel of a tenant at a time, so the order does not hang on the bookkeeping of SMs.
        """
        sms = self.sms
        if self._record_blocks:
            self._record_rows(now)
        for slot in sms.started:
            launch = self.on_device[slot]
            if launch.started_us == math.inf:
                launch.started_us = now
        for slot in sorted(sms.dispatched, key=self._tenant):
            self._leave_channel(self.on_device[slot])
        for slot in sorted(sms.finished, key=self._tenant):
            self._end(slot)

    def _tenant(self, slot: int) -> int:
        return self.on_device[slot].tenant

    def _arm(self, next_us: float) -> None:
        """Set the timer to the next block end (``inf``: none); residency may have changed since it was last set."""
        if next_us == self._timer_us and next_us > self._env.now:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_us = next_us
        self._timer = Timer(self._env, next_us, self._phase, self._on_timer) if next_us < math.inf else None

    def _on_timer(self, _: Event) -> None:
        self.settle()

    def _leave_channel(self, launch: Launch) -> None:
        """A grid is fully dispatched (or withdrawn); one whose saved blocks came back may have left before."""
        channel = self._channels[launch.tenant % len(self._channels)]
        if channel and channel[0] is launch:
            channel.popleft()
            if channel:
                self._at_head.append(channel[0])

    def _end(self, slot: int) -> None:
        """All resident blocks of a grid have ended: it is finished, or drained."""
        launch = self.on_device.pop(slot)
        waiting = self.waiting(slot)
        if waiting > 0:
            launch.blocks = waiting
            launch.saved, launch.saved_left = self.sms.saved(slot)
        self.sms.remove(slot)
        launch.slot = -1
        if waiting > 0:
            self._device.preempted(launch)
        else:
            self._device.finished(launch)

    def withdraw(self, launch: Launch) -> None:
        """Hand out no further blocks of a kernel."""
        self.settle()
        if launch.slot >= 0:
            self._leave_queue(launch)
            if self.sms.resident(launch.slot) == 0:
                self._end(launch.slot)
        self.settle()

    def freeze(self, launch: Launch) -> int:
        """Stop a kernel's resident blocks and hand out no further ones; returns how many were stopped."""
        self._leave_queue(launch)
        return self.stop(launch, *self._whole_gpu)

    def _leave_queue(self, launch: Launch) -> None:
        """Queue a grid no more; what is left of reading saved blocks back is done when it is launched again."""
        self.sms.withdraw(launch.slot)
        self._leave_channel(launch)
        launch.restore_us = max(0.0, launch.readback_us - self._env.now)
        launch.readback_us = -math.inf
        if launch.readback is not None:
            launch.readback.cancel()

    def stop(self, launch: Launch, first: int, sms: int) -> int:
        """Stop a kernel's resident blocks on ``sms`` SMs from rank ``first`` on; returns how many."""
        stopped = self.sms.stop(launch.slot, first, sms)
        self.settle()
        return stopped

    def put_back(self, launch: Launch) -> bool:
        """Take a kernel's stopped blocks off the SMs and the kernel off the queue, to :meth:`requeue` it.

        Returns:
            False if there were none (a context that was switched out may find that they had just ended).
        """
        self.settle()
        some = self.sms.evict(launch.slot) > 0
        if some:
            self.sms.suspend(launch.slot)
            if launch.readback is not None:
                launch.readback.cancel()
        self.settle()
        return some

    def requeue(self, launch: Launch) -> None:
        """The saved blocks of a kernel are read back: it hands out blocks again."""
        self.settle()
        self.sms.enqueue(launch.slot)
        self.settle()

    def take_off(self, launch: Launch, *, keep_progress: bool) -> None:
        """Remove a frozen kernel's resident blocks; it becomes pending with what is left of it."""
        self.settle()
        slot = launch.slot
        self.sms.evict(slot)
        if keep_progress:
            launch.blocks = self.waiting(slot)
            launch.saved, launch.saved_left = self.sms.saved(slot)
        else:
            launch.blocks = self._device.problem.kernels[launch.op.identity].kernel.blocks
            launch.saved = 0
            launch.saved_left = 1.0
        del self.on_device[slot]
        self.sms.remove(slot)
        launch.slot = -1
        self._device.preempted(launch)
        self.settle()

    def waiting(self, slot: int) -> int:
        """Blocks of a grid that are not handed out now."""
        return self.sms.waiting(slot, self._env.now if self.active else self.sms.now_us)

    def activate(self) -> None:
        """The context gets the GPU."""
        self.sms.stay(self._env.now)
        self.active = True
        self.settle()

    def deactivate(self) -> None:
        """The context loses the GPU; its blocks stop where they are."""
        self.settle()
        self.active = False
        self._arm(math.inf)
        if self._meter.busy_sms:
            self._meter.gpu_changed(self._env.now, 0, 0.0)

    def _record_rows(self, now: float) -> None:
        for sm, slot, blocks, since in self.sms.ended_rows().tolist():
            self._device.timeline.blocks.add(sm, self.on_device[int(slot)].id, blocks, since, now)
