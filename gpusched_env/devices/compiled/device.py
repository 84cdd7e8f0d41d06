"""The compiled device: one environment behind the protocol that all devices share, what it shows, and what it sends
to a GPU outside.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.compiled import layout
from gpusched_env.devices.compiled.arena import Arena, Saved
from gpusched_env.devices.compiled.driving import Intervals, dispatcher_of
from gpusched_env.devices.compiled.entry import (
    compile_units,
    drive,
    empty_outbox,
    look_cores,
    look_dependencies,
    look_jobs,
    look_occupancy,
    look_pending,
    look_running,
    look_tenants,
    tenant_comes,
    tenant_goes,
)
from gpusched_env.devices.compiled.waiting import Waits
from gpusched_env.devices.rules.rows import deadlock
from gpusched_env.errors import DeadlockError
from gpusched_env.hardware.clock import NEVER, to_ps, to_us
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.contract import Scheduler, check_loop, jobs_to_come, presence_error
from gpusched_env.scheduling.cores import CoreColumn
from gpusched_env.scheduling.guards import one_thread_at_a_time
from gpusched_env.scheduling.legality import check_command, write_numbers
from gpusched_env.scheduling.reward import Costs
from gpusched_env.scheduling.room import WaitsForRoom
from gpusched_env.scheduling.showing import Showing, complete_view
from gpusched_env.scheduling.timeline import Detail, Timeline
from gpusched_env.scheduling.view import (
    DependencyColumn,
    JobColumn,
    PendingColumn,
    RunningColumn,
    TenantColumn,
    View,
    ViewTable,
)

TABLES: Final = (PendingColumn, RunningColumn, TenantColumn, JobColumn, CoreColumn)
WIDTH: Final = {columns: len(columns) for columns in TABLES}
"""Columns of tables: an enumeration takes a microsecond to count its members."""


@one_thread_at_a_time
def _pending(arena: Arena) -> ViewTable:
    return ViewTable(arena.table("pending", look_pending, WIDTH[PendingColumn]), PendingColumn)


@one_thread_at_a_time
def _dependencies(arena: Arena) -> ViewTable:
    pairs = arena.table("dependencies", look_dependencies, len(DependencyColumn))
    return ViewTable(ordered_dependencies(_pending(arena).array, pairs), DependencyColumn)


def ordered_dependencies(pending: NDArray[np.float64], pairs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pairs in the order of the pending launches: a launch's own are found newest first."""
    order = {launch: place for place, launch in enumerate(pending[:, PendingColumn.ID].tolist())}
    rows = sorted(pairs.tolist(), key=lambda row: (order[row[0]], row[1]))
    return np.array(rows).reshape(-1, len(DependencyColumn))


@one_thread_at_a_time
def _running(arena: Arena) -> ViewTable:
    return ViewTable(arena.table("running", look_running, WIDTH[RunningColumn]), RunningColumn)


@one_thread_at_a_time
def _tenants(arena: Arena) -> ViewTable:
    return ViewTable(arena.table("tenants", look_tenants, WIDTH[TenantColumn]), TenantColumn)


@one_thread_at_a_time
def _jobs(arena: Arena) -> ViewTable:
    return ViewTable(arena.table("jobs", look_jobs, WIDTH[JobColumn]), JobColumn)


@one_thread_at_a_time
def _cores(arena: Arena) -> ViewTable:
    return ViewTable(arena.table("cores", look_cores, WIDTH[CoreColumn]), CoreColumn)


@one_thread_at_a_time
def _occupancy(arena: Arena) -> float:
    return float(look_occupancy(arena.address))


BUILDERS: Final[dict[str, Callable[[Arena], Any]]] = {
    "time_us": lambda arena: arena.place[1] / 1e6,
    "pending": _pending,
    "running": _running,
    "tenants": _tenants,
    "jobs": _jobs,
    "dependencies": _dependencies,
    "cores": _cores,
    "sms": lambda arena: arena.problem.gpu.sms,
    "busy_sms": lambda arena: int(arena.env["busy_sms"]),
    "occupancy": _occupancy,
    "dram": lambda arena: float(arena.env["traffic"]) / arena.problem.gpu.dram_bytes_per_us,
    "horizon_us": lambda arena: arena.problem.scenario.horizon_us,
}


