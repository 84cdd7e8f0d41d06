"""Taking a running kernel off the GPU: drain, save, reset; or only some of its blocks.

* ``drain``: after the acknowledgement no further blocks are handed out; the kernel is pending again when its running
  blocks have ended (or has finished, if none were left).
* ``save``: running blocks stop, their registers and shared memory are written to DRAM, then their SMs are free.
  Launched again, the state is read back and they go on with the mean of their remaining work.
* ``reset``: running blocks are killed; launched again, the kernel runs from its start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.devices.reference.blocks import evict, stop
from gpusched_env.devices.reference.clock import Phase
from gpusched_env.devices.reference.grid import Grid, Queueing
from gpusched_env.devices.reference.launch import Launch
from gpusched_env.hardware.clock import to_ps
from gpusched_env.hardware.placement import within
from gpusched_env.hardware.timing import save_us, state_bytes
from gpusched_env.scheduling.commands import Partition, PreemptionMode

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice


class Preemption:
    """One preemption of a resident kernel. Its alarm is stopped when the kernel leaves the GPU before."""

    def __init__(
        self,
        device: ReferenceDevice,
        launch: Launch,
        mode: PreemptionMode,
        partition: Partition | None,
        at_ps: int,
    ) -> None:
        """``partition``: SMs whose blocks alone are saved; ``at_ps``: when the command takes effect."""
        self._device = device
        self._context = device.context_of(launch)
        self._launch = launch
        self._mode = mode
        self._partition = partition
        self._dead_ps = 0
        launch.preempting = True
        launch.preemption.set(at_ps, Phase.PREEMPTION_BEGINS, launch.id, self._begin)

    @property
    def _grid(self) -> Grid:
        assert self._launch.grid is not None
        return self._launch.grid

    def _over_in(self, ps: int) -> None:
        launch = self._launch
        launch.preemption.set(self._device.clock.now + ps, Phase.PREEMPTION_OVER, launch.id, self._over)

    def _begin(self) -> None:
        timing = self._device.problem.gpu.timing
        if self._mode == "drain":
            self._over_in(to_ps(timing.drain_ack_us))
            return
        sms = self._context.sms
        if self._partition is None:
            self._leave_queue(Queueing.FROZEN)
        else:
            first, count = self._partition.first, self._partition.sms
            sms = [sm for sm in sms if within(sm.rank, first, count, len(sms))]
        stopped = stop(self._grid, sms, self._context.time_ps)
        self._context.touch()
        if self._partition is not None and stopped == 0:
            self._end_partial()
            return
        self._dead_ps = to_ps(timing.reset_us if self._mode == "reset" else self._save_us(stopped))
        self._over_in(self._dead_ps)

    def _save_us(self, blocks: int) -> float:
        """Time to write the state of some blocks, or to read it back."""
        footprint = self._device.problem.kernels[self._launch.op.identity].footprint
        state = state_bytes(footprint.registers, footprint.shared_bytes, blocks)
        return save_us(state, self._device.problem.gpu.dram_bytes_per_us)

    def _leave_queue(self, state: Queueing) -> None:
        """Hand out no blocks; what is left of reading saved ones back is done when the kernel is launched again."""
        launch, now = self._launch, self._device.clock.now
        self._context.dispatcher.leave(self._grid, state)
        self._context.withdraw(launch)
        launch.restore_ps = max(0, launch.readback_ps - now)
        launch.readback_ps = 0
        launch.alarm.stop()

    def _over(self) -> None:
        """The dispatcher has acknowledged a drain; stopped blocks are saved or killed."""
        launch = self._launch
        if self._mode == "drain":
            self._leave_queue(Queueing.DRAINING)
            if self._grid.over:
                self._context.take_off(launch, keeps_progress=True)
            return
        evict(self._grid, self._context.sms)
        self._context.dispatcher.changed = True
        if self._partition is not None:
            self._read_back()
            self._end_partial()
            return
        # What an earlier save left to be read back comes on top.
        keeps = self._mode == "save"
        launch.restore_ps = launch.restore_ps + self._dead_ps if keeps else 0
        self._context.take_off(launch, keeps_progress=keeps)

    def _read_back(self) -> None:
        """Read blocks back that were saved, after those of earlier saves; until then none are handed out."""
        launch, grid, context = self._launch, self._grid, self._context
        context.dispatcher.leave(grid, Queueing.RETURNING)
        context.touch()
        launch.preemptions += 1
        launch.readback_ps = max(launch.readback_ps, self._device.clock.now) + self._dead_ps

        def requeue() -> None:
            context.dispatcher.enqueue(grid)
            context.touch()

        launch.alarm.set(launch.readback_ps, Phase.READY, launch.id, requeue)

    def _end_partial(self) -> None:
        """The kernel may be preempted again, and room is free."""
        self._launch.preempting = False
        self._device.world.awake = 1
