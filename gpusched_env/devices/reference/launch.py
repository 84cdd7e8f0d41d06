"""One launch: a kernel, copy or graph on its way from its issue to its end."""

from __future__ import annotations

import enum

from gpusched_env.devices.reference.clock import Alarm, Clock
from gpusched_env.devices.reference.grid import Grid, Tiles
from gpusched_env.devices.reference.world import Job
from gpusched_env.hardware.clock import NEVER
from gpusched_env.scenarios.program import ChildOp, HostOp, NodeOp
from gpusched_env.workload.workload import OpKind


class State(enum.Enum):
    """How far a launch has come."""

    COMING = enum.auto()
    """A child that is not issued yet."""
    PENDING = enum.auto()
    """Issued; the scheduler has not launched it."""
    LAUNCHED = enum.auto()
    """In a stream, where it waits."""
    READY = enum.auto()
    """In a hardware queue, resident, at its engine, or a graph whose nodes run."""
    DONE = enum.auto()
    """Finished or vanished."""


class Launch:
    """Ids count up in order of issue (of children: of creation)."""

    def __init__(
        self,
        clock: Clock,
        id_: int,
        op: HostOp | NodeOp | ChildOp,
        tenant: int,
        job: Job,
        blocks: int,
        parent: Launch | None = None,
    ) -> None:
        """
        Args:
            clock: the device's.
            id_: counts up.
            op: what it carries out.
            tenant: row of the tenants.
            job: that it belongs to.
            blocks: thread blocks of a kernel.
            parent: the graph that it is a node of, or the kernel that launched it.
        """
        self.id = id_
        self.op = op
        self.kind = OpKind.KERNEL if isinstance(op, ChildOp) else op.kind
        self.tenant = tenant
        self.job = job
        self.state = State.PENDING
        self.alarm = Alarm(clock)
        """Its next step: it is ready, it is issued, saved blocks are back, a copy starts or ends."""
        self.preemption = Alarm(clock)
        """The step of its preemption that is under way."""

        # What waits for what.
        self.waits: set[Launch] = set()
        """Unfinished launches that it waits for."""
        self.waiters: set[Launch] = set()
        """Launches that wait for it."""
        self.before: Launch | None = None
        self.behind: Launch | None = None
        """Its neighbours in its program's stream, unfinished; of a window: in the stream that it was launched into,
        until it ends."""
        self.parent = parent
        self.parts = 0
        """Nodes or children that have not finished."""
        self.emptied = False
        """Whether it has nothing to do itself any more, besides its parts."""
        self.tiles = Tiles(blocks)
        self.awaits: Tiles | None = None
        """Of the producer that its blocks wait for."""

        # How it was launched.
        self.stream = op.stream if isinstance(op, HostOp) else -1
        """Row of the stream; -1: none."""
        self.windowed = False
        """Whether it passed a window."""
        self.gap_ps = 0
        self.branch = 0
        self.priority = 0
        self.partition = (0, 0)
        self.returned = False
        """Whether it was preempted and not launched since."""

        # Where its blocks are.
        self.grid: Grid | None = None
        self.blocks = blocks
        """Blocks to run when it is next put on the device."""
        self.saved = 0
        self.saved_left = 1.0
        self.preempting = False
        self.preemptions = 0
        self.restore_ps = 0
        """Time to read saved blocks back when it is launched again."""
        self.readback_ps = 0
        """When blocks that were saved while it stays launched are, or were, read back."""

        self.issued_ps = clock.now
        self.launched_ps = NEVER
        self.ready_ps = 0
        """Earliest start, as far as it is known."""
        self.started_ps = NEVER
        """Of its first block since it was last launched (of a graph: of its first node)."""
        self.first_started_ps = NEVER
        self.ran_ps = 0
        """What it ran before."""
        self.preempted_ps = NEVER
        """When it was last told to make way."""

    @property
    def scheduled(self) -> bool:
        """Whether the scheduler launches it: kernels and graphs, not copies and nodes."""
        return self.kind in (OpKind.KERNEL, OpKind.GRAPH) and not isinstance(self.op, NodeOp)

    @property
    def left_us(self) -> float:
        """Profiled device time of what is left of its job; of a child: as of its parent."""
        root = self
        while root.parent is not None:
            root = root.parent
        return root.op.left_us if isinstance(root.op, HostOp) else 0.0

    def wait_for(self, other: Launch) -> None:
        """Not to start before another one, which is unfinished, has ended."""
        self.waits.add(other)
        other.waiters.add(self)

    def elapsed_ps(self, now: int) -> int:
        """How long it has run."""
        return self.ran_ps + (now - self.started_ps if self.started_ps < NEVER else 0)


def in_order(launches: set[Launch]) -> list[Launch]:
    """Launches in order of id."""
    return sorted(launches, key=lambda launch: launch.id)