SENT_COLUMNS: Final = 10
"""Number of columns of the table that :func:`~gpusched_env.devices.compiled.entry.empty_outbox` fills."""
QUEUE = ["stream", "priority", "partition_first", "partition_sms"]
"""Fields of a launch that say in which queue it is."""


class Sent(NamedTuple):
    """A launch on its way, or one that is to come back."""

    slot: int
    launch: int
    """Id of the launch."""
    op: int
    """Row of what it carries out, in the problem's tables."""
    stream: int
    """Row of the stream that it was launched into."""
    priority: int
    first: int
    """First of the SMs that it may run on, in the order of :func:`gpusched_env.hardware.placement.sm_order`."""
    sms: int
    """Number of SMs that it may run on; all of the GPU's without a partition."""
    after: tuple[int, ...]
    """Ids of unfinished launches of other queues that it waits for, ascending. A queue is a stream at a priority on
    some SMs."""
    blocks: int
    """Blocks that a kernel has left to run; -1: all."""
    recalled: bool
    """Whether it was sent before, and is to hand out no further blocks."""


def take_sent(arena: Arena, *, every: bool = False) -> list[Sent]:
    """Empty the outbox: launches in the order in which they were handed to their streams, and recalled.

    Args:
        every: :attr:`Sent.after` names launches of the own queue, too.
    """
    count = int(arena.env["sent"])
    if count == 0:
        return []
    rows = np.empty((count, SENT_COLUMNS), np.int64)
    empty_outbox(arena.address, rows)
    return [
        Sent(
            slot,
            launch,
            op,
            stream,
            priority,
            first,
            sms,
            _after(arena, slot, every) if waits or every else (),
            blocks,
            bool(recalled),
        )
        for slot, launch, op, stream, priority, first, sms, waits, blocks, recalled in rows.tolist()
    ]


def _after(arena: Arena, slot: int, every: bool) -> tuple[int, ...]:
    launches, edges = arena.section("launches"), arena.section("edges")
    launch = launches[slot]
    before = {int(launch["previous"])} - {layout.NONE}
    number = int(launch["edges_in"])
    while number != layout.NONE:
        edge = edges[number]
        if launches["id"][edge["source"]] == edge["source_id"]:
            before.add(int(edge["source"]))
        number = int(edge["next_in"])
    queue = launch[QUEUE]
    return tuple(sorted(int(launches["id"][other]) for other in before if every or launches[other][QUEUE] != queue))


