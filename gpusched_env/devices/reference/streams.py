"""Launches from their issue to their end: what they wait for, and when they are ready."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import replace
from typing import Protocol

from gpusched_env.devices.reference.clock import Phase
from gpusched_env.devices.reference.launch import Launch, State, in_order
from gpusched_env.devices.reference.setting import Setting
from gpusched_env.devices.reference.tiling import TilePair, Tiling
from gpusched_env.devices.reference.windows import OwnStreams
from gpusched_env.devices.reference.world import Job, World
from gpusched_env.hardware.clock import NEVER, to_ps
from gpusched_env.scenarios.program import ChildOp, HostOp, NodeOp
from gpusched_env.scheduling.commands import TileOrder
from gpusched_env.workload import host
from gpusched_env.workload.workload import OpKind


class Hardware(Protocol):
    """What streams hand launches to: hardware queues and copy engines."""

    def submit(self, launch: Launch) -> None:
        """A kernel or copy is ready."""

    def held_ps(self, kernel: Launch) -> int:
        """When the hardware takes kernels from the queue of one that is ready: now or later."""

    def touch(self, launch: Launch) -> None:
        """Something that may concern the context of a launch has happened."""

    def has_others_beside(self, node: Launch) -> bool:
        """Whether kernels that are not of a node's graph are resident in its context."""

    def notify_slicer(self) -> None:
        """A kernel or graph was launched or has left."""


def _row(launch: Launch) -> int:
    """The stream that a launch was issued into; -1: none."""
    return launch.op.stream if isinstance(launch.op, HostOp) else -1


