"""One launch: a kernel, copy or graph on its way from its issue to its end."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field

from gpusched_env.devices.reference.clock import Alarm, Clock, Phase
from gpusched_env.devices.reference.grid import Grid
from gpusched_env.devices.reference.tiling import Tiling
from gpusched_env.hardware.clock import NEVER
from gpusched_env.hardware.tiles import KERNEL
from gpusched_env.scenarios.program import ChildOp, HostOp, NodeOp
from gpusched_env.scheduling.synchronising import NEEDS
from gpusched_env.workload.host.objects import Job
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


@dataclass(eq=False)
class Launch:
    """Ids count up in order of issue (of children: of creation)."""

    clock: InitVar[Clock]
    id: int
    op: HostOp | NodeOp | ChildOp
    """What it carries out."""
    tenant: int
    """Row of the tenants."""
    job: Job
    blocks: int
    """Thread blocks to run when it is next put on the device; of a graph, of all its kernels."""
    parent: Launch | None = None
    """The graph that it is a node of, or the kernel that launched it."""
    state: State = State.PENDING

    # What waits for what.
    waits: set[Launch] = field(default_factory=set)
    """Unfinished launches that it waits for."""
    waiters: set[Launch] = field(default_factory=set)
    """Launches that wait for it."""
    parts: int = 0
    """Nodes or children that have not finished."""
    nodes: list[Launch] = field(default_factory=list)
    """Of a graph that has begun."""
    emptied: bool = False
    """Whether it has nothing to do itself any more, besides its parts."""
    producer: Launch | None = None
    """The one whose tiles it needs."""
    tiling: Tiling | None = None
    """Where its tiles are synchronised."""
    gate: Launch | None = None
    """The consumer of its tiles that a wait kernel keeps back until it has started."""
    gated: bool = False
    """Whether a wait kernel comes before it."""
    reshaped: bool = False
    """Whether it was given another form than it was issued in."""

    # How it was launched.
    windowed: bool = False
    """Whether it passed a window."""
    gap_ps: int = 0
    branch: int = 0
    priority: int = 0
    partition: tuple[int, int] = (0, 0)
    preempted: bool = False
    """Whether it was preempted and not launched since."""

    # Where its blocks are.
    grid: Grid | None = None
    saved: int = 0
    saved_left: float = 1.0
    preempting: bool = False
    preemptions: int = 0
    restore_ps: int = 0
    """Time to read saved blocks back when it is launched again."""
    readback_ps: int = 0
    """When blocks that were saved while it stays launched are, or were, read back."""

    launched_ps: int = NEVER
    ready_ps: int = 0
    """Earliest start, as far as it is known."""
    started_ps: int = NEVER
    """Of its first block since it was last launched (of a graph: of its first node)."""
    first_started_ps: int = NEVER
    ran_ps: int = 0
    """What it ran before."""
    preempted_ps: int = -NEVER
    """When a preemption of it was last commanded."""

    def __post_init__(self, clock: Clock) -> None:
        self.kind = OpKind.KERNEL if isinstance(self.op, ChildOp) else self.op.kind
        self.row = self.op.stream if isinstance(self.op, HostOp) else -1
        """Row of the stream that it was issued into; -1: none."""
        self.stream = self.row
        """Row of the stream that it was launched into, before that of the one that it was issued into; -1: none."""
        self.whole = self.blocks
        """Its thread blocks when it runs from its start."""
        self.issued_ps = clock.now
        self.alarm = Alarm(clock)
        """Its next step: it is ready, it is issued, saved blocks are back, a copy starts or ends."""
        self.preemption = Alarm(clock)
        """The step of its preemption that is under way."""

    @property
    def identity(self) -> int:
        """Row of the kernel table, behind which graphs are; -1: it is a copy."""
        return self.op.identity

    @property
    def arrived_ps(self) -> int:
        """When its job arrived."""
        return self.job.arrived_ps

    @property
    def deadline_ps(self) -> int:
        """When its job's launches are due."""
        return self.job.due_ps

    @property
    def upstream(self) -> int:
        """How many unfinished launches it waits for."""
        return len(self.waits)

    @property
    def parent_id(self) -> int:
        """Of :attr:`parent`; -1: there is none."""
        return -1 if self.parent is None else self.parent.id

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

    @property
    def needed_tiles(self) -> tuple[int, int, int]:
        """What it needs of the tiles of its producer: kind of needs, fold, steps; -1, 0, 0: nothing."""
        if not isinstance(self.op, HostOp) or self.op.tiles < 0:
            return -1, 0, 0
        return NEEDS.index(self.op.needs.kind), self.op.needs.fold, self.op.needs.steps

    @property
    def synchronised(self) -> tuple[int, int, int]:
        """Id of its producer (-1: it is finished); under which policy it waits for tiles, and posts its own."""
        producer = self.producer
        awaits = self.tiling.awaits if self.tiling else None
        posts = self.tiling.posts if self.tiling else None
        return (
            -1 if producer is None or producer.state is State.DONE else producer.id,
            KERNEL if awaits is None else awaits.numbers.policy,
            KERNEL if posts is None else posts.numbers.policy,
        )

    @property
    def on_gpu(self) -> tuple[int, int]:
        """Its blocks that wait, and that are resident; of a graph summed over its nodes."""
        if self.nodes:
            waiting, resident = zip(*(node.on_gpu for node in self.nodes), strict=True)
            return sum(waiting), sum(resident)
        if self.grid is not None:
            return self.grid.waiting, self.grid.resident
        return (0 if self.emptied else self.blocks), 0

    def wait_for(self, other: Launch) -> None:
        """Not to start before another one, which is unfinished, has ended."""
        self.waits.add(other)
        other.waiters.add(self)

    def set_off(self, at_ps: int, phase: Phase, then: Callable[[Launch], object]) -> None:
        """Its next step: ``then`` is called with it."""
        self.alarm.set(at_ps, phase, self.id, lambda: then(self))

    def elapsed_ps(self, now: int) -> int:
        """How long it has run."""
        return self.ran_ps + (now - self.started_ps if self.started_ps < NEVER else 0)


def in_order(launches: set[Launch]) -> list[Launch]:
    """Launches in order of id."""
    return sorted(launches, key=lambda launch: launch.id)
