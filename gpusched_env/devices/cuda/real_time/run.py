"""An episode in which compiled code drives the GPU between two decisions."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from gpusched_env.devices.compiled.arena import Arena
from gpusched_env.devices.compiled.interval import NO_KNOBS, Standing
from gpusched_env.devices.compiled.jit import notice_compilation
from gpusched_env.devices.cuda.real_time.decider import Decider
from gpusched_env.devices.cuda.real_time.loop import drive, note_own_command
from gpusched_env.devices.cuda.real_time.pieces import LAUNCHES
from gpusched_env.devices.cuda.real_time.tables import FAULT, HANGS, Count, Place, Tables
from gpusched_env.errors import GpuError
from gpusched_env.hardware.clock import PS_PER_US, to_ps
from gpusched_env.planning.dispatcher import IntervalDispatcher
from gpusched_env.planning.interval import BY_PLAN, Knob, levels_of
from gpusched_env.planning.on_time import MOST_JOBS
from gpusched_env.planning.plans import NOBODY, SCRATCH, Plan
from gpusched_env.scheduling.commands import LAUNCH
from gpusched_env.scheduling.view import JobColumn, PendingColumn, TenantColumn

Floats = NDArray[np.float64]
ONE_EACH: Final = 1
"""Pending launches of a tenant that plans look at."""


class Scratch(NamedTuple):
    """Tables that plans are made of."""

    pending: Floats
    """One row a tenant."""
    tenants: Floats
    jobs: Floats
    plan: Floats


class IntervalRun:
    """One episode."""

    def __init__(
        self, arena: Arena, drive_at: int, dispatcher: IntervalDispatcher, tables: Tables, decider: Decider
    ) -> None:
        """Compile what is called while time runs.

        Args:
            arena: at the start of an episode.
            drive_at: of :func:`~gpusched_env.devices.compiled.entry.compile_units`.
            dispatcher: whose place compiled code takes; it keeps the decisions.
            tables: of the GPU.
            decider: is asked.
        """
        self._arena, self._drive_at, self._dispatcher = arena, drive_at, dispatcher
        self._tables, self._decider = tables, decider
        tenants = len(arena.problem.programs)
        self._standing = Standing(
            np.array([BY_PLAN.tenant, BY_PLAN.others, NO_KNOBS, NOBODY], np.int64),
            np.zeros((tenants, len(Plan))),
            np.zeros((len(Knob), tenants), np.int64),
            levels_of(dispatcher.stream_priorities, tenants),
        )
        self._scratch = Scratch(
            np.zeros((tenants, len(PendingColumn))), np.zeros((tenants, len(TenantColumn))),
            np.zeros((MOST_JOBS, len(JobColumn))), np.zeros(SCRATCH),
        )  # fmt: skip
        tables.counts[Count.INTERVAL_PS] = to_ps(dispatcher.interval_us)
        _, _, *rest = self._arguments()
        with notice_compilation("the GPU's dispatcher"):
            cast("Any", drive).compile((types.int64, types.int64, *map(typeof, rest)))
            cast("Any", note_own_command).compile((typeof(self._tables),))

    def _arguments(self) -> tuple[Any, ...]:
        decider, outlook = self._decider, self._dispatcher.outlook
        # The arena may have moved.
        places = self._arena.address, self._drive_at
        return *places, self._tables, decider.mail, decider.seen, self._standing, outlook, ONE_EACH, self._scratch

    def start(self, zero_ns: int, ahead_ns: int) -> None:
        """Time runs; nothing is on the GPU.

        Args:
            zero_ns: when it began, by the host's clock.
            ahead_ns: how far the GPU's clock is ahead.
        """
        self._tables.places[Place.ZERO_NS], self._tables.places[Place.AHEAD_NS] = zero_ns, ahead_ns

    def go(self) -> int:
        """As :func:`~gpusched_env.devices.cuda.real_time.loop.drive`: to the end, or until something is to be done."""
        return int(drive(*self._arguments()))

    def note_command(self) -> None:
        """A command of the scheduler's own was carried out; it is asked again."""
        self._tables.counts[Count.DECIDING] = 0
        note_own_command(self._tables)

    @property
    def commands(self) -> int:
        """Commands that were no waits."""
        return int(self._tables.counts[Count.COMMANDS] - self._tables.counts[Count.WAITS])

    @property
    def took_us(self) -> list[float]:
        """By command how long it took: hearing from the GPU, finding what is next, and handing over."""
        return cast("list[float]", (self._took[:, 0] / PS_PER_US).tolist())

    @property
    def intervals_us(self) -> list[float]:
        """By decision how long it took, from the view to when it stood."""
        count = int(self._tables.counts[Count.DECISIONS])
        return cast("list[float]", (self._tables.decided_ps[:count] / PS_PER_US).tolist())

    @property
    def launches_us(self) -> list[float]:
        """The same of launches."""
        took = self._took
        return cast("list[float]", (took[took[:, 1] == LAUNCH, 0] / PS_PER_US).tolist())

    @property
    def _took(self) -> NDArray[np.int64]:
        return self._tables.took[: int(self._tables.counts[Count.COMMANDS])]

    def failure(self, reason: int) -> GpuError:
        """What is wrong."""
        if reason == FAULT:
            return GpuError(f"the driver answers with error {int(self._tables.counts[Count.STATUS])}")
        if reason == HANGS:
            return GpuError("what is on the GPU neither starts nor ends")
        return GpuError(
            f"this cannot be launched in compiled code: onto some SMs only, or with {LAUNCHES} others unfinished"
        )
