"""Launches from their issue to their end: what they wait for, and when they are ready."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from gpusched_env.devices.reference.launch import Launch, Lines, Offspring, OwnStreams, State, in_order
from gpusched_env.devices.reference.tiling import TilePair, Tiling, synchronise
from gpusched_env.devices.reference.world import Phase, World
from gpusched_env.hardware.clock import NEVER, PS_PER_US, to_ps
from gpusched_env.scenarios.program import ChildOp, HostOp, NodeOp
from gpusched_env.scheduling.commands import TileOrder
from gpusched_env.workload import host
from gpusched_env.workload.host.states import Job
from gpusched_env.workload.workload import OpKind

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice


class Streams:
    """All unfinished launches. What is launched into a stream at a priority (a *queue*) starts in order."""

    def __init__(self, world: World, hardware: ReferenceDevice) -> None:
        self._problem, self._clock, self._world, self._hardware = world.problem, world.clock, world, hardware
        self._rules = world.rules
        self._sync_ps = world.rules.window_sync_ps
        self._ids = itertools.count()
        self.unfinished: dict[int, Launch] = {}
        self.pending: dict[int, Launch] = {}
        """Launches that wait for the scheduler."""
        self.launched: dict[int, Launch] = {}
        """Kernels and graphs that the scheduler has launched, in order of launch."""
        self._lines = Lines()
        self._offspring = Offspring(world, self._new, self._issued)
        self._last_in_queue: dict[tuple[int, int], Launch] = {}
        self._priorities = [0] * len(world.problem.streams)
        """By stream, of the last kernel or graph that was handed to it."""
        self.own = OwnStreams(world)
        """The scheduler's, for launches of a window."""

    # ---- issued by a host or by the GPU ----------------------------------------------------------------------------

    def _new(self, op: HostOp | NodeOp | ChildOp, tenant: int, job: Job, parent: Launch | None = None) -> Launch:
        """A launch with the next id."""
        blocks = self._world.kernels[op.identity].grid_blocks if op.identity >= 0 else 0
        launch = Launch(self._clock, next(self._ids), op, tenant, job, blocks, parent)
        self.unfinished[launch.id] = launch
        return launch

    def issue(self, op: HostOp, tenant: int, job: Job) -> None:
        """A host thread issues an operation."""
        launch = self._new(op, tenant, job)
        launch.gap_ps = to_ps(op.gap_us)
        launch.windowed = self._problem.streams[op.stream].windowed
        for other in (self._marked(tenant, mark) for mark in op.after):
            if other is not None:
                launch.wait_for(other)
        if not launch.windowed:
            self._lines.join(launch)
        launch.producer = self._marked(tenant, op.tiles) if op.tiles >= 0 else None
        host.operation_issued(self._world, tenant, job.number, op.stream, op.mark, launch.id)
        self._issued(launch)

    def _marked(self, tenant: int, mark: int) -> Launch | None:
        """The launch of an operation, if it is unfinished."""
        return self.unfinished.get(self._world.marks[tenant][mark].launch)

    def _issued(self, launch: Launch) -> None:
        """A launch is pending from now on; the scheduler intercepts kernels and graphs, copies go on by themselves."""
        launch.state = State.PENDING
        launch.issued_ps = self._clock.now
        if launch.scheduled:
            self.pending[launch.id] = launch
            if self.launchable(launch) or self.synchronisable(launch) or self.forms(launch):
                self._world.awake = 1
        elif self.launchable(launch):
            self._hand_over(launch, self._clock.now)

    # ---- what the scheduler may do with pending ones ---------------------------------------------------------------

    def launchable(self, launch: Launch) -> bool:
        """Whether nothing that a pending launch waits for is pending; in a window: some stream may take it."""
        if launch.windowed:
            return self.own.stream_for(launch) >= 0 if launch.scheduled else not launch.waits
        return all(other.state is not State.PENDING for other in launch.waits)

    def synchronisable(self, launch: Launch) -> bool:
        """Whether the tiles of a launch and its producer may be synchronised."""
        producer = launch.producer
        if producer is None or launch.windowed or producer.row == launch.row:
            return False
        fresh = launch.state is State.PENDING and not launch.preempted and producer.first_started_ps == NEVER
        taken = (launch.tiling and launch.tiling.awaits) or (producer.tiling and producer.tiling.posts)
        return fresh and not taken

    def synchronise(self, pair: TilePair, order: TileOrder, *, wait_kernel: bool) -> None:
        """Let the tiles of a launch wait for those of its producer."""
        tilings = self._tiling(pair.producer), self._tiling(pair.consumer)
        synchronise(pair, *tilings, order, wait_kernel=wait_kernel)

    def _tiling(self, launch: Launch) -> Tiling:
        grid = self._problem.kernels[launch.identity].kernel.grid
        return launch.tiling or Tiling(grid, self._problem.gpu.tiles)

    def forms(self, launch: Launch) -> tuple[int, ...]:
        """Identities that a launch may be given."""
        fresh = launch.state is State.PENDING and not launch.preempted and not launch.windowed
        if not fresh or launch.reshaped or launch.tiling is not None or launch.kind is not OpKind.KERNEL:
            return ()
        return self._problem.kernels[launch.identity].forms

    def reshape(self, launch: Launch, form: int) -> None:
        """Let a launch be another kernel that does the same."""
        identity = self.forms(launch)[form]
        launch.op = replace(launch.op, identity=identity)
        launch.blocks = launch.whole = self._problem.kernels[identity].kernel.blocks
        launch.reshaped = True

    # ---- handed over to a queue ------------------------------------------------------------------------------------

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
        self._leave_host(launch, at_ps)
        launch.ready_ps += launch.restore_ps
        self._arm(launch)
        self._let_copies_go(launch, at_ps)

    def _hand_over(self, launch: Launch, at_ps: int) -> None:
        """Put a launch behind what was handed to its queue before."""
        self._leave_host(launch, at_ps)
        if not launch.scheduled:
            launch.priority = self._priorities[launch.stream]
        if launch.stream >= 0 and not launch.windowed:
            queue = launch.stream, launch.priority
            before = self._last_in_queue.get(queue)
            if before is not None and before.state is not State.DONE and not self._lines.follows(launch, before):
                launch.wait_for(before)
                if before.gate is launch:
                    # It waits for the end of that anyway.
                    before.gate = None
            self._last_in_queue[queue] = launch
        self._arm(launch)
        self._let_copies_go(launch, at_ps)

    def _leave_host(self, launch: Launch, at_ps: int) -> None:
        launch.state = State.LAUNCHED
        launch.launched_ps = at_ps
        launch.ready_ps = at_ps + self._rules.launch_latency_ps
        if launch.gated:
            launch.ready_ps += self._rules.wait_kernel_ps
            launch.gated = False
        if launch.windowed and launch.scheduled:
            launch.ready_ps = self.own.launched_ps(launch, at_ps, self._rules.launch_latency_ps)

    def _arm(self, launch: Launch) -> None:
        """Be ready, if a launch waits for nothing more."""
        if not launch.waits:
            launch.set_off(launch.ready_ps, Phase.READY, self._ready)

    def _let_copies_go(self, launch: Launch, at_ps: int) -> None:
        """Launch the copies that wait for a launch and for nothing pending any more."""
        for waiter in in_order(launch.waiters):
            if waiter.state is State.PENDING and not waiter.scheduled and self.launchable(waiter):
                self._hand_over(waiter, at_ps)

    # ---- on the GPU ------------------------------------------------------------------------------------------------

    def _ready(self, launch: Launch) -> None:
        """A launch may start, if the hardware takes it from its queue."""
        held_ps = self._hardware.held_ps(launch) if launch.kind is OpKind.KERNEL else self._clock.now
        if held_ps > self._clock.now:
            launch.set_off(held_ps, Phase.READY, self._ready)
            return
        launch.state = State.READY
        if launch.kind is not OpKind.GRAPH:
            self._hardware.submit(launch)
            return
        for node in self._offspring.make_nodes(launch):
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
        if is_first:
            self._offspring.launch_children(launch)

    def _open_gate(self, launch: Launch, consumer: Launch) -> None:
        """A producer has started: the wait kernel before its consumer ends."""
        launch.gate = None
        launch.waiters.discard(consumer)
        consumer.waits.discard(launch)
        if consumer.state is State.LAUNCHED:
            consumer.ready_ps = max(consumer.ready_ps, self._clock.now + self._rules.wait_kernel_ps)
            self._arm(consumer)

    def preempted(self, launch: Launch, *, keeps_progress: bool) -> None:
        """A kernel has left the GPU unfinished; it is pending again."""
        launch.preemptions += 1
        launch.ran_ps = launch.elapsed_ps(self._clock.now) if keeps_progress else 0
        launch.started_ps = NEVER
        launch.preempted = True
        launch.state = State.PENDING
        self.pending[launch.id] = launch
        del self.launched[launch.id]
        self._hardware.notify_slicer()
        self._world.awake = 1

    # ---- over ------------------------------------------------------------------------------------------------------

    def ended(self, launch: Launch) -> None:
        """A kernel or copy has ended; whoever launched it from a window knows when its synchronisation returns."""
        launch.emptied = True
        if launch.windowed and launch.scheduled:
            self._leave_window(launch)
        if launch.windowed and self._sync_ps > 0:
            launch.set_off(self._clock.now + self._sync_ps, Phase.PREEMPTION_OVER, self._finish)
        else:
            self._finish(launch)

    def _finish(self, launch: Launch) -> None:
        """A launch has nothing to do any more; it has finished when its parts have."""
        launch.emptied = True
        if launch.parts > 0:
            return
        launch.state = State.DONE
        if launch.tiling is not None and launch.tiling.posts is not None:
            launch.tiling.posts.over = True
        del self.unfinished[launch.id]
        if launch.windowed and launch.scheduled and launch.launched_ps < NEVER:
            if launch.preempted:
                self._leave_window(launch)
            self.own.finish(launch)
        elif launch.row >= 0 and not launch.windowed:
            self._lines.leave(launch)
        if self.launched.pop(launch.id, None) is not None:
            self._hardware.notify_slicer()
            self._world.awake = 1
        elif launch.windowed:
            # A kernel may have waited for the copy.
            self._world.awake = 1
        for waiter in in_order(launch.waiters):
            self._release(launch, waiter)
        self._let_copies_go(launch, self._clock.now)
        op, parent = launch.op, launch.parent
        if isinstance(op, HostOp):
            host.operation_finished(self._world, launch.tenant, launch.job.number, op.stream, op.mark, launch.id)
        if parent is not None:
            parent.parts -= 1
            if parent.emptied and parent.state is not State.DONE:
                self._finish(parent)

    def _leave_window(self, launch: Launch) -> None:
        behind = self.own.leave(launch)
        if behind is not None:
            self._release(launch, behind)

    def _release(self, launch: Launch, waiter: Launch) -> None:
        """What waits for a launch learns that it has ended."""
        waiter.waits.discard(launch)
        if waiter.state is State.LAUNCHED:
            same = (waiter.stream, waiter.priority) == (launch.stream, launch.priority)
            gap_ps = waiter.gap_ps if same else max(waiter.gap_ps, self._rules.event_latency_ps)
            if isinstance(waiter.op, NodeOp) and self._hardware.has_others_beside(waiter):
                gap_ps += self._rules.graph_gap_beside_ps
            waiter.ready_ps = max(waiter.ready_ps, self._clock.now + gap_ps)
            self._arm(waiter)

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
            self._finish(launch)
            # Its tiles are waited for no longer.
            self._hardware.touch(launch)

    # ---- what views say --------------------------------------------------------------------------------------------

    def operation_of(self, id_: int) -> HostOp:
        """What an unfinished launch of a program carries out."""
        op = self.unfinished[id_].op
        assert isinstance(op, HostOp)
        return op

    def count(self, tenant: int) -> tuple[int, int]:
        """How many kernels and graphs of a tenant are pending, and launched."""
        pending = sum(launch.tenant == tenant for launch in self.pending.values())
        return pending, sum(launch.tenant == tenant for launch in self.launched.values())

    def left_us(self, tenant: int) -> tuple[float, float]:
        """Predicted time left of a tenant's launched kernels: summed, and the least of those that have started."""
        launched_us, running_us = 0.0, math.inf
        for launch in self.launched.values():
            if launch.tenant == tenant:
                profiled_us = self._world.kernels[launch.identity].profiled_us
                left_us = max(0.0, profiled_us - launch.elapsed_ps(self._clock.now) / PS_PER_US)
                launched_us += left_us
                if launch.started_ps < NEVER:
                    running_us = min(running_us, left_us)
        return launched_us, running_us