class CompiledDevice:
    """One simulated GPU with its tenants (see :class:`gpusched_env.scheduling.contract.Device`)."""

    def __init__(self) -> None:
        # All at once, so that whoever makes a device before starting processes compiles for all of them.
        self._drive_at = compile_units()["drive"]
        self.arena: Arena = Arena()
        self._showing = Showing(self.arena, BUILDERS)
        self._place = (0, 0)
        """Commands and time of what the device shows."""
        self._stop_ps = NEVER

    @property
    def entry(self) -> threading.RLock:
        """The lock of the memory, which one thread uses at a time."""
        return self.arena.entry

    @one_thread_at_a_time
    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs", snapshots: bool = False) -> View | None:
        """Start an episode and run to the first decision epoch (``None``: it ended before one)."""
        self._showing.change()
        self.arena.reset(problem, seed, record)
        self.arena.env["real_ps"] = self._stop_ps
        return self.advance()

    @property
    def stop_us(self) -> float:
        """Where :meth:`advance` stands still (``inf``: nowhere); not before the present time."""
        return to_us(self._stop_ps)

    @stop_us.setter
    def stop_us(self, us: float) -> None:
        self._stop_ps = to_ps(us)
        if self.arena.address:
            self.arena.env["real_ps"] = self._stop_ps

    @one_thread_at_a_time
    def come(self, tenant: int, jobs: int | None = None) -> None:
        """A tenant comes from outside.

        Raises:
            IllegalCommand: it may not.
        """
        problem = self.arena.problem
        if not tenant_comes(self.arena.address, tenant, jobs_to_come(problem, tenant, jobs)):
            raise presence_error(problem, tenant, "come")
        self._showing.change()

    @one_thread_at_a_time
    def go(self, tenant: int) -> None:
        """A tenant sends nothing any more.

        Raises:
            IllegalCommand: it may not.
        """
        problem = self.arena.problem
        check_loop(problem, tenant, "go")
        if not tenant_goes(self.arena.address, tenant):
            raise presence_error(problem, tenant, "go")
        self._showing.change()

    @property
    def done(self) -> bool:
        """Every tenant with a finite number of jobs has completed them (and there is one)."""
        return bool(self.arena.env["done"])

    @property
    @one_thread_at_a_time
    def timeline(self) -> Timeline:
        """What happened so far."""
        self.arena.flush()
        return self.arena.timeline

    @property
    def time_us(self) -> float:
        """Simulated time."""
        return int(self.arena.env["now_ps"]) / 1e6

    @property
    @one_thread_at_a_time
    def costs(self) -> Costs:
        """Time integrals since the reset, exact at :attr:`time_us`."""
        return self.arena.costs()

    @one_thread_at_a_time
    def apply(self, command: Command) -> None:
        """Carry out one command; a refused one changes nothing.

        Raises:
            IllegalCommand: names the command and why it is not legal now.
        """
        self._tell(command)
        self._drive(running=False)

    @one_thread_at_a_time
    def advance(self) -> View | None:
        """The view for the next decision, or ``None`` at the end of the episode."""
        reason = self._drive(running=True)
        if reason == layout.DEADLOCK:
            raise self.deadlock()
        return self._look().view() if reason == layout.DECIDE else None

    def drives(self, scheduler: Scheduler, problem: Problem) -> bool:
        """Whether compiled code can launch, or wait, between two decisions of a scheduler."""
        return isinstance(scheduler, WaitsForRoom) or dispatcher_of(scheduler) is not None

    @one_thread_at_a_time
    def drive(self, scheduler: Scheduler, problem: Problem, seed: int, *, record: Detail = "jobs") -> int:
        """Play an episode of a scheduler (:meth:`drives`); all else as :meth:`reset`."""
        if self.reset(problem, seed, record=record) is None:
            return 0
        kind = Waits if isinstance(scheduler, WaitsForRoom) else Intervals
        episode = kind(self.arena, self._drive_at, scheduler)
        if episode.play(lambda: self._look().view(), self._tell, self._go_on) == layout.DEADLOCK:
            raise self.deadlock()
        return episode.commands

    def _tell(self, command: Command) -> None:
        """Give the device a command, to be carried out next; a refused one changes nothing."""
        legal = check_command(command, self._look(), self.arena.problem, self.arena.operation_of)
        write_numbers(legal, self.arena.given)
        self._showing.change()

    def _go_on(self) -> int:
        """Carry out the command that was given, if one was, and go on; says why it stopped."""
        return self._drive(running=True)

    def _look(self) -> Showing:
        """What it shows at present."""
        # A batch takes steps behind this object's back.
        place = self.arena.place
        if place != self._place:
            self._showing.change()
            self._place = place
        return self._showing

    def _drive(self, *, running: bool) -> int:
        while True:
            reason = int(drive(self.arena.address, self._drive_at, running))
            if reason in (layout.OVER, layout.DECIDE, layout.DEADLOCK, layout.IDLE):
                return reason
            self.arena.serve(reason)

    @one_thread_at_a_time
    def view(self) -> View:
        """A snapshot at the present time, whether or not it is a decision epoch."""
        return complete_view(self.arena, BUILDERS)

    def deadlock(self) -> DeadlockError:
        """The error that says what waits for what."""
        arena = self.arena
        return deadlock(arena.problem, self.view(), arena.clients["outstanding"].tolist(), arena.held())

    # ---- snapshots -------------------------------------------------------------------------------

    @one_thread_at_a_time
    def snapshot(self) -> Saved:
        """The whole state, as it is: costs as much as copying it."""
        return self.arena.save()

    @one_thread_at_a_time
    def restore(self, snapshot: Saved) -> View | None:
        """Return to a snapshot exactly."""
        self.arena.load(snapshot)
        self.arena.env["real_ps"] = self._stop_ps
        self._showing.change()
        return None if self.arena.env["over"] or self.arena.env["stands"] else self._look().view()
