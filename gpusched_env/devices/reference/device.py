"""The reference device: hosts, streams, contexts and the decision epochs that tie them to a scheduler."""

from __future__ import annotations

import math

from simpy.events import Event

from gpusched_env.devices.reference.context import Context
from gpusched_env.devices.reference.copies import CopyEngines
from gpusched_env.devices.reference.decisions import Decisions
from gpusched_env.devices.reference.host import Host, Job
from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.meter import Meter
from gpusched_env.devices.reference.phases import Clock, Phase, Timer, order
from gpusched_env.devices.reference.slicer import Slicer
from gpusched_env.devices.reference.stream import Stream
from gpusched_env.devices.reference.views import lazy_view
from gpusched_env.errors import DeadlockError, GpuschedError, IllegalCommand
from gpusched_env.scenarios.problem import HostOp, Problem
from gpusched_env.scheduling.commands import Command, Preempt, SetPartition, Wait
from gpusched_env.scheduling.commands import Launch as LaunchCommand
from gpusched_env.scheduling.costs import Costs
from gpusched_env.scheduling.timeline import Detail, Timeline
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import OpKind

KERNEL = OpKind.KERNEL


class ReferenceDevice:
    """One simulated GPU with its tenants (see :class:`gpusched_env.scheduling.device.Device`)."""

    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs", snapshots: bool = False) -> View | None:
        """Start an episode and run to the first decision epoch (``None``: it ended before one)."""
        self.problem: Problem = problem
        self._seed = seed
        self._record = record
        self.env: Clock = Clock()
        self.timeline = Timeline(record)
        self.meter: Meter = Meter(problem, self.timeline)
        self.done = False
        self._done_us = math.inf
        self._over = False
        self._ids = 0
        self.epoch = 0
        """Commands applied; a view is valid within one epoch."""
        self._awake = False
        """Whether something has happened that a scheduler could react to."""
        self._timer_us = math.inf
        self._history: list[Command] | None = [] if snapshots else None
        self.launched: dict[int, Launch] = {}
        """Kernels launched and not finished, by id, in order of launch."""
        self.launched_by = [0] * len(problem.programs)
        self.decisions = Decisions(self)
        sliced = problem.scenario.contexts == "per-tenant"
        self.contexts = [Context(self, i, active=not sliced) for i in range(len(problem.programs) if sliced else 1)]
        self._slicer = Slicer(self, self.contexts) if sliced else None
        self._copies = CopyEngines(self)
        self.streams = [Stream(self, i, program.gap_us) for i, program in enumerate(problem.programs)]
        self.hosts: list[Host] = [Host(self, i, program, seed) for i, program in enumerate(problem.programs)]
        self._to_complete = sum(program.tenant.jobs or 0 for program in problem.programs)
        return self._run()

    @property
    def time_us(self) -> float:
        """Simulated time."""
        return float(self.env.now)

    @property
    def costs(self) -> Costs:
        """Time integrals since the reset, exact at :attr:`time_us`."""
        costs = self.meter.read(self.env.now, self._done_us)
        costs.over = self._over
        return costs

    def view(self) -> View:
        """A snapshot at the present time, whether or not it is a decision epoch."""
        return lazy_view(self).complete()

    # ---- decisions -------------------------------------------------------------------------------

    def apply(self, command: Command) -> None:
        """Carry out one command; a refused one changes nothing.

        Raises:
            IllegalCommand: names the command and why it is not legal now.
        """
        # After a command the scheduler is asked again, until it waits: then something must happen first.
        awake = True
        if isinstance(command, Wait):
            if not command.until_us >= self.env.now:
                raise IllegalCommand(f"{command}: until_us lies before the present time {self.env.now} us")
            self._timer_us = command.until_us
            self.decisions.charge()
            awake = False
        elif isinstance(command, LaunchCommand):
            self.decisions.launch(command)
        elif isinstance(command, Preempt):
            self.decisions.preempt(command)
        elif isinstance(command, SetPartition):
            self.decisions.set_partition(command)
        else:
            raise IllegalCommand(f"{command!r} is not a command")
        self._awake = awake
        if self._history is not None:
            self._history.append(command)
        self.epoch += 1

    # ---- epochs ----------------------------------------------------------------------------------

    def advance(self) -> View | None:
        """The view for the next decision, or ``None`` at the end of the episode."""
        return self._run()

    def wake(self) -> None:
        """Something has happened that a scheduler could react to."""
        self._awake = True

    def _has_choice(self) -> bool:
        """Whether a command other than ``Wait`` is legal (of those that the scenario offers)."""
        for host in self.hosts:
            if host.pending:
                return True
        offered, decisions = self.problem.scenario.commands, self.decisions
        if "partition" in offered and any(decisions.may_set_partition(host.index) for host in self.hosts):
            return True
        return "preempt" in offered and any(decisions.may_preempt(launch) for launch in self.launched.values())

    def _run(self) -> View | None:
        """Process events up to the next decision epoch or the end of the episode."""
        env = self.env
        horizon = self.problem.scenario.horizon_us
        while not self._over:
            upcoming = env.finish_present()
            now = env.now
            if self.done or now >= horizon:
                self._over = True
                break
            limit = self._timer_us if self._timer_us < horizon else horizon
            if self._awake:
                busy_until = self.decisions.busy_until_us
                if busy_until > now:
                    limit = min(limit, busy_until)
                elif self._has_choice():
                    return lazy_view(self)
            if upcoming <= limit:
                env.step()
                continue
            if upcoming == math.inf and self._timer_us == math.inf and not self._awake:
                raise self._deadlock()
            if limit >= self._timer_us:
                self._timer_us = math.inf
                self._awake = True
            Timer(env, limit, order(Phase.DECISION))
            env.step()
        return None

    def _deadlock(self) -> DeadlockError:
        waiting = []
        for host in self.hosts:
            if host.outstanding:
                kernels = [launch.id for launch in host.pending][:3]
                waiting.append(
                    f"tenant {host.tenant.name}: {host.outstanding} operations unfinished, "
                    + (f"kernels {kernels} wait for a launch" if kernels else "none waits for the scheduler")
                )
        blocked = [launch.id for launch in self.launched.values()]
        return DeadlockError(
            f"nothing can happen any more at {self.env.now:.3f} us: "
            + "; ".join(waiting)
            + (f"; launched but unfinished: {blocked[:5]}" if blocked else "")
        )

    # ---- what happens ----------------------------------------------------------------------------

    def issue(self, host: Host, op: HostOp, job: Job) -> None:
        """A host issues an operation; the scheduler intercepts kernels, copies pass in their order."""
        blocks = self.problem.kernels[op.identity].kernel.blocks if op.identity >= 0 else 0
        launch = Launch(self._ids, op, job, host.index, self.env.now, blocks)
        self._ids += 1
        if op.kind is not KERNEL and not host.pending:
            self.decisions.hand_over(host, launch, self.env.now)
            return
        host.pending.append(launch)
        host.kernels_pending += op.kind is KERNEL
        if len(host.pending) == 1:
            self._awake = True

    def execute(self, launch: Launch) -> Event:
        """An operation has reached the head of its stream; the event fires when it has finished."""
        done = launch.done = Event(self.env)
        if launch.op.kind is KERNEL:
            self.context_of(launch).submit(launch)
        else:
            self.env.process(self._copies.run(launch))
        return done

    def context_of(self, launch: Launch) -> Context:
        """The context that a launch belongs to."""
        return self.contexts[launch.tenant if len(self.contexts) > 1 else 0]

    def count_launched(self, launch: Launch) -> None:
        """A kernel was handed to its stream."""
        self.launched[launch.id] = launch
        self.launched_by[launch.tenant] += 1
        if self._slicer is not None:
            self._slicer.notify()

    def _count_left(self, launch: Launch) -> None:
        """A launched kernel has left the GPU; a preemption of it that is under way has nothing left to do."""
        launch.on_device = launch.preempting = False
        if launch.preemption is not None:
            launch.preemption.cancel()
        del self.launched[launch.id]
        self.launched_by[launch.tenant] -= 1
        if self._slicer is not None:
            self._slicer.notify()

    def finished(self, launch: Launch) -> None:
        """All blocks of a kernel have ended."""
        self._count_left(launch)
        if self._record != "jobs":
            self.timeline.kernels.add(
                launch.id, launch.tenant, launch.job.number, launch.op.identity, launch.issued_us,
                launch.launched_us, launch.started_us, self.env.now, launch.priority, launch.preemptions,
            )  # fmt: skip
        self.wake()
        self._complete(launch)

    def copied(self, launch: Launch, engine: int, started_us: float) -> None:
        """A copy has ended."""
        if self._record != "jobs":
            self.timeline.copies.add(engine, launch.tenant, launch.op.bytes, started_us, self.env.now)
        self._complete(launch)

    def _complete(self, launch: Launch) -> None:
        self.hosts[launch.tenant].finished(launch)
        launch.done.succeed()

    def preempted(self, launch: Launch) -> None:
        """A kernel has left the GPU unfinished; it is pending again, before later ones of its tenant."""
        launch.preemptions += 1
        self._count_left(launch)
        host = self.hosts[launch.tenant]
        host.pending.appendleft(launch)
        host.kernels_pending += 1
        self.wake()

    def job_completed(self, host: Host, job: Job) -> None:
        """All operations of a job have finished."""
        now = self.env.now
        self.meter.job_completed(host.index, now)
        self.timeline.jobs.add(host.index, job.number, job.arrived_us, job.started_us, now)
        if host.tenant.jobs is not None:
            self._to_complete -= 1
            if self._to_complete == 0:
                self.done = True
                self._done_us = now
        self.wake()

    # ---- snapshots -------------------------------------------------------------------------------

    def snapshot(self) -> tuple[Problem, int, Detail, tuple[Command, ...]]:
        """Everything that :meth:`restore` needs: the episode so far as its seed and commands.

        Raises:
            GpuschedError: the episode was not started with ``snapshots=True``.
        """
        if self._history is None:
            raise GpuschedError("snapshots are only possible after reset(..., snapshots=True)")
        return (self.problem, self._seed, self._record, tuple(self._history))

    def restore(self, snapshot: tuple[Problem, int, Detail, tuple[Command, ...]]) -> View | None:
        """Return to a snapshot exactly, by replaying it; costs as much as the episode up to there."""
        problem, seed, record, history = snapshot
        view = self.reset(problem, seed, record=record, snapshots=True)
        for command in history:
            self.apply(command)
            view = self.advance()
        if view is None and not self._over:
            raise GpuschedError("a snapshot was taken between a command and the next view")
        return view