class Streams:
    """All unfinished launches. What is launched into a stream at a priority (a *queue*) starts in order."""

    def __init__(self, setting: Setting, world: World, hardware: Hardware) -> None:
        problem, timing = setting.problem, setting.problem.gpu.timing
        self._problem, self._clock, self._world, self._hardware = problem, setting.clock, world, hardware
        self._latency_ps = to_ps(timing.launch_latency_us)
        self._event_ps = to_ps(timing.event_latency_us)
        self._wait_kernel_ps = to_ps(problem.gpu.tiles.wait_kernel_us)
        self._sync_ps = 0 if problem.window is None else to_ps(problem.window.sync_us)
        self._ids = itertools.count()
        self.unfinished: dict[int, Launch] = {}
        self.pending: dict[int, Launch] = {}
        """Those that wait for the scheduler."""
        self.launched: dict[int, Launch] = {}
        """Kernels and graphs that it has launched, in order of launch."""
        self._lines: defaultdict[int, list[Launch]] = defaultdict(list)
        """By stream of a program: its unfinished launches, in order of issue. A window has none."""
        self._last_in_queue: dict[tuple[int, int], Launch] = {}
        self._priorities = [0] * len(problem.streams)
        """By stream, of the last kernel or graph that was handed to it."""
        self.own = OwnStreams(setting)
        """The scheduler's, for launches of a window."""

    def new(self, op: HostOp | NodeOp | ChildOp, tenant: int, job: Job, parent: Launch | None = None) -> Launch:
        """A launch with the next id."""
        kernels = self._problem.kernels
        blocks = kernels[op.identity].kernel.blocks if 0 <= op.identity < len(kernels) else 0
        launch = Launch(self._clock, next(self._ids), op, tenant, job, blocks, parent)
        self.unfinished[launch.id] = launch
        return launch

    def issue(self, op: HostOp, tenant: int, job: Job) -> None:
        """A host thread issues an operation."""
        launch = self.new(op, tenant, job)
        launch.gap_ps = to_ps(op.gap_us)
        launch.windowed = self._problem.streams[op.stream].windowed
        for other in (self._marked(tenant, mark) for mark in op.after):
            if other is not None:
                launch.wait_for(other)
        if not launch.windowed:
            line = self._lines[op.stream]
            if line:
                launch.wait_for(line[-1])
            line.append(launch)
        launch.producer = self._marked(tenant, op.tiles) if op.tiles >= 0 else None
        host.operation_issued(self._world, tenant, job.number, op.stream, op.mark, launch.id)
        self.issued(launch)

    def _marked(self, tenant: int, mark: int) -> Launch | None:
        """The launch of an operation, if it is unfinished."""
        return self.unfinished.get(self._world.marks[tenant][mark].launch)

    def issued(self, launch: Launch) -> None:
        """A launch is pending from now on; the scheduler intercepts kernels and graphs, copies go on by themselves."""
        launch.state = State.PENDING
        launch.issued_ps = self._clock.now
        if launch.scheduled:
            self.pending[launch.id] = launch
            if self.launchable(launch) or self.synchronisable(launch) or self.forms(launch):
                self._world.awake = 1
        elif self.launchable(launch):
            self._hand_over(launch, self._clock.now)

    def operation_of(self, id_: int) -> HostOp:
        """What an unfinished launch of a program carries out."""
        op = self.unfinished[id_].op
        assert isinstance(op, HostOp)
        return op

    def launchable(self, launch: Launch) -> bool:
        """Whether nothing that a pending launch waits for is pending; in a window: some stream may take it."""
        if launch.windowed:
            return self.own.stream_for(launch) >= 0 if launch.scheduled else not launch.waits
        return all(other.state is not State.PENDING for other in launch.waits)

    def synchronisable(self, launch: Launch) -> bool:
        """Whether the tiles of a launch and its producer may be synchronised."""
        producer = launch.producer
        if producer is None or launch.windowed or _row(producer) == _row(launch):
            return False
        fresh = launch.state is State.PENDING and not launch.preempted and producer.first_started_ps == NEVER
        taken = (launch.tiling and launch.tiling.awaits) or (producer.tiling and producer.tiling.posts)
        return fresh and not taken

    def synchronise(self, pair: TilePair, order: TileOrder, *, wait_kernel: bool) -> None:
        """Let the tiles of a launch wait for those of its producer, and the launch no longer for the whole of that."""
        producer, launch = pair.producer, pair.consumer
        numbers, posting, waiting = pair.numbers, self._tiling(producer), self._tiling(launch)
        posting.posts = waiting.awaits = pair
        posting.order = waiting.order = order
        posting.stride, waiting.stride = numbers.columns // numbers.fold, numbers.consumer_columns
        if producer.grid is not None:
            producer.grid.tiling = posting
        if wait_kernel:
            producer.gate, launch.gated = launch, True
        else:
            launch.waits.discard(producer)
            producer.waiters.discard(launch)

    def forms(self, launch: Launch) -> tuple[int, ...]:
        """Identities that a launch may be given."""
        fresh = launch.state is State.PENDING and not launch.preempted and not launch.windowed
        if not fresh or launch.reshaped or launch.tiling is not None or launch.kind is not OpKind.KERNEL:
            return ()
        return self._problem.kernels[launch.op.identity].forms

    def reshape(self, launch: Launch, form: int) -> None:
        """Let a launch be another kernel that does the same."""
        identity = self.forms(launch)[form]
        launch.op = replace(launch.op, identity=identity)
        launch.blocks = launch.whole = self._problem.kernels[identity].kernel.blocks
        launch.reshaped = True

    def _tiling(self, launch: Launch) -> Tiling:
        """The tiles of a launch, which are synchronised from now on."""
        if launch.tiling is None:
            grid = self._problem.kernels[launch.op.identity].kernel.grid
            launch.tiling = Tiling(grid, self._problem.gpu.tiles)
        return launch.tiling

    def launch(self, launch: Launch, at_ps: int) -> None:
        """The scheduler's word: a pending launch, whose stream, priority and partition are set, goes to its stream."""
        del self.pending[launch.id]
        self.launched[launch.id] = launch
        self._hardware.notify_slicer()
        if not launch.preempted:
            if launch.windowed:
                self.own.join(launch)
            if launch.stream >= 0:
                self._priorities[launch.stream] = launch.priority
            self._hand_over(launch, at_ps)
            return
        # A preempted kernel has kept its place.
        launch.preempted = False
        self._set_off(launch, at_ps)
        launch.ready_ps += launch.restore_ps
        self._arm(launch)
        self._let_copies_go(launch, at_ps)

    def _hand_over(self, launch: Launch, at_ps: int) -> None:
        """Put a launch behind what was handed to its queue before."""
        self._set_off(launch, at_ps)
        if not launch.scheduled:
            launch.priority = self._priorities[launch.stream]
        if launch.stream >= 0 and not launch.windowed:
            queue = launch.stream, launch.priority
            before = self._last_in_queue.get(queue)
            if before is not None and before.state is not State.DONE and not self._follows(launch, before):
                launch.wait_for(before)
                if before.gate is launch:
                    # It waits for the end of that anyway.
                    before.gate = None
            self._last_in_queue[queue] = launch
        self._arm(launch)
        self._let_copies_go(launch, at_ps)

    def _follows(self, launch: Launch, before: Launch) -> bool:
        """Whether a launch waits for an unfinished one anyway: it comes before it in its program's stream."""
        if not (isinstance(launch.op, HostOp) and isinstance(before.op, HostOp)):
            return False
        return launch.op.stream == before.op.stream and self._lines[launch.op.stream][0] is not launch

    def _leave_line(self, launch: Launch) -> None:
        behind = self.own.leave(launch)
        if behind is not None:
            self._release_one(launch, behind)

    def _set_off(self, launch: Launch, at_ps: int) -> None:
        launch.state = State.LAUNCHED
        launch.launched_ps = at_ps
        launch.ready_ps = at_ps + self._latency_ps
        if launch.gated:
            launch.ready_ps += self._wait_kernel_ps
            launch.gated = False
        if launch.windowed and launch.scheduled:
            launch.ready_ps = self.own.launched_ps(launch, at_ps, self._latency_ps)

    def _arm(self, launch: Launch) -> None:
        """Be ready, if a launch waits for nothing more."""
        if not launch.waits:
            launch.alarm.set(launch.ready_ps, Phase.READY, launch.id, lambda: self.ready(launch))

    def _let_copies_go(self, launch: Launch, at_ps: int) -> None:
        """Launch the copies that wait for a launch and for nothing pending any more."""
        for waiter in in_order(launch.waiters):
            if waiter.state is State.PENDING and not waiter.scheduled and self.launchable(waiter):
                self._hand_over(waiter, at_ps)

    def ready(self, launch: Launch) -> None:
        """A launch may start, if the hardware takes it from its queue."""
        held_ps = self._hardware.held_ps(launch) if launch.kind is OpKind.KERNEL else self._clock.now
        if held_ps > self._clock.now:
            launch.alarm.set(held_ps, Phase.READY, launch.id, lambda: self.ready(launch))
            return
        launch.state = State.READY
        if launch.kind is OpKind.GRAPH:
            self._begin_graph(launch)
        else:
            self._hardware.submit(launch)

    def _begin_graph(self, graph: Launch) -> None:
        """The nodes of a graph that is ready become launches that wait for each other, in its stream."""
        assert isinstance(graph.op, HostOp)
        nodes: list[Launch] = []
        for op in graph.op.nodes:
            node = self.new(op, graph.tenant, graph.job, graph)
            node.state = State.LAUNCHED
            node.stream, node.priority, node.partition = graph.stream, graph.priority, graph.partition
            node.branch, node.gap_ps = op.branch, to_ps(self._problem.gpu.timing.graph_gap_us)
            node.issued_ps, node.launched_ps, node.ready_ps = graph.issued_ps, graph.launched_ps, self._clock.now
            for before in op.after:
                node.wait_for(nodes[before])
            nodes.append(node)
        graph.emptied = True
        graph.parts = len(nodes)
        for node in nodes:
            self._arm(node)

    def started(self, launch: Launch) -> None:
        """The first block of a kernel has started since it was launched, or a copy: so has its graph; children come."""
        now = self._clock.now
        is_first = launch.first_started_ps == NEVER
        if launch.gate is not None:
            self._open_gate(launch, launch.gate)
        for one in (launch, launch.parent):
            if one is not None and (one is launch or one.kind is OpKind.GRAPH) and one.started_ps == NEVER:
                one.started_ps = now
                one.first_started_ps = min(one.first_started_ps, now)
        if is_first and isinstance(launch.op, HostOp):
            for op in launch.op.children:
                self._launch_child(self.new(op, launch.tenant, launch.job, launch))
                launch.parts += 1

    def _open_gate(self, launch: Launch, consumer: Launch) -> None:
        """A producer has started: the wait kernel before its consumer ends."""
        launch.gate = None
        launch.waiters.discard(consumer)
        consumer.waits.discard(launch)
        if consumer.state is State.LAUNCHED:
            consumer.ready_ps = max(consumer.ready_ps, self._clock.now + self._wait_kernel_ps)
            self._arm(consumer)

    def _launch_child(self, child: Launch) -> None:
        """A child is issued when the launch call on the device has taken effect."""
        child.state = State.COMING
        at_ps = self._clock.now + to_ps(self._problem.gpu.timing.child_launch_us)
        child.alarm.set(at_ps, Phase.READY, child.id, lambda: self.issued(child))

    def ended(self, launch: Launch) -> None:
        """A kernel or copy has ended; whoever launched it from a window knows when its synchronisation returns."""
        launch.emptied = True
        if launch.windowed and launch.scheduled:
            self._leave_line(launch)
        if launch.windowed and self._sync_ps > 0:
            known_ps = self._clock.now + self._sync_ps
            launch.alarm.set(known_ps, Phase.PREEMPTION_OVER, launch.id, lambda: self.finish(launch))
        else:
            self.finish(launch)

    def finish(self, launch: Launch) -> None:
        """A launch has nothing to do any more; it has finished when its parts have."""
        launch.emptied = True
        if launch.parts > 0:
            return
        launch.state = State.DONE
        if launch.tiling is not None and launch.tiling.posts is not None:
            launch.tiling.posts.over = True
        del self.unfinished[launch.id]
        self._leave_program(launch)
        if launch.windowed and launch.scheduled and launch.launched_ps < NEVER:
            self.own.finish(launch)
        if self.launched.pop(launch.id, None) is not None:
            self._hardware.notify_slicer()
            self._world.awake = 1
        elif launch.windowed:
            # A kernel may have waited for the copy.
            self._world.awake = 1
        self._release(launch)
        op, parent = launch.op, launch.parent
        if isinstance(op, HostOp):
            host.operation_finished(self._world, launch.tenant, launch.job.number, op.stream, op.mark, launch.id)
        if parent is not None:
            parent.parts -= 1
            if parent.emptied and parent.state is not State.DONE:
                self.finish(parent)

    def _leave_program(self, launch: Launch) -> None:
        """A launch leaves its program's stream: the one behind it is behind the one before it, if there is one."""
        if not isinstance(launch.op, HostOp):
            return
        if launch.windowed:
            if launch.scheduled and launch.preempted:
                self._leave_line(launch)
            return
        line = self._lines[launch.op.stream]
        place = line.index(launch)
        del line[place]
        if 0 < place < len(line):
            line[place].wait_for(line[place - 1])

    def _release(self, launch: Launch) -> None:
        """What waits for a launch learns that it has ended."""
        now = self._clock.now
        for waiter in in_order(launch.waiters):
            self._release_one(launch, waiter)
        self._let_copies_go(launch, now)

    def _release_one(self, launch: Launch, waiter: Launch) -> None:
        waiter.waits.discard(launch)
        if waiter.state is State.LAUNCHED:
            same = (waiter.stream, waiter.priority) == (launch.stream, launch.priority)
            gap_ps = waiter.gap_ps if same else max(waiter.gap_ps, self._event_ps)
            if isinstance(waiter.op, NodeOp) and self._hardware.has_others_beside(waiter):
                gap_ps += to_ps(self._problem.gpu.timing.graph_gap_beside_us)
            waiter.ready_ps = max(waiter.ready_ps, self._clock.now + gap_ps)
            self._arm(waiter)

    def preempted(self, launch: Launch, *, keeps_progress: bool) -> None:
        """A kernel has left the GPU unfinished; it is pending again."""
        now = self._clock.now
        launch.preemptions += 1
        launch.ran_ps = launch.elapsed_ps(now) if keeps_progress else 0
        launch.started_ps = NEVER
        launch.preempted = True
        launch.state = State.PENDING
        self.pending[launch.id] = launch
        del self.launched[launch.id]
        self._hardware.notify_slicer()
        self._world.awake = 1

    def vanish(self, tenant: int, job: Job) -> None:
        """The pending launches of a rejected job are gone."""
        gone = {
            launch
            for launch in self.unfinished.values()
            if launch.state is State.PENDING and launch.tenant == tenant and launch.job is job
        }
        for launch in gone:
            launch.state = State.DONE
            launch.parts = 0
            self.pending.pop(launch.id, None)
        for launch in in_order(gone):
            self.finish(launch)
            # Its tiles are waited for no longer.
            self._hardware.touch(launch)
