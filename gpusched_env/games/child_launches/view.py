"""What a scheduler of child launches sees, and what it can say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gpusched_env.errors import IllegalCommand
from gpusched_env.games.child_launches.hardware.warp_machine import WarpMachine


@dataclass(frozen=True, slots=True)
class Spawn:
    """Launch the child."""


@dataclass(frozen=True, slots=True)
class Serialise:
    """The thread does the work itself."""


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
    """Its blocks."""
    calls: int
    """Lanes of the warp that call now."""
    position: int
    """How many of them were asked about before this one."""
    spawned: int
    """How many of these will launch."""
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
    """The same, an exponential mean of the last 16 or so."""
    window_running: float
    """Mean of ``running`` over the last whole window of 1,024 cycles."""
    last_running: float
    """Over the last window in which any ran; 0: none."""
    busy_running: float
    """Mean over all windows in which any ran; 0: none."""
    warp_ps: float
    """Mean residency of the child warps of the last window in which any ended; 0: none."""
    warp_1024_ps: float
    """The same, with each warp counted as 1,024 cycles at most: a counter that is reset every window shows no more."""
    warp_4096_ps: float
    """As 4,096 cycles at most."""


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
