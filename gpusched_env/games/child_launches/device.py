"""What a GPU is to a scheduler of child launches: what it sees and can say, the protocol of both devices at warp
granularity, what these do alike, and what a run leaves behind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import DeadlockError, GpuschedError, IllegalCommand, InputError
from gpusched_env.games.child_launches.hardware.warp_machine import WarpMachine
from gpusched_env.games.child_launches.problem import LaunchProblem
from gpusched_env.scheduling.guards import OneThread, one_thread_at_a_time

LAUNCH: Final = np.dtype(
    [
        (name, np.int64)
        for name in ("parent", "request", "blocks", "created_ps", "queued_ps", "started_ps", "ended_ps", "finished_ps")
    ]
)
"""A launch, a row each, in order of creation; its id is its row.

* ``parent``: the launch that it is a child of, -1 for the host's. ``request``: its row in the problem's tables, or -1.
* ``blocks``: of its grid.
* ``created_ps``: the decision to launch it. ``queued_ps``: it has a hardware queue. ``started_ps``: its first block is
  on an SM. ``ended_ps``: its last block has ended. ``finished_ps``: its children have finished, too.
"""

TOTALS: Final = np.dtype(
    [
        (name, np.int64)
        for name in ("warp_ps", "decisions", "spawned", "refused", "spilled", "resident_blocks", "peak_blocks")
    ]
)
"""Sums over a run.

* ``warp_ps``: time integral of the warps on SMs that have not ended.
* ``decisions``, ``spawned``: requests that were asked about; those answered with a launch that was not refused.
* ``refused``: launches that failed because the pool was full. ``spilled``: that took longer because it was.
* ``resident_blocks``: now; ``peak_blocks``: at most.
"""


@dataclass(frozen=True, slots=True)
class Spawn:
    """The decision to launch the child."""


@dataclass(frozen=True, slots=True)
class Serialise:
    """The decision that the thread does the work itself."""


Decision = Spawn | Serialise
SPAWN: Final = Spawn()
SERIALISE: Final = Serialise()


def check_decision(decision: object, asked: bool) -> None:
    """Refuse what is no decision, or one that nobody asked for.

    Raises:
        IllegalCommand: it is.
    """
    if not isinstance(decision, (Spawn, Serialise)):
        raise IllegalCommand(f"{decision!r} is no decision on a launch request, which is Spawn() or Serialise()")
    if not asked:
        raise IllegalCommand(f"{decision!r}: no launch request waits for a decision")


@dataclass(frozen=True, slots=True)
class LaunchKnowledge:
    """What is known before an application starts: the machine, and from what work on threads ask."""

    machine: WarpMachine
    threshold: int
    aggregated: bool


REQUEST: Final = np.dtype(
    [
        (name, np.int64)
        for name in (
            *("now_ps", "request", "kernel", "nesting", "work", "items", "blocks"),
            *("calls", "position", "spawned", "serial_work", "largest_work"),
            *("waiting", "queues", "resident_blocks", "resident_warps", "parent_blocks", "room"),
        )
    ]
)
"""The columns of a request; :class:`RequestView` has their meaning."""


@dataclass(frozen=True, slots=True)
class RequestView:
    """A request to launch a child, and the state of the GPU as its grid management unit has it. Times in ps.

    The lanes of a warp that call at once are asked about one after another, in order of lanes, at one instant.
    """

    now_ps: int
    request: int
    """Row in the tables of the problem."""
    kernel: int
    """Number of the host's kernel."""
    nesting: int
    """0: a thread of that kernel asks; 1: one of a child, and so on."""
    work: int
    """Serial iterations of the thread's loop: the launch call's additional argument."""
    items: int
    """Threads of the child."""
    blocks: int
    """Thread blocks of the child."""
    calls: int
    """Lanes of the warp that call now."""
    position: int
    """How many of the lanes that call were asked about before this one."""
    spawned: int
    """How many of the lanes that were asked about will launch."""
    serial_work: int
    """Largest work that a lane of the warp does itself in this turn, as far as decided: the warp waits for it."""
    largest_work: int
    """Largest work among the lanes that call."""
    waiting: int
    """Children that have no hardware queue yet."""
    queues: int
    """Hardware queues in use."""
    resident_blocks: int
    resident_warps: int
    parent_blocks: int
    """Blocks of the host's kernel that are not on an SM yet."""
    room: int
    """Launches until the pool is full; a very large number without a pool."""
    inside: int
    """Child blocks between the decision to launch them and their end, those of this warp's turn included."""
    running: int
    """Child blocks on SMs."""
    blocks_ended: int
    block_ps: float
    """Mean residency of child blocks that ended; 0: none has."""
    recent_block_ps: float
    """An exponential mean of the residency of the last 16 or so child blocks that ended; 0: none has."""
    window_running: float
    """Mean of ``running`` over the last whole window of 1,024 cycles."""
    last_running: float
    """Mean of ``running`` over the last window in which any ran; 0: none."""
    busy_running: float
    """Mean of ``running`` over all windows in which any ran; 0: none."""
    warp_ps: float
    """Mean residency of the child warps of the last window in which any ended; 0: none."""
    warp_1024_ps: float
    """``warp_ps`` with each warp counted as 1,024 cycles at most: a counter reset every window shows no more."""
    warp_4096_ps: float
    """``warp_ps`` with each warp counted as 4,096 cycles at most."""


