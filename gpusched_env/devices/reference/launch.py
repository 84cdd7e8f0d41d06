"""One launch on its way from its issue to its end, the lines that it stands in, and the launches that it makes itself.

Lines are the streams of programs, and the scheduler's own for a window. Graphs make nodes, kernels children.
"""

from __future__ import annotations

import enum
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field

from gpusched_env.devices.reference.blocks import Grid
from gpusched_env.devices.reference.tiling import Tiling
from gpusched_env.devices.reference.world import Alarm, Clock, Phase, World
from gpusched_env.hardware.clock import NEVER, PS_PER_US, to_ps
from gpusched_env.hardware.tiles import KERNEL
from gpusched_env.scenarios.program import ChildOp, HostOp, NodeOp
from gpusched_env.scheduling.synchronising import NEEDS
from gpusched_env.workload.host.states import Job
from gpusched_env.workload.workload import OpKind


class State(enum.Enum):
    """How far a launch has come."""

    COMING = enum.auto()
    """A child that is not issued yet."""
    PENDING = enum.auto()
    """Issued; the scheduler has not launched it."""
    LAUNCHED = enum.auto()
    """Launched by the scheduler, and waiting in a stream."""
    READY = enum.auto()
    """Ready: in a hardware queue, resident, at its engine, or a graph whose nodes run."""
    DONE = enum.auto()
    """Finished or vanished."""


@dataclass(eq=False)
class Launch:
    """A launch; ids count up in order of issue (of children: of creation)."""

    clock: InitVar[Clock]
    id: int
    op: HostOp | NodeOp | ChildOp
    """The operation that it carries out."""
    tenant: int
    """Row of its tenant."""
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
    """Nodes of a graph that has begun."""
    emptied: bool = False
    """Whether it has nothing to do itself any more, besides its parts."""
    producer: Launch | None = None
    """The launch whose tiles it needs."""
    tiling: Tiling | None = None
    """Tiles of the launch, where they are synchronised."""
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
    """Start of its first block since it was last launched (of a graph: of its first node)."""
    first_started_ps: int = NEVER
    ran_ps: int = 0
    """How long it ran before it was launched last."""
    preempted_ps: int = -NEVER
    """When a preemption of it was last commanded."""

    def __post_init__(self, clock: Clock) -> None:
        self.kind = OpKind.KERNEL if isinstance(self.op, ChildOp) else self.op.kind
        self.row = self.op.stream if isinstance(self.op, HostOp) else -1
        """Row of the stream that it was issued into; -1: none."""
        self.stream = self.row
        """Row of the stream that it was launched into, before that of the one that it was issued into; -1: none."""
        self.whole = self.blocks
        """Number of thread blocks when it runs from its start."""
        self.issued_ps = clock.now
        self.alarm = Alarm(clock)
        """Alarm of its next step: it is ready, it is issued, saved blocks are back, a copy starts or ends."""
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
        """Id of :attr:`parent`; -1: there is none."""
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
        """Number of blocks that wait, and that are resident; of a graph summed over its nodes."""
        if self.nodes:
            waiting, resident = zip(*(node.on_gpu for node in self.nodes), strict=True)
            return sum(waiting), sum(resident)
        if self.grid is not None:
            return self.grid.waiting, self.grid.resident
        return (0 if self.emptied else self.blocks), 0

    def wait_for(self, other: Launch) -> None:
        """Wait for the end of another launch, which is unfinished, before the start."""
        self.waits.add(other)
        other.waiters.add(self)

    def set_off(self, at_ps: int, phase: Phase, then: Callable[[Launch], object]) -> None:
        """Set the alarm of its next step: ``then`` is called with it."""
        self.alarm.set(at_ps, phase, self.id, lambda: then(self))

    def elapsed_ps(self, now: int) -> int:
        """How long it has run."""
        return self.ran_ps + (now - self.started_ps if self.started_ps < NEVER else 0)


def in_order(launches: set[Launch]) -> list[Launch]:
    """Launches in order of id."""
    return sorted(launches, key=lambda launch: launch.id)


class Lines:
    """Unfinished launches by stream of a program, in order of issue."""

    def __init__(self) -> None:
        self._lines: defaultdict[int, list[Launch]] = defaultdict(list)

    def join(self, launch: Launch) -> None:
        """A launch is issued: it waits for the one before it."""
        line = self._lines[launch.row]
        if line:
            launch.wait_for(line[-1])
        line.append(launch)

    def leave(self, launch: Launch) -> None:
        """A launch has finished or vanished: the one behind it is behind the one before it, if there is one."""
        line = self._lines[launch.row]
        place = line.index(launch)
        del line[place]
        if 0 < place < len(line):
            line[place].wait_for(line[place - 1])

    def follows(self, launch: Launch, before: Launch) -> bool:
        """Whether a launch waits for an unfinished one anyway: it comes before it in its program's stream."""
        both = isinstance(launch.op, HostOp) and isinstance(before.op, HostOp)
        return both and launch.row == before.row and self._lines[launch.row][0] is not launch


