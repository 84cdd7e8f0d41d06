"""Taking kernels off the GPU: preemption of a kernel, or of some of its blocks, and contexts that take turns.

* ``drain``: after the acknowledgement no further blocks are handed out; the kernel is pending again when its running
  blocks have ended (or has finished, if none were left).
* ``save``: running blocks stop, their registers and shared memory are written to DRAM, then their SMs are free.
  Launched again, the state is read back and they go on with the mean of their remaining work (where tiles are
  synchronised, each with its own).
* ``reset``: running blocks are killed; launched again, the kernel runs from its start.

Contexts with work take turns, round robin. A context keeps the GPU for a slice. It gives it up at once when none of its
launched kernels is unfinished (an eager process whose host has not launched its next kernel yet) while another waits.
Every switch costs dead time. Recorded on an H100: slices of 2.09 ms, 0.155 ms a switch (``data/measurements``).

The slicer looks at the contexts when a kernel was launched or has left, and at the end of a slice while another
context has work. A context that keeps the GPU because no other has work begins a new slice where the last one ended.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from simpy.events import Event, ProcessGenerator

from gpusched_env.devices.reference.blocks import Grid, Queueing, Sm
from gpusched_env.devices.reference.context import Context
from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.streams import Streams
from gpusched_env.devices.reference.world import Alarm, Phase, World
from gpusched_env.devices.rules.world import log_turn
from gpusched_env.hardware.clock import NEVER, to_ps
from gpusched_env.hardware.placement import within
from gpusched_env.hardware.timing import save_us, state_bytes
from gpusched_env.scheduling.commands import Partition, PreemptionMode

WHOLE = 2.0**40
"""Work of saved blocks is summed in this part of a block, in whole numbers: so the sum does not hang on the order."""


class Preemption:
    """One preemption of a resident kernel. Its process ends where it stands when the kernel leaves the GPU before."""

    def __init__(self, world: World, context: Context, launch: Launch) -> None:
        self._problem, self._clock, self._world = world.problem, world.clock, world
        self._context, self._launch = context, launch

    def begin(self, mode: PreemptionMode, partition: Partition | None, at_ps: int) -> None:
        """Begin it; ``partition``: SMs whose blocks alone are saved; ``at_ps``: when the command takes effect."""
        self._launch.preempting = True
        self._clock.process(self._carry_out(mode, partition, at_ps))

    def _carry_out(self, mode: PreemptionMode, partition: Partition | None, at_ps: int) -> ProcessGenerator:
        yield self._launch.preemption.at(at_ps, Phase.PREEMPTION_BEGINS, self._launch.id)
        if mode == "drain":
            yield from self._drain()
        elif partition is None:
            yield from self._take_off(mode)
        else:
            yield from self._save_some(partition)

    def _drain(self) -> ProcessGenerator:
        yield self._over_in(to_ps(self._problem.gpu.timing.drain_ack_us))
        self._leave_queue(Queueing.DRAINING)
        if self._grid.over:
            self._context.take_off(self._launch, keeps_progress=True)

    def _take_off(self, mode: PreemptionMode) -> ProcessGenerator:
        """Save or kill all blocks."""
        launch, context = self._launch, self._context
        self._leave_queue(Queueing.FROZEN)
        stopped = self._stop(context.sms)
        keeps = mode == "save"
        dead_ps = self._save_ps(stopped) if keeps else to_ps(self._problem.gpu.timing.reset_us)
        yield self._over_in(dead_ps)
        self._evict()
        # What an earlier save left to be read back comes on top.
        launch.restore_ps = launch.restore_ps + dead_ps if keeps else 0
        context.take_off(launch, keeps_progress=keeps)

    def _save_some(self, partition: Partition) -> ProcessGenerator:
        """Save the blocks on some SMs, and read them back after those of earlier saves."""
        launch, context, grid = self._launch, self._context, self._grid
        sms = [sm for sm in context.sms if within(sm.rank, partition.first, partition.sms, len(context.sms))]
        stopped = self._stop(sms)
        if stopped == 0:
            self._end_part()
            return
        dead_ps = self._save_ps(stopped)
        yield self._over_in(dead_ps)
        self._evict()
        context.dispatcher.leave(grid, Queueing.RETURNING)
        context.touch()
        launch.preemptions += 1
        launch.readback_ps = max(launch.readback_ps, self._clock.now) + dead_ps
        self._end_part()
        yield launch.alarm.at(launch.readback_ps, Phase.READY, launch.id)
        context.dispatcher.enqueue(grid)
        context.touch()

    @property
    def _grid(self) -> Grid:
        assert self._launch.grid is not None
        return self._launch.grid

    def _over_in(self, ps: int) -> Event:
        launch = self._launch
        return launch.preemption.at(self._clock.now + ps, Phase.PREEMPTION_OVER, launch.id)

    def _leave_queue(self, state: Queueing) -> None:
        """Hand out no blocks; what is left of reading saved ones back is done when the kernel is launched again."""
        launch = self._launch
        self._context.dispatcher.leave(self._grid, state)
        self._context.withdraw(launch)
        launch.restore_ps = max(0, launch.readback_ps - self._clock.now)
        launch.readback_ps = 0
        launch.alarm.stop()

    def _stop(self, sms: list[Sm]) -> int:
        """Stop its blocks on some SMs; returns how many."""
        stopped = 0
        for sm in sms:
            for block in sm.blocks:
                if block.grid is self._grid and not block.stopped:
                    block.stopped = sm.changed = True
                    block.change_rate(0.0, self._context.time_ps)
                    stopped += 1
        self._context.touch()
        return stopped

    def _evict(self) -> None:
        """Take its stopped blocks off the SMs; they wait as saved ones with the mean of what is left of them."""
        grid = self._grid
        evicted = left = 0
        for sm in self._context.sms:
            for block in [block for block in sm.blocks if block.grid is grid and block.stopped]:
                sm.remove(block)
                evicted += 1
                left += int(block.left * WHOLE)
                if grid.tiling is not None:
                    grid.tiling.keep([(block.number, block.left)])
        if evicted > 0:
            grid.saved_left = (grid.saved * grid.saved_left + left / WHOLE) / (grid.saved + evicted)
            grid.saved += evicted
            grid.waiting += evicted
        self._context.dispatcher.changed = True

    def _save_ps(self, blocks: int) -> int:
        """Time to write the state of some blocks, or to read it back."""
        footprint = self._problem.kernels[self._launch.op.identity].footprint
        state = state_bytes(footprint.registers, footprint.shared_bytes, blocks)
        return to_ps(save_us(state, self._problem.gpu.dram_bytes_per_us))

    def _end_part(self) -> None:
        """The kernel may be preempted again, and room is free."""
        self._launch.preempting = False
        self._world.awake = 1


class Slicer:
    """Gives the GPU to one context at a time."""

    def __init__(self, world: World, streams: Streams, contexts: list[Context]) -> None:
        self._world, self._streams, self._contexts = world, streams, contexts
        self._clock = clock = world.clock
        self._slice_ps, self._switch_ps = world.rules.slice_ps, world.rules.switch_ps
        self._alarm = Alarm(clock)
        self._looks: Event | None = None
        """The slicer looks at the contexts next; ``None``: the GPU changes hands."""
        clock.process(self._take_turns())

    def notify(self) -> None:
        """A kernel was launched or has left."""
        if self._looks is not None:
            self._alarm.set(self._clock.now, Phase.SLICER, 0, self._looks.succeed)

    def _take_turns(self) -> ProcessGenerator:
        current = 0
        while True:
            self._contexts[current].activate()
            other = yield from self._slice(current)
            self._contexts[current].deactivate()
            log_turn(self._world, -1)
            yield self._alarm.at(self._clock.now + self._switch_ps, Phase.SLICER, 0)
            current = other
            log_turn(self._world, current)

    def _slice(self, current: int) -> Generator[Event, Any, int]:
        """A context has the GPU; returns the one that gets it next."""
        end_ps = self._clock.now + self._slice_ps
        while True:
            other = self._next(current)
            if other is not None and (self._clock.now >= end_ps or not self._has_work(current)):
                return other
            self._looks = self._clock.event()
            self._alarm.set(NEVER if other is None else end_ps, Phase.SLICER, 0, self._looks.succeed)
            yield self._looks
            self._looks = None
            while other is None and end_ps <= self._clock.now:
                end_ps += self._slice_ps

    def _has_work(self, context: int) -> bool:
        """Whether launched kernels of a context are unfinished."""
        return any(launch.tenant == context for launch in self._streams.launched.values())

    def _next(self, current: int) -> int | None:
        """The next context after the current one that has work."""
        count = len(self._contexts)
        order = ((current + step) % count for step in range(1, count))
        return next((index for index in order if self._has_work(index)), None)
