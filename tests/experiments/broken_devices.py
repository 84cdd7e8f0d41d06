"""Reference devices with one fault each, for the fuzzer to find; named as ``broken_devices.py:Name`` in tests."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from gpusched_env.devices.reference.sms import SmArray
from gpusched_env.devices.reference.state import PRIORITY, QUEUE
from simpy.events import Event

from gpusched_env.devices.reference.device import ReferenceDevice
from gpusched_env.devices.reference.launch import Launch
from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command, Wait
from gpusched_env.scheduling.costs import Costs
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.scheduling.view import View


class _LastInFirstOut(SmArray):
    """Queues a grid before those of its priority."""

    def add(self, *arguments: Any, **options: Any) -> int:
        slot = super().add(*arguments, **options)
        queue, grid = self._queue, self._grid
        position = self._queue.tolist()[: self._count[QUEUE]].index(slot)
        while position > 0 and grid[queue[position - 1], PRIORITY] == grid[slot, PRIORITY]:
            queue[position] = queue[position - 1]
            position -= 1
        queue[position] = slot
        return slot


class Misordered(ReferenceDevice):
    """Grids of equal priority go last in, first out."""

    def execute(self, launch: Launch) -> Any:
        self.context_of(launch).sms.__class__ = _LastInFirstOut
        return super().execute(launch)


class Asleep(ReferenceDevice):
    """Does not wake the scheduler when a kernel was preempted."""

    def preempted(self, launch: Launch) -> None:
        awake = self._awake
        super().preempted(launch)
        self._awake = awake


class LateCopies(ReferenceDevice):
    """Reports the end of a copy 2 ns late."""

    def copied(self, launch: Launch, engine: int, started_us: float) -> None:
        def later() -> Generator[Event, None, None]:
            yield self.env.timeout(0.002)
            super(LateCopies, self).copied(launch, engine, started_us)

        self.env.process(later())


class Careless(ReferenceDevice):
    """Takes a wait into the past for one until now."""

    def apply(self, command: Command) -> None:
        if isinstance(command, Wait) and not command.until_us >= self.time_us:
            command = Wait(self.time_us)
        super().apply(command)


class Resentful(ReferenceDevice):
    """Charges the time of a decision for a refused command."""

    def apply(self, command: Command) -> None:
        try:
            super().apply(command)
        except IllegalCommand:
            self.decisions.charge()
            raise


class Leaky(ReferenceDevice):
    """Keeps one tenant's partition over a reset."""

    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs", snapshots: bool = False) -> View | None:
        old = self.decisions.partitions[0] if hasattr(self, "decisions") else None
        view = super().reset(problem, seed, record=record, snapshots=snapshots)
        self.decisions.partitions[0] = old
        return view


class Forgetful(ReferenceDevice):
    """Restores a snapshot without its last command."""

    def restore(self, snapshot: Any) -> View | None:
        *head, history = snapshot
        return super().restore((*head, history[:-1]))


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


class Mixed(ReferenceDevice):
    """Writes copies to the host down as copies to the device."""

    def copied(self, launch: Launch, engine: int, started_us: float) -> None:
        super().copied(launch, min(engine, 0), started_us)


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