class OwnStream:
    """A stream of the scheduler's."""

    def __init__(self) -> None:
        self.line: deque[Launch] = deque()
        """What was launched into it and has not ended, in order."""
        self.in_flight = 0
        """Launches from when they are launched until they are known to have ended."""
        self.thread_ps = 0
        """When the thread that launches them has launched the last one."""


class OwnStreams:
    """The scheduler's own streams, by row; without a window nothing uses them so."""

    def __init__(self, world: World) -> None:
        problem = world.problem
        self._world = world
        self._depth = 1 if problem.window is None else problem.window.depth
        self._streams = {row: OwnStream() for row, stream in enumerate(problem.streams) if stream.tenant < 0}

    def stream_for(self, launch: Launch) -> int:
        """The stream that takes a pending launch: its own again; that of all that it waits for; of those with room the
        one with the least in flight. -1: none does."""
        if launch.preempted:
            return launch.stream
        rows = [row for row, stream in self._streams.items() if stream.in_flight < self._depth]
        if launch.waits:
            taken = {other.stream for other in launch.waits if other.state is not State.PENDING}
            pending = any(other.state is State.PENDING for other in launch.waits)
            rows = [row for row in rows if {row} == taken and not pending]
        return min(rows, key=lambda row: self._streams[row].in_flight, default=-1)

    def behind(self, launch: Launch) -> tuple[float, float, int]:
        """Of a pending launch (:func:`gpusched_env.devices.rules.world.behind`)."""
        if not launch.windowed:
            return 0.0, 0.0, 0
        row = self.stream_for(launch) if not launch.preempted else -1
        line = self._streams[row].line if row >= 0 else ()
        left_us = between_us = 0.0
        is_between = True
        for before in reversed(line):
            is_between = is_between and before not in launch.waits
            known = self._world.problem.knowledge.kernels[before.op.identity]
            # Never measured: NaN, which is no more than 0.
            left_us += max(0.0, known.duration_us - before.elapsed_ps(self._world.now_ps) / PS_PER_US)
            between_us = left_us if is_between else between_us
        return left_us, between_us, sum(other.state is State.PENDING for other in launch.waiters)

    def join(self, launch: Launch) -> None:
        """A launch waits for the end of the one before it in its stream, and with it for all it has to."""
        for other in launch.waits:
            other.waiters.remove(launch)
        launch.waits.clear()
        stream = self._streams[launch.stream]
        stream.in_flight += 1
        if stream.line:
            launch.wait_for(stream.line[-1])
        stream.line.append(launch)

    def launched_ps(self, launch: Launch, at_ps: int, latency_ps: int) -> int:
        """When the thread of its stream, free from ``at_ps`` on at the earliest, has launched it."""
        stream = self._streams[launch.stream]
        stream.thread_ps = max(at_ps, stream.thread_ps) + latency_ps
        return stream.thread_ps

    def leave(self, launch: Launch) -> Launch | None:
        """The first launch of its stream has ended, or has vanished; returns the next, which waits for it no more."""
        line = self._streams[launch.stream].line
        line.popleft()
        if not line:
            return None
        launch.waiters.remove(line[0])
        return line[0]

    def finish(self, launch: Launch) -> None:
        """The end of a launch is known."""
        self._streams[launch.stream].in_flight -= 1


class Offspring:
    """A launch with offspring has finished when they have."""

    def __init__(self, world: World, new: Callable[..., Launch], issue: Callable[[Launch], None]) -> None:
        """``new``: makes a launch with the next id; ``issue``: called with a child when it is issued."""
        self._clock, self._new, self._issue = world.clock, new, issue
        timing = world.problem.gpu.timing
        self._gap_ps, self._child_ps = to_ps(timing.graph_gap_us), to_ps(timing.child_launch_us)

    def make_nodes(self, graph: Launch) -> list[Launch]:
        """The nodes of a graph that is ready become launches that wait for each other, in its stream."""
        assert isinstance(graph.op, HostOp)
        for op in graph.op.nodes:
            node = self._new(op, graph.tenant, graph.job, graph)
            node.state = State.LAUNCHED
            node.stream, node.priority, node.partition = graph.stream, graph.priority, graph.partition
            node.branch, node.gap_ps = op.branch, self._gap_ps
            node.issued_ps, node.launched_ps, node.ready_ps = graph.issued_ps, graph.launched_ps, self._clock.now
            for before in op.after:
                node.wait_for(graph.nodes[before])
            graph.nodes.append(node)
        graph.emptied = True
        graph.parts = len(graph.nodes)
        return graph.nodes

    def launch_children(self, kernel: Launch) -> None:
        """A kernel has started for the first time: it launches its children."""
        if not isinstance(kernel.op, HostOp):
            return
        for op in kernel.op.children:
            child = self._new(op, kernel.tenant, kernel.job, kernel)
            child.state = State.COMING
            kernel.parts += 1
            child.set_off(self._clock.now + self._child_ps, Phase.READY, self._issue)
