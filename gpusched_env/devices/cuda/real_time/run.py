"""An episode in which compiled code drives the GPU between two decisions, and the thread in which the scheduler
decides.

Both threads look at the same tables: the one that drives fills them and asks, the other reads them until it answers.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Self, cast

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from gpusched_env.compiling import notice_compilation
from gpusched_env.devices.compiled.arena import Arena
from gpusched_env.devices.compiled.device import ordered_dependencies
from gpusched_env.devices.compiled.driving import ONE_EACH, PlanScratch, first_decision
from gpusched_env.devices.cuda.real_time.loop import drive, note_own_command
from gpusched_env.devices.cuda.real_time.tables import (
    FAULT,
    HANGS,
    LAUNCHES,
    NO_ANSWER,
    OWN,
    STANDS,
    AddressRow,
    Ints,
    LoopCount,
    Mail,
    Seen,
    SeenNumber,
    SeenTable,
    Tables,
)
from gpusched_env.errors import GpuError
from gpusched_env.hardware.clock import PS_PER_US, to_ps
from gpusched_env.planning.dispatcher import DecidesForIntervals, IntervalDispatcher
from gpusched_env.planning.plans import MOST_JOBS
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import LAUNCH, Command
from gpusched_env.scheduling.view import (
    DependencyColumn,
    JobColumn,
    PendingColumn,
    RunningColumn,
    TenantColumn,
    View,
    ViewTable,
)

RUNNING_ROWS = 64
"""Launched, unfinished kernels and graphs of a tenant, on average: dispatchers launch sixteen at most."""


def empty_seen(problem: Problem) -> Seen:
    """Tables for the views of a problem."""
    tenants = len(problem.programs)
    pending = tenants * problem.scenario.lookahead
    return Seen(
        pending=np.zeros((pending, len(PendingColumn))),
        running=np.zeros((RUNNING_ROWS * tenants, len(RunningColumn))),
        tenants=np.zeros((tenants, len(TenantColumn))),
        jobs=np.zeros((max(MOST_JOBS, 4 * tenants), len(JobColumn))),
        dependencies=np.zeros((4 * pending, len(DependencyColumn))),
        rows=np.zeros(len(SeenTable), np.int64),
        numbers=np.zeros(len(SeenNumber)),
    )


def view_of(problem: Problem, seen: Seen) -> View:
    """What was seen, as a View."""
    pending, running, jobs, pairs = (int(rows) for rows in seen.rows)
    shown = seen.pending[:pending].copy()
    return View(
        time_us=float(seen.numbers[SeenNumber.TIME_US]),
        pending=ViewTable(shown, PendingColumn),
        running=ViewTable(seen.running[:running].copy(), RunningColumn),
        tenants=ViewTable(seen.tenants.copy(), TenantColumn),
        jobs=ViewTable(seen.jobs[:jobs].copy(), JobColumn),
        dependencies=ViewTable(ordered_dependencies(shown, seen.dependencies[:pairs]), DependencyColumn),
        sms=problem.gpu.sms,
        busy_sms=int(seen.numbers[SeenNumber.BUSY_SMS]),
        occupancy=float(seen.numbers[SeenNumber.OCCUPANCY]),
        dram=float(seen.numbers[SeenNumber.DRAM]),
        horizon_us=problem.scenario.horizon_us,
    )


class Decider:
    """Decides whenever it is asked, in a thread of its own, as long as a ``with`` statement lasts."""

    def __init__(self, scheduler: DecidesForIntervals, problem: Problem) -> None:
        self._scheduler, self._problem = scheduler, problem
        self.mail: Ints = np.zeros(len(Mail), np.int64)
        self.seen = empty_seen(problem)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="decider", daemon=True)
        self._command: Command | None = None
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def take_command(self) -> Command:
        """The scheduler's own command, which it gave instead of a decision.

        Raises:
            BaseException: what it raised.
        """
        self.mail[Mail.ANSWER] = NO_ANSWER
        if self._error is not None:
            raise self._error
        assert self._command is not None, "it answered so"
        return self._command

    def _run(self) -> None:
        while not self._over.is_set():
            if not self.mail[Mail.QUESTION]:
                time.sleep(0)
                continue
            self.mail[Mail.QUESTION] = 0
            try:
                self._decide()
            except BaseException as error:
                self._error = error
                self.mail[Mail.ANSWER] = OWN

    def _decide(self) -> None:
        self._command = self._scheduler.stand(view_of(self._problem, self.seen))
        if self._command is not None:
            self.mail[Mail.ANSWER] = OWN
            return
        assert self._scheduler.dispatcher is not None
        serve = self._scheduler.dispatcher.decided
        self.mail[Mail.TENANT], self.mail[Mail.OTHERS] = serve.tenant, serve.others
        self.mail[Mail.ANSWER] = STANDS


Floats = NDArray[np.float64]


class IntervalRun:
    """One episode of a scheduler that decides for intervals."""

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
        self._standing = first_decision(dispatcher.stream_priorities, tenants)
        self._scratch = PlanScratch.of(tenants)
        tables.counts[LoopCount.INTERVAL_PS] = to_ps(dispatcher.interval_us)
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
        """Let time run; nothing is on the GPU.

        Args:
            zero_ns: when it began, by the host's clock.
            ahead_ns: how far the GPU's clock is ahead.
        """
        self._tables.places[AddressRow.ZERO_NS], self._tables.places[AddressRow.AHEAD_NS] = zero_ns, ahead_ns

    def go(self) -> int:
        """Run :func:`~gpusched_env.devices.cuda.real_time.loop.drive` to the end, or until something is to be done."""
        return int(drive(*self._arguments()))

    def note_command(self) -> None:
        """Note that a command of the scheduler's own was carried out; it is asked again."""
        self._tables.counts[LoopCount.DECIDING] = 0
        note_own_command(self._tables)

    @property
    def commands(self) -> int:
        """Commands that were no waits."""
        return int(self._tables.counts[LoopCount.COMMANDS] - self._tables.counts[LoopCount.WAITS])

    @property
    def took_us(self) -> list[float]:
        """How long each command took: hearing from the GPU, finding what is next, and handing over."""
        return cast("list[float]", (self._took[:, 0] / PS_PER_US).tolist())

    @property
    def intervals_us(self) -> list[float]:
        """How long each decision took, from the view to when it stood."""
        count = int(self._tables.counts[LoopCount.DECISIONS])
        return cast("list[float]", (self._tables.decided_ps[:count] / PS_PER_US).tolist())

    @property
    def launches_us(self) -> list[float]:
        """How long each launch took, as :attr:`took_us`."""
        took = self._took
        return cast("list[float]", (took[took[:, 1] == LAUNCH, 0] / PS_PER_US).tolist())

    @property
    def _took(self) -> NDArray[np.int64]:
        return self._tables.took[: int(self._tables.counts[LoopCount.COMMANDS])]

    def failure(self, reason: int) -> GpuError:
        """The error that says why the GPU was driven no further."""
        if reason == FAULT:
            return GpuError(f"the driver answers with error {int(self._tables.counts[LoopCount.STATUS])}")
        if reason == HANGS:
            return GpuError("what is on the GPU neither starts nor ends")
        return GpuError(
            f"this cannot be launched in compiled code: onto some SMs only, or with {LAUNCHES} others unfinished"
        )
