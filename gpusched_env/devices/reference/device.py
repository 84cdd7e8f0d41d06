"""The reference device: hosts, streams, contexts, and the decision epochs that tie them to a scheduler.

A snapshot is the history of what was done to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gpusched_env.devices.reference.context import Context, CopyEngines
from gpusched_env.devices.reference.decisions import BUILDERS, Decisions
from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.preemption import Slicer
from gpusched_env.devices.reference.streams import Streams
from gpusched_env.devices.reference.world import Clock, World
from gpusched_env.devices.rules.meter import costs_of
from gpusched_env.devices.rules.rows import deadlock
from gpusched_env.errors import GpuschedError, InputError
from gpusched_env.hardware.clock import NEVER, to_ps, to_us
from gpusched_env.hardware.shared_memory import left_for_gpu
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.contract import check_loop, jobs_to_come, presence_error
from gpusched_env.scheduling.guards import OneThread, one_thread_at_a_time
from gpusched_env.scheduling.legality import any_legal, check_command
from gpusched_env.scheduling.reward import Costs
from gpusched_env.scheduling.showing import Showing, complete_view
from gpusched_env.scheduling.timeline import Detail, Timeline
from gpusched_env.scheduling.view import View
from gpusched_env.workload import host
from gpusched_env.workload.cores.ticking import begin_cores
from gpusched_env.workload.workload import OpKind


class Presence(NamedTuple):
    """A tenant came from outside, or was told to go."""

    at_ps: int
    tenant: int
    comes: bool
    jobs: int | None = None


Step = Command | Presence


class History(NamedTuple):
    """An episode so far."""

    problem: Problem
    seed: int
    record: Detail
    steps: tuple[Step, ...]
    stood_ps: int
    """Time at which the device stood still; :data:`NEVER`: a view was given."""


def stop_times(steps: Sequence[Step], stood_ps: int) -> list[int]:
    """Where the device stands still before each step and after the last: for whoever comes or goes next."""
    found = [stood_ps]
    for step in reversed(steps):
        found.append(step.at_ps if isinstance(step, Presence) else found[-1])
    return found[::-1]


class ReferenceDevice(OneThread):
    """One simulated GPU with its tenants (see :class:`gpusched_env.scheduling.contract.Device`)."""

    clock: Clock
    world: World
    streams: Streams
    _stop_ps = NEVER
    _stands = False
    """Whether it stands still at :attr:`stop_us`."""

    def __init__(self) -> None:
        self._showing = Showing(self, BUILDERS)

    @one_thread_at_a_time
    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs", snapshots: bool = False) -> View | None:
        """Start an episode and run to the first decision epoch (``None``: it ended before one)."""
        self.problem: Problem = problem
        self._seed = seed
        self._over = False
        self._stands = False
        self._history: list[Step] | None = [] if snapshots else None
        self._horizon_ps = to_ps(problem.scenario.horizon_us)
        self.clock, self.timeline = Clock(), Timeline(record)
        self.world = world = World(problem, self.clock, self.timeline, seed)
        world.queues = self.streams = Streams(world, self)
        self._copies = CopyEngines(world, self.streams)
        sliced = problem.scenario.contexts == "per-tenant"
        self.contexts = [
            Context(world, self.streams, index, active=not sliced)
            for index in range(len(problem.programs) if sliced else 1)
        ]
        self.decisions: Decisions = Decisions(world, self.streams, self.context_of)
        self._slicer = Slicer(world, self.streams, self.contexts) if sliced else None
        world.traffic_changed = self._share_memory
        for tenant in range(len(problem.programs)):
            host.begin_arrivals(world, tenant)
        begin_cores(world)
        return self.advance()

    @property
    def done(self) -> bool:
        """Whether all tenants with a number of jobs have completed them."""
        return bool(self.world.done)

    @property
    def time_us(self) -> float:
        """Simulated time."""
        return to_us(self.clock.now)

    @property
    def costs(self) -> Costs:
        """Time integrals since the reset, exact at :attr:`time_us`."""
        return costs_of(self.world, over=self._over)

    @property
    def stop_us(self) -> float:
        """Where :meth:`advance` stands still (``inf``: nowhere); not before the present time."""
        return to_us(self._stop_ps)

    @stop_us.setter
    def stop_us(self, us: float) -> None:
        self._stop_ps = to_ps(us)

    # ---- decisions -------------------------------------------------------------------------------------------------

    def view(self) -> View:
        """A snapshot at the present time, whether or not it is a decision epoch."""
        return complete_view(self, BUILDERS)

    @one_thread_at_a_time
    def apply(self, command: Command) -> None:
        """Carry out one command; a refused one changes nothing.

        Raises:
            IllegalCommand: names the command and why it is not legal now.
        """
        legal = check_command(command, self._showing, self.problem, self.streams.operation_of)
        self.decisions.carry_out(legal)
        self._note(legal)

    @one_thread_at_a_time
    def come(self, tenant: int, jobs: int | None = None) -> None:
        """A tenant comes from outside.

        Raises:
            IllegalCommand: it may not.
        """
        if not host.start_closed_loop(self.world, tenant, jobs_to_come(self.problem, tenant, jobs)):
            raise presence_error(self.problem, tenant, "come")
        self._note(Presence(self.clock.now, tenant, True, jobs))

    @one_thread_at_a_time
    def go(self, tenant: int) -> None:
        """A tenant sends nothing any more.

        Raises:
            IllegalCommand: it may not.
        """
        check_loop(self.problem, tenant, "go")
        if not host.stop_closed_loop(self.world, tenant):
            raise presence_error(self.problem, tenant, "go")
        self._note(Presence(self.clock.now, tenant, False))

    def _note(self, step: Step) -> None:
        self._showing.change()
        if self._history is not None:
            self._history.append(step)

    @one_thread_at_a_time
    def advance(self) -> View | None:
        """The view for the next decision, or ``None`` at the end of the episode."""
        clock, decisions, world = self.clock, self.decisions, self.world
        self._stands = False
        self._showing.change()
        while not self._over:
            clock.finish_present()
            now = clock.now
            if self.done or now >= self._horizon_ps:
                self._over = True
                break
            limit = min(decisions.wait_until_ps, self._horizon_ps)
            deciding = world.awake and decisions.busy_until_ps > now
            if deciding:
                limit = min(limit, decisions.busy_until_ps)
            elif world.awake and any_legal(world):
                return self._showing.view()
            elif world.awake and decisions.once_ps == now:
                # Nothing is legal only because of the instant: to be asked again something must happen first.
                world.awake = 0
                continue
            # What was called off may still be in the queue.
            if min(clock.peek() if clock.alarms else NEVER, limit) > self._stop_ps:
                if self._stop_ps > now:
                    clock.run(until=self._stop_ps)
                self._stands = True
                return None
            if not deciding and not clock.alarms and decisions.wait_until_ps == NEVER:
                outstanding = [client.outstanding for client in world.clients]
                raise deadlock(self.problem, self.view(), outstanding, decisions.held())
            if clock.peek() <= limit:
                clock.step()
                continue
            if limit >= decisions.wait_until_ps:
                decisions.wait_until_ps = NEVER
                world.awake = 1
            if limit > now:
                clock.run(until=limit)
        return None

    # ---- what happens ----------------------------------------------------------------------------------------------

    def context_of(self, launch: Launch) -> Context:
        """The context that a launch belongs to."""
        return self.contexts[launch.tenant if len(self.contexts) > 1 else 0]

    def _share_memory(self) -> None:
        """The traffic of the CPU's cores has changed: kernels share what these leave."""
        gpu = self.world.rules
        left = left_for_gpu(gpu.dram_bytes_per_us, self.world.cpu_traffic, gpu.kappa, gpu.saturation)
        for context in self.contexts:
            context.set_bandwidth(left)

    def submit(self, launch: Launch) -> None:
        """A kernel or copy is ready."""
        if launch.kind is OpKind.KERNEL:
            self.context_of(launch).submit(launch)
        else:
            self._copies.submit(launch)

    def held_ps(self, kernel: Launch) -> int:
        """When the hardware takes kernels from the queue of one that is ready: now or later."""
        return self.context_of(kernel).held_ps(kernel)

    def touch(self, launch: Launch) -> None:
        """Something that may concern the context of a launch has happened."""
        self.context_of(launch).touch()

    def has_others_beside(self, node: Launch) -> bool:
        """Whether kernels that are not of a node's graph are resident in its context."""
        return self.context_of(node).has_others_beside(node)

    def notify_slicer(self) -> None:
        """A kernel or graph was launched or has left."""
        if self._slicer is not None:
            self._slicer.notify()

    # ---- snapshots -------------------------------------------------------------------------------------------------

    def snapshot(self) -> History:
        """Everything that :meth:`restore` needs: the episode so far as its seed, commands, and who came and went.

        Raises:
            GpuschedError: the episode was not started with ``snapshots=True``.
        """
        if self._history is None:
            raise GpuschedError("snapshots are only possible after reset(..., snapshots=True)")
        stood_ps = self.clock.now if self._stands else NEVER
        return History(self.problem, self._seed, self.timeline.detail, tuple(self._history), stood_ps)

    @one_thread_at_a_time
    def restore(self, snapshot: History) -> View | None:
        """Return to a snapshot exactly, by replaying it; costs as much as the episode up to there."""
        given: Any = snapshot
        if not isinstance(given, History):
            raise InputError(f"this device goes back to what its snapshot() gave, not to {type(snapshot).__name__}")
        own_ps = self._stop_ps
        try:
            view = self._replay(snapshot)
        finally:
            self._stop_ps = own_ps
        if view is None and not self._over and not self._stands:
            raise GpuschedError("a snapshot was taken between a command and the next view")
        return view

    def _replay(self, snapshot: History) -> View | None:
        """Play an episode once more; gives the view at its end."""
        self._stop_ps, *later_ps = stop_times(snapshot.steps, snapshot.stood_ps)
        view = self.reset(snapshot.problem, snapshot.seed, record=snapshot.record, snapshots=True)
        for step, self._stop_ps in zip(snapshot.steps, later_ps, strict=True):
            if not isinstance(step, Presence):
                self.apply(step)
            elif step.comes:
                self.come(step.tenant, step.jobs)
            else:
                self.go(step.tenant)
            view = self.advance()
        return view
