"""Launches from their issue to their end: what they wait for, and when they are ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.devices.reference.clock import Phase
from gpusched_env.devices.reference.launch import Launch, State, in_order
from gpusched_env.devices.reference.parts import begin_graph
from gpusched_env.devices.reference.world import Job
from gpusched_env.hardware.clock import NEVER, PS_PER_US, to_ps
from gpusched_env.scenarios.program import ChildOp, HostOp, NodeOp
from gpusched_env.workload import host
from gpusched_env.workload.workload import OpKind

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice


class OwnStream:
    """A stream of the scheduler's, as launches of a window use it."""

    def __init__(self) -> None:
        self.held = 0
        """Launches from when they are launched until they are known to have ended."""
        self.last: Launch | None = None
        """Of those that have not ended."""
        self.thread_ps = 0
        """When the thread that launches them has launched the last one."""


class Streams:
    """All unfinished launches. What is launched into a stream at a priority (a *queue*) starts in order."""

    def __init__(self, device: ReferenceDevice) -> None:
        self._device = device
        self._clock = device.clock
        timing = device.problem.gpu.timing
        self._latency_ps = to_ps(timing.launch_latency_us)
        self._event_ps = to_ps(timing.event_latency_us)
        self._beside_ps = to_ps(timing.graph_gap_beside_us)
        self._ids = 0
        self.unfinished: dict[int, Launch] = {}
        self.pending: dict[int, Launch] = {}
        """Those that wait for the scheduler."""
        self.launched: dict[int, Launch] = {}
        """Kernels and graphs that it has launched, in order of launch."""
        self._last_issued: dict[int, Launch] = {}
        """By stream of a program; unfinished."""
        self._last_handed: dict[tuple[int, int], Launch] = {}
        """By queue."""
        self._priorities = [0] * len(device.problem.streams)
        """By stream, of the last kernel or graph that was handed to it."""
        self._windowed = [stream.windowed for stream in device.problem.streams]
        window = device.problem.window
        self._sync_ps = 0 if window is None else to_ps(window.sync_us)
        self._depth = 1 if window is None else window.depth
        self._own = {row: OwnStream() for row, stream in enumerate(device.problem.streams) if stream.tenant < 0}
        """The scheduler's own streams, as launches of a window use them."""

    def new(self, op: HostOp | NodeOp | ChildOp, tenant: int, job: Job, parent: Launch | None = None) -> Launch:
        """A launch with the next id."""
        kernels = self._device.problem.kernels
        blocks = kernels[op.identity].kernel.blocks if 0 <= op.identity < len(kernels) else 0
        launch = Launch(self._clock, self._ids, op, tenant, job, blocks, parent)
        self._ids += 1
        self.unfinished[launch.id] = launch
        return launch

    def issue(self, op: HostOp, tenant: int, job: Job) -> None:
        """A host thread issues an operation."""
        world = self._device.world
        launch = self.new(op, tenant, job)
        launch.gap_ps = to_ps(op.gap_us)
        launch.windowed = self._windowed[op.stream]
        before = None if launch.windowed else self._last_issued.get(op.stream)
        marked = [self._marked(tenant, mark) for mark in op.after]
        for other in (before, *marked):
            if other is not None:
                launch.wait_for(other)
        launch.before = before
        if before is not None:
            before.behind = launch
        producer = self._marked(tenant, op.tiles) if op.tiles >= 0 else None
        launch.awaits = None if producer is None else producer.tiles
        if not launch.windowed:
            self._last_issued[op.stream] = launch
        host.operation_issued(world, tenant, job.number, op.stream, op.mark, launch.id)
        self.issued(launch)

    def _marked(self, tenant: int, mark: int) -> Launch | None:
        """The launch of an operation, if it is unfinished."""
        return self.unfinished.get(self._device.world.marks[tenant][mark].launch)

    def issued(self, launch: Launch) -> None:
        """A launch is pending from now on; the scheduler intercepts kernels and graphs, copies go on by themselves."""
        launch.state = State.PENDING
        launch.issued_ps = self._clock.now
        if launch.scheduled:
            self.pending[launch.id] = launch
            if self.launchable(launch):
                self._device.world.awake = 1
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
            return self.stream_for(launch) >= 0 if launch.scheduled else not launch.waits
        return all(other.state is not State.PENDING for other in launch.waits)

    def stream_for(self, launch: Launch) -> int:
        """The scheduler's stream that takes a pending launch of a window: its own again; that of all that it waits for;
        of those with room the one that holds least. -1: none does."""
        if launch.returned:
            return launch.stream
        rows = [row for row, stream in self._own.items() if stream.held < self._depth]
        if launch.waits:
            taken = {other.stream for other in launch.waits if other.state is not State.PENDING}
            pending = any(other.state is State.PENDING for other in launch.waits)
            rows = [row for row in rows if {row} == taken and not pending]
        return min(rows, key=lambda row: self._own[row].held, default=-1)

    def queued_us(self, launch: Launch) -> tuple[float, float]:
        """Profiled time left of what a pending launch of a window would be behind in its stream, and of those of them
        that are behind all that it waits for; 0 elsewhere."""
        row = self.stream_for(launch) if launch.windowed and not launch.returned else -1
        before = self._own[row].last if row >= 0 else None
        left_us = between_us = 0.0
        is_between = True
        while before is not None:
            is_between = is_between and before not in launch.waits
            known = self._device.problem.knowledge.kernels[before.op.identity]
            # Never measured: NaN, which is no more than 0.
            left_us += max(0.0, known.duration_us - before.elapsed_ps(self._clock.now) / PS_PER_US)
            between_us = left_us if is_between else between_us
            before = before.before
        return left_us, between_us

    def launch(self, launch: Launch, at_ps: int) -> None:
        """The scheduler's word: a pending launch, whose stream, priority and partition are set, goes to its stream."""
        del self.pending[launch.id]
        self.launched[launch.id] = launch
        self._device.notify_slicer()
        if not launch.returned:
            if launch.windowed:
                self._join_line(launch)
            if launch.stream >= 0:
                self._priorities[launch.stream] = launch.priority
            self._hand_over(launch, at_ps)
            return
        # A preempted kernel has kept its place.
        launch.returned = False
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
            before = self._last_handed.get(queue)
            if before is not None and before.state is not State.DONE and not _follows(launch, before):
                launch.wait_for(before)
            self._last_handed[queue] = launch
        self._arm(launch)
        self._let_copies_go(launch, at_ps)

    def _join_line(self, launch: Launch) -> None:
        """A launch of a window waits for the end of the one before it in its stream, and with it for all it has to."""
        for other in launch.waits:
            other.waiters.remove(launch)
        launch.waits.clear()
        stream = self._own[launch.stream]
        stream.held += 1
        launch.before = stream.last
        if stream.last is not None:
            stream.last.behind = launch
            launch.wait_for(stream.last)
        stream.last = launch

    def _leave_line(self, launch: Launch) -> None:
        """A launch of a window has ended, or has vanished: the one behind it in its stream waits for it no more."""
        stream, behind = self._own[launch.stream], launch.behind
        if stream.last is launch:
            stream.last = None
        if behind is not None:
            behind.before = launch.behind = None
            launch.waiters.remove(behind)
            self._release_one(launch, behind)

    def _set_off(self, launch: Launch, at_ps: int) -> None:
        launch.state = State.LAUNCHED
        launch.launched_ps = at_ps
        launch.ready_ps = at_ps + self._latency_ps
        if launch.windowed and launch.scheduled:
            stream = self._own[launch.stream]
            launch.ready_ps = stream.thread_ps = max(at_ps, stream.thread_ps) + self._latency_ps

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
        """A launch may start."""
        launch.state = State.READY
        if launch.kind is OpKind.KERNEL:
            self._device.context_of(launch).submit(launch)
        elif launch.kind is OpKind.GRAPH:
            begin_graph(self._device, launch)
        else:
            self._device.copies.submit(launch)

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
        launch.tiles.finished = True
        del self.unfinished[launch.id]
        self._close_line(launch)
        if launch.windowed and launch.scheduled and launch.launched_ps < NEVER:
            self._own[launch.stream].held -= 1
        if self.launched.pop(launch.id, None) is not None:
            self._device.notify_slicer()
            self._device.world.awake = 1
        elif launch.windowed:
            # A kernel may have waited for the copy.
            self._device.world.awake = 1
        self._release(launch)
        op, parent = launch.op, launch.parent
        if isinstance(op, HostOp):
            host.operation_finished(self._device.world, launch.tenant, launch.job.number, op.stream, op.mark, launch.id)
        if parent is not None:
            parent.parts -= 1
            if parent.emptied and parent.state is not State.DONE:
                self.finish(parent)

    def _close_line(self, launch: Launch) -> None:
        """A launch leaves its program's stream: the one behind it is behind the one before it, if there is one.

        There is none before one that has finished.
        """
        if not isinstance(launch.op, HostOp):
            return
        if launch.windowed:
            if launch.scheduled and launch.returned:
                self._leave_line(launch)
            return
        before, behind = launch.before, launch.behind
        if before is not None:
            before.behind = behind
        if behind is not None:
            behind.before = before
            if before is not None:
                behind.wait_for(before)
        if self._last_issued.get(launch.op.stream) is launch:
            if before is None:
                del self._last_issued[launch.op.stream]
            else:
                self._last_issued[launch.op.stream] = before

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
            in_graph = isinstance(waiter.op, NodeOp)
            if self._beside_ps and in_graph and self._device.context_of(waiter).has_others_beside(waiter):
                gap_ps += self._beside_ps
            waiter.ready_ps = max(waiter.ready_ps, self._clock.now + gap_ps)
            self._arm(waiter)

    def preempted(self, launch: Launch, *, keeps_progress: bool) -> None:
        """A kernel has left the GPU unfinished; it is pending again."""
        now = self._clock.now
        launch.preemptions += 1
        launch.ran_ps = launch.elapsed_ps(now) if keeps_progress else 0
        launch.started_ps = NEVER
        launch.returned = True
        launch.state = State.PENDING
        self.pending[launch.id] = launch
        del self.launched[launch.id]
        self._device.notify_slicer()
        self._device.world.awake = 1

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
            self._device.context_of(launch).touch()


def _follows(launch: Launch, before: Launch) -> bool:
    """Whether a launch waits for an unfinished one anyway: it comes before it in its program's stream."""
    mine = isinstance(launch.op, HostOp) and isinstance(before.op, HostOp) and launch.op.stream == before.op.stream
    return mine and launch.before is not None
