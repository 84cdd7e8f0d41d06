"""Reference devices with one fault each, for the fuzzer to find; named as ``broken_devices.py:Name`` in tests."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from simpy.core import SimTime
from simpy.events import NORMAL, Event, EventPriority

from gpusched_env.devices.reference.blocks import Grid
from gpusched_env.devices.reference.context import CopyEngines
from gpusched_env.devices.reference.device import ReferenceDevice
from gpusched_env.devices.reference.dispatcher import Dispatcher
from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.streams import Streams
from gpusched_env.devices.reference.tiling import Tiling
from gpusched_env.devices.reference.world import Clock, Due, Phase
from gpusched_env.devices.rules.copies import TO_DEVICE
from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command, Wait
from gpusched_env.scheduling.reward import Costs
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.scheduling.view import View

CHARGED_PS = 1000


class _LastInFirstOut(Dispatcher):
    """Queues a grid before those of its priority."""

    def enqueue(self, grid: Grid) -> None:
        super().enqueue(grid)
        self.queue.sort(key=lambda queued: (queued.priority, -queued.serial))


class Misordered(ReferenceDevice):
    """Grids of equal priority go last in, first out."""

    def context_of(self, launch: Launch) -> Any:
        context = super().context_of(launch)
        context.dispatcher.__class__ = _LastInFirstOut
        return context


class _Asleep(Streams):
    def preempted(self, launch: Launch, *, keeps_progress: bool) -> None:
        world = self._world
        awake = world.awake
        super().preempted(launch, keeps_progress=keeps_progress)
        world.awake = awake


class Asleep(ReferenceDevice):
    """Does not wake the scheduler when a kernel was preempted."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "streams":
            value.__class__ = _Asleep
        super().__setattr__(name, value)


class _Late(Clock):
    def schedule(self, event: Event, priority: EventPriority = NORMAL, delay: SimTime = 0) -> None:
        late = isinstance(event, Due) and event.phase is Phase.COPY_ENDS
        super().schedule(event, priority, delay + late)


class LateCopies(ReferenceDevice):
    """Copies end a picosecond late."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "clock":
            value.__class__ = _Late
        super().__setattr__(name, value)


class Hasty(ReferenceDevice):
    """Knows at once that a kernel of a window has ended."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "streams":
            value._sync_ps = 0
        super().__setattr__(name, value)


class Careless(ReferenceDevice):
    """Takes a wait into the past for one until now."""

    def apply(self, command: Command) -> None:
        if isinstance(command, Wait) and not command.until_us >= self.time_us:
            command = Wait(self.time_us)
        super().apply(command)


class Resentful(ReferenceDevice):
    """Charges a nanosecond of the host's time for a refused command."""

    def apply(self, command: Command) -> None:
        try:
            super().apply(command)
        except IllegalCommand:
            self.decisions.busy_until_ps = max(self.decisions.busy_until_ps, self.clock.now) + CHARGED_PS
            raise


class Leaky(ReferenceDevice):
    """Keeps one tenant's partition over a reset."""

    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs", snapshots: bool = False) -> View | None:
        old = self.decisions.partitions[0] if hasattr(self, "decisions") else None
        view = super().reset(problem, seed, record=record, snapshots=snapshots)
        if old is not None:
            self.decisions.partitions[0] = old
        return view


class Forgetful(ReferenceDevice):
    """Restores a snapshot without its last command."""

    def restore(self, snapshot: Any) -> View | None:
        return super().restore(snapshot._replace(steps=snapshot.steps[:-1]))


class Wasteful(ReferenceDevice):
    """Takes a relative 1e-8 too much energy."""

    @property
    def costs(self) -> Costs:
        costs = super().costs
        costs.energy_j *= 1.0 + 1e-8
        return costs


class Crowded(ReferenceDevice):
    """Has room for five tenants."""

    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs", snapshots: bool = False) -> View | None:
        if len(problem.programs) > 5:
            raise IndexError("tenant 5 is out of range")
        return super().reset(problem, seed, record=record, snapshots=snapshots)


class _MixedCopies(CopyEngines):
    def _end(self, copy: Launch, way: int) -> None:
        super()._end(copy, TO_DEVICE)


class Mixed(ReferenceDevice):
    """Writes copies to the host down as copies to the device."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_copies":
            value.__class__ = _MixedCopies
        super().__setattr__(name, value)


class _Anytime(Tiling):
    def may_pass(self, block: int, number: int) -> bool:
        return super().may_pass(block, number) or block >= self.grid[0] * self.grid[1]


class _Unordered(Streams):
    def _tiling(self, launch: Launch) -> Tiling:
        tiling = super()._tiling(launch)
        tiling.__class__ = _Anytime
        return tiling


class Unordered(ReferenceDevice):
    """Lets a slice of a tile pass all that it waits for."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "streams":
            value.__class__ = _Unordered
        super().__setattr__(name, value)


class Dying(ReferenceDevice):
    """Takes its process with it."""

    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs", snapshots: bool = False) -> View | None:
        os._exit(7)


class Slow(ReferenceDevice):
    """Never ends a reset; leaves a file ``started`` in the working folder."""

    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs", snapshots: bool = False) -> View | None:
        Path("started").touch()
        time.sleep(3600.0)
        return super().reset(problem, seed, record=record, snapshots=snapshots)