def request_view(request: np.void, monitor: np.void) -> RequestView:
    """The view of a row of :data:`REQUEST` and one of :data:`~gpusched_env.games.child_launches.monitors.MONITOR`."""
    columns: Any = request.item()
    counts: Any = monitor.item()
    inside, running, blocks, blocks_ps, _, _, _, busy, _, _, _, _, *means = counts
    recent_ps, window_running, last_running, busy_running, *warp_times_ps = means
    blocks_mean_ps = blocks_ps / blocks if blocks else 0.0
    mean_running = busy_running / busy if busy else 0.0
    counted = (inside, running, blocks, blocks_mean_ps, recent_ps)
    values: Any = (*columns, *counted, window_running, last_running, mean_running, *warp_times_ps)
    return RequestView(*values)


NO_LIMIT: Final = 1 << 40
"""Room in a pool that is not limited."""


class LaunchDevice(Protocol):
    """One GPU that runs one application.

    Use: ``view = reset(problem)``, then ``apply(decision)`` and ``view = advance()`` until that is ``None``: the
    application has finished.
    """

    @property
    def time_ps(self) -> int:
        """Simulated time since the reset."""

    @property
    def totals(self) -> np.void:
        """A row of :data:`~gpusched_env.games.child_launches.device.TOTALS`."""

    @property
    def launches(self) -> NDArray[np.void]:
        """Rows of :data:`~gpusched_env.games.child_launches.device.LAUNCH`; -1: not yet."""

    def reset(self, problem: LaunchProblem) -> RequestView | None:
        """Start the application and run to the first request.

        Raises:
            DeadlockError: as of :meth:`advance`.
        """

    def apply(self, decision: Decision) -> None:
        """Say what is to be done with the request. A launch that the pool has no room for fails or takes longer.

        Raises:
            IllegalCommand: nothing is asked now, or this is no decision.
        """

    def advance(self) -> RequestView | None:
        """The next request; ``None`` at the end.

        Raises:
            DeadlockError: the application has not finished, but nothing can happen any more.
        """

    def snapshot(self) -> Any:
        """What :meth:`restore` needs to come back to the present request; can be pickled.

        Raises:
            GpuschedError: the present request has its decision, but :meth:`advance` was not called.
        """

    def restore(self, snapshot: Any) -> RequestView | None:
        """Return to a snapshot exactly, of the same kind of device; gives what ``advance`` gave there.

        Raises:
            DeadlockError: nothing could happen any more there.
            InputError: this is no snapshot.
        """


def deadlock_text(
    problem: LaunchProblem, now_ps: int, *, waiting: int, in_use: int, head: int, live_warps: int, resident_blocks: int
) -> str:
    """What waits for what.

    Args:
        problem: of the application.
        now_ps: time.
        waiting: launches without a hardware queue.
        in_use: hardware queues.
        head: the launch whose blocks are to be handed out next, or -1.
        live_warps: on SMs.
        resident_blocks: on SMs.
    """
    text = (
        f"{problem.name}: nothing can happen any more after {now_ps / 1e6:.6g} us: {waiting} launches wait for one of "
        f"{problem.machine.launches.hardware_queues} hardware queues, of which {in_use} are in use"
    )
    if problem.held_until == "children":
        text += " until children have finished"
    if head >= 0:
        text += f"; the blocks of launch {head}, next in order, have no room on any SM"
    if problem.parents == "wait":
        text += f"; {resident_blocks} blocks, with {live_warps} warps left, hold their SMs until their children finish"
    return text


class AskingDevice(OneThread, ABC):
    """The part of a :class:`gpusched_env.games.child_launches.device.LaunchDevice` that has no time in it."""

    _problem: LaunchProblem
    _asked = False
    """Whether a request waits, or waited before its answer."""
    _answer: bool | None = None
    _stuck = False
    """Nothing can happen any more."""

    @one_thread_at_a_time
    def apply(self, decision: Decision) -> None:
        check_decision(decision, self._asked and self._answer is None)
        self._answer = isinstance(decision, Spawn)

    @one_thread_at_a_time
    def advance(self) -> RequestView | None:
        if self._stuck:
            raise DeadlockError(self._deadlock())
        if not self._asked:
            return None
        if self._answer is None:
            raise IllegalCommand("a request waits for its decision: apply Spawn() or Serialise() first")
        answer, self._answer = self._answer, None
        return self._run_on(answer)

    def snapshot(self) -> tuple[LaunchProblem, Any]:
        if self._answer is not None:
            raise GpuschedError("a snapshot between a decision and the next request: call advance() first")
        return self._problem, self._saved()

    @one_thread_at_a_time
    def restore(self, snapshot: tuple[LaunchProblem, Any]) -> RequestView | None:
        given: Any = snapshot
        if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], LaunchProblem)):
            raise InputError(f"this device goes back to what its snapshot() gave, not to {type(snapshot).__name__}")
        return self._load(*snapshot)

    @abstractmethod
    def _run_on(self, answer: bool) -> RequestView | None:
        """Run from a request with its answer to the next one."""

    @abstractmethod
    def _saved(self) -> Any:
        """What :meth:`_load` needs besides the problem."""

    @abstractmethod
    def _load(self, problem: LaunchProblem, saved: Any) -> RequestView | None: ...

    @abstractmethod
    def _deadlock(self) -> str:
        """A sentence on what waits for what."""
