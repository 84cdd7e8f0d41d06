"""What the reference device at warp granularity is made of."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from gpusched_env.games.child_launches.hardware.warp_machine import clock_now


@dataclass(eq=False)
class LaunchedGrid:
    """A launch: a kernel of the host, or a child."""

    number: int
    first_thread: int
    """The first of its threads; -1: its threads are equal."""
    iterations: int
    """Iterations of each thread, where these are equal."""
    threads: int
    blocks: int
    parent: LaunchedGrid | None
    nesting: int
    """Levels of launches above it; 0: the host launched it."""
    block: WarpBlock | None = None
    """The block whose warp launched it."""
    fellows: list[LaunchedGrid] = field(default_factory=list)
    """Grids that were launched with it, as one: they use its hardware queue."""
    leader: LaunchedGrid | None = None
    """The grid that has this one among its fellows."""
    handed_out: int = 0
    """Blocks that have been on an SM."""
    unended: int = 0
    """Blocks that have not ended."""
    children: int = 0
    """Launches of its threads that have not finished."""
    ready_ps: int = 0
    ready: bool = False
    """Whether its blocks may be handed out."""
    next_in_queue: LaunchedGrid | None = None
    """The grid behind it in its software queue."""
    finished: bool = False

    @property
    def launch(self) -> list[LaunchedGrid]:
        """All grids of the launch that this one leads, in order of lanes."""
        return [self, *self.fellows]

    @property
    def launch_finished(self) -> bool:
        """Whether all grids of the launch that this one leads have finished."""
        return all(grid.finished for grid in self.launch)


@dataclass(eq=False)
class WarpBlock:
    """A thread block on an SM."""

    grid: LaunchedGrid
    sm: WarpSm
    started_ps: int
    warps: int = 0
    """Warps that have not ended."""
    children: int = 0
    """Launches of its warps that have not finished."""
    last_child: LaunchedGrid | None = None


@dataclass(eq=False)
class WarpGroup:
    """A warp, or equal ones of a block that request nothing."""

    block: WarpBlock
    first_thread: int
    lanes: int
    count: int = 1
    turn: int = -1
    """Number of the turn of requests: each lane's first, second and so on."""
    target: float = 0.0
    """What its SM's clock shows when its phase ends."""
    lines: int = 0
    issue: int = 0
    """What they ask for in their phase (:func:`gpusched_env.games.child_launches.hardware.warp_machine.demand`)."""
    serial_work: list[int] = field(default_factory=list)
    """Work of the lanes that do their requests themselves in this turn."""
    spawned: list[LaunchedGrid] = field(default_factory=list)
    """Children that it launches in this turn."""
    spilled: int = 0
    """Children of this turn for which the pool had no room."""


@dataclass(eq=False)
class WarpSm:
    """A streaming multiprocessor: room for blocks, and a clock that its running warps share."""

    threads: int
    warps: int
    blocks: int
    registers: int
    shared: int
    running: list[WarpGroup] = field(default_factory=list)
    """The groups that run, in order of the end of their phases; of equal ones the first to begin."""
    live_warps: int = 0
    clock: float = 0.0
    since_ps: int = 0
    rate: float = 0.0
    next_ps: int = 0
    """The time at which the first phase ends."""

    def begin(self, warps: WarpGroup, cycles: float, now_ps: int) -> None:
        """A phase of ``cycles``, alone, begins."""
        warps.target = clock_now(self.clock, self.since_ps, self.rate, now_ps) + cycles
        place = len(self.running)
        while place and self.running[place - 1].target > warps.target:
            place -= 1
        self.running.insert(place, warps)

    @property
    def due(self) -> bool:
        """Whether a phase ends now."""
        return bool(self.running) and self.running[0].target <= self.clock


@dataclass(eq=False)
class Queues:
    """Launches on their way to the SMs."""

    waiting: deque[LaunchedGrid] = field(default_factory=deque)
    """Grids that wait for a hardware queue, in order."""
    children: int = 0
    """Children launched, but without a hardware queue: what the pool holds."""
    in_use: int = 0
    """Hardware queues in use."""
    handing_out: deque[LaunchedGrid] = field(default_factory=deque)
    """Children in hardware queues with blocks that were not on an SM yet, in order."""
    ready_ps: int = 0
    """The time at which the last grid that got a hardware queue is, or was, ready."""
