"""The reference device: hosts, streams, contexts and the decision epochs that tie them to a scheduler."""

from __future__ import annotations

import math
from collections.abc import Generator

import simpy
from simpy.events import Event

from gpusched_env.devices.reference.context import Context
from gpusched_env.devices.reference.copies import CopyEngines
from gpusched_env.devices.reference.host import Host, Job
from gpusched_env.devices.reference.launch import Launch, Stage
from gpusched_env.devices.reference.meter import Meter
from gpusched_env.devices.reference.phases import Phase, Timer
from gpusched_env.devices.reference.preemption import preempt
from gpusched_env.devices.reference.slicer import Slicer
from gpusched_env.devices.reference.stream import Stream
from gpusched_env.devices.reference.views import LazyView, build_view
from gpusched_env.errors import DeadlockError, GpuschedError, IllegalCommand
from gpusched_env.scenarios.problem import HostOp, Problem
from gpusched_env.scheduling import commands
from gpusched_env.scheduling.commands import Command, Partition, Preempt, SetPartition, Wait
from gpusched_env.scheduling.costs import Costs
from gpusched_env.scheduling.timeline import Detail, Timeline
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import OpKind

DECISION_CODES = {commands.Launch: 0, Preempt: 1, SetPartition: 2}
"""Values of the timeline's ``command`` column."""


class ReferenceDevice:
    """One simulated GPU with its tenants (see :class:`gpusched_env.scheduling.device.Device`)."""

    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs") -> View | None:
        """Start an episode and run to the first decision epoch (``None``: it ended before one)."""
        self.problem = problem
        self._seed = seed
        self._record = record
        self.env = simpy.Environment()
        self.timeline = Timeline(record)
        self.meter = Meter(problem, self.timeline)
        self.done = False
        self._done_us = math.inf
        self._over = False
        self._ids = 0
        self.epoch = 0
        """Commands applied; a view is valid within one epoch."""
        self._awake = False
        self._timer_us = math.inf
        self._busy_until_us = 0.0
        self._history: list[Command] = []
        self.launched: dict[int, Launch] = {}
        """Kernels launched and not finished, by id, in order of launch."""
        self.launched_by = [0] * len(problem.programs)
        self.partitions: list[Partition | None] = [None] * len(problem.programs)
        sliced = problem.scenario.contexts == "per-tenant"
        self.contexts = [Context(self, i, active=not sliced) for i in range(len(problem.programs) if sliced else 1)]
        self._slicer = Slicer(self, self.contexts) if sliced else None
        self._copies = CopyEngines(self)
        self.streams = [Stream(self, i, program.gap_us) for i, program in enumerate(problem.programs)]
        self.hosts = [Host(self, i, program, seed) for i, program in enumerate(problem.programs)]
        self._to_complete = sum(program.tenant.jobs or 0 for program in problem.programs)
        return self._run()

    @property
    def time_us(self) -> float:
        """Simulated time."""
        return self.env.now

    @property
    def costs(self) -> Costs:
        """Time integrals since the reset, exact at :attr:`time_us`."""
        return self.meter.read(self.env.now, self._done_us)

    def view(self) -> View:
        """A snapshot at the present time, whether or not it is a decision epoch."""
        return build_view(self)

    # ---- decisions -------------------------------------------------------------------------------

    def apply(self, command: Command) -> None:
        """Carry out one command; a refused one changes nothing.

        Raises:
            IllegalCommand: names the command and why it is not legal now.
        """
        if isinstance(command, Wait):
            if not command.until_us >= self.env.now:
                raise IllegalCommand(f"{command}: until_us lies before the present time {self.env.now} us")
            self._timer_us = command.until_us
            self._awake = False
            self._decided()
        elif isinstance(command, commands.Launch):
            self._launch(command)
        elif isinstance(command, Preempt):
            self._preempt(command)
        elif isinstance(command, SetPartition):
            self._set_partition(command)
        else:
            raise IllegalCommand(f"{command!r} is not a command")
        self._history.append(command)
        self.epoch += 1

    def _decided(self) -> float:
        """Charge the host time of one decision; returns when its command takes effect."""
        self._busy_until_us = max(self._busy_until_us, self.env.now) + self.problem.scenario.decision_us
        return self._busy_until_us

    def _launch(self, command: commands.Launch) -> None:
        lowest = 1 - self.problem.gpu.priorities
        if not lowest <= command.priority <= 0:
            raise IllegalCommand(f"{command}: stream priority must be in {lowest}..0 on {self.problem.gpu.name}")
        host = next((h for h in self.hosts if h.pending and h.pending[0].id == command.kernel), None)
        if host is None:
            heads = [h.pending[0].id for h in self.hosts if h.pending]
            raise IllegalCommand(f"{command}: kernel {command.kernel} is not launchable; launchable now: {heads}")
        self._check_partition(command, command.partition)
        launch = host.pending.popleft()
        launch.priority = command.priority
        launch.partition = command.partition or self.partitions[host.index]
        self._note(command, launch.id)
        self._hand_over(host, launch, self._decided())

    def _hand_over(self, host: Host, launch: Launch, at_us: float) -> None:
        """Pass an operation to its stream, and copies right behind it too."""
        while True:
            if launch.op.kind is OpKind.KERNEL:
                self._count(launch, 1)
            launch.stage = Stage.LAUNCHED
            launch.launched_us = at_us
            launch.arrives_us = at_us + self.problem.gpu.timing.launch_latency_us
            if launch.preemptions:
                self.env.process(self._resume(launch))
            else:
                self.streams[host.index].put(launch)
            if not host.pending or host.pending[0].op.kind is OpKind.KERNEL:
                return
            launch = host.pending.popleft()

    def _resume(self, launch: Launch) -> Generator[Event, None, None]:
        """A preempted kernel comes back to the head of its stream, where it still is."""
        yield Timer(self.env, launch.arrives_us + launch.restore_us - self.env.now, Phase.STREAM, launch.tenant)
        self.context_of(launch).submit(launch)

    def _preempt(self, command: Preempt) -> None:
        launch = self.launched.get(command.kernel)
        if launch is None or launch.slot < 0 or launch.started_us == math.inf:
            raise IllegalCommand(f"{command}: kernel {command.kernel} is not running")
        if launch.preempting:
            raise IllegalCommand(f"{command}: kernel {command.kernel} is being preempted already")
        if command.mode not in ("drain", "save", "reset"):
            raise IllegalCommand(f"{command}: mode must be drain, save or reset")
        if command.mode == "reset" and not self.problem.kernels[launch.op.identity].kernel.idempotent:
            raise IllegalCommand(f"{command}: kernel {command.kernel} is not idempotent and cannot be reset")
        launch.preempting = True
        self._note(command, launch.id)
        self.env.process(preempt(self, launch, command.mode, self._decided() - self.env.now))

    def _set_partition(self, command: SetPartition) -> None:
        if not 0 <= command.tenant < len(self.hosts):
            raise IllegalCommand(f"{command}: tenants are 0..{len(self.hosts) - 1}")
        self._check_partition(command, command.partition)
        if command.partition == self.partitions[command.tenant]:
            raise IllegalCommand(f"{command}: tenant {command.tenant} has this partition already")
        self._note(command, -1)
        self.partitions[command.tenant] = command.partition
        self._decided()
        if self.env.now > 0.0:
            # Partitions made before the work begins cost nothing; later ones keep the scheduler's host busy.
            self._busy_until_us += self.problem.gpu.timing.partition_change_us

    def _check_partition(self, command: Command, partition: Partition | None) -> None:
        sms = self.problem.gpu.sms
        if partition is not None and not (0 <= partition.first < sms and 1 <= partition.sms <= sms):
            raise IllegalCommand(f"{command}: a partition needs first in 0..{sms - 1} and sms in 1..{sms}")

    def _note(self, command: Command, kernel: int) -> None:
        if self._record != "jobs":
            self.timeline.decisions.add(self.env.now, DECISION_CODES[type(command)], kernel)

    # ---- epochs ----------------------------------------------------------------------------------

    def advance(self) -> View | None:
        """The view for the next decision, or ``None`` at the end of the episode."""
        return self._run()

    def wake(self) -> None:
        """Something has happened that a scheduler could react to."""
        self._awake = True

    def _has_choice(self) -> bool:
        """Whether a command other than ``Wait`` is legal (of those that the scenario offers)."""
        if any(host.pending for host in self.hosts):
            return True
        offered = self.problem.scenario.commands
        if "partition" in offered:
            return True
        return "preempt" in offered and any(
            launch.slot >= 0 and launch.started_us < math.inf and not launch.preempting for launch in self.launched.values()
        )

    def _run(self) -> View | None:
        env = self.env
        horizon = self.problem.scenario.horizon_us
        if self._awake is False and self._history and not isinstance(self._history[-1], Wait):
            self._awake = True
        while not self._over:
            upcoming = env.peek()
            if upcoming <= env.now:
                env.step()
                continue
            if self.done or env.now >= horizon:
                self._over = True
                break
            if self._awake and env.now >= self._busy_until_us and self._has_choice():
                return LazyView(self)
            limit = min(self._timer_us, horizon)
            if self._awake and self._busy_until_us > env.now:
                limit = min(limit, self._busy_until_us)
            if upcoming <= limit:
                env.step()
                continue
            if upcoming == math.inf and self._timer_us == math.inf and not self._awake:
                raise self._deadlock()
            if limit >= self._timer_us:
                self._timer_us = math.inf
                self._awake = True
            Timer(env, limit - env.now, Phase.DECISION)
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
            f"nothing can happen any more at {self.env.now:.3f} us: " + "; ".join(waiting)
            + (f"; launched but unfinished: {blocked[:5]}" if blocked else "")
        )

    # ---- what happens ----------------------------------------------------------------------------

    def issue(self, host: Host, op: HostOp, job: Job) -> None:
        """A host issues an operation; the scheduler intercepts kernels, copies pass in their order."""
        blocks = self.problem.kernels[op.identity].kernel.blocks if op.identity >= 0 else 0
        launch = Launch(self._ids, op, job, host.index, self.env.now, blocks)
        self._ids += 1
        if op.kind is not OpKind.KERNEL and not host.pending:
            self._hand_over(host, launch, self.env.now)
            return
        host.pending.append(launch)
        if len(host.pending) == 1:
            self.wake()

    def execute(self, launch: Launch) -> Event:
        """An operation has reached the head of its stream; the event fires when it has finished."""
        done = launch.done = self.env.event()
        if launch.op.kind is OpKind.KERNEL:
            self.context_of(launch).submit(launch)
        else:
            self.env.process(self._copies.run(launch))
        return done

    def context_of(self, launch: Launch) -> Context:
        """The context that a launch belongs to."""
        return self.contexts[launch.tenant if len(self.contexts) > 1 else 0]

    def _count(self, launch: Launch, change: int) -> None:
        """Keep the numbers of launched, unfinished kernels."""
        if change > 0:
            self.launched[launch.id] = launch
        else:
            del self.launched[launch.id]
        self.launched_by[launch.tenant] += change
        if self._slicer is not None:
            self._slicer.notify()

    def finished(self, launch: Launch) -> None:
        """All blocks of a kernel have ended."""
        launch.stage = Stage.FINISHED
        launch.preempting = False
        self._count(launch, -1)
        if self._record != "jobs":
            self.timeline.kernels.add(
                launch.id, launch.tenant, launch.job.number, launch.op.identity, launch.issued_us,
                launch.launched_us, launch.started_us, self.env.now, launch.priority, launch.preemptions,
            )  # fmt: skip
        self.wake()
        self._complete(launch)

    def copied(self, launch: Launch, engine: int, started_us: float) -> None:
        """A copy has ended."""
        launch.stage = Stage.FINISHED
        if self._record != "jobs":
            self.timeline.copies.add(engine, launch.tenant, launch.op.bytes, started_us, self.env.now)
        self._complete(launch)

    def _complete(self, launch: Launch) -> None:
        self.hosts[launch.tenant].finished(launch)
        launch.done.succeed()

    def preempted(self, launch: Launch) -> None:
        """A kernel has left the GPU unfinished; it is pending again, before later ones of its tenant."""
        launch.stage = Stage.PENDING
        launch.preempting = False
        launch.preemptions += 1
        self._count(launch, -1)
        self.hosts[launch.tenant].pending.appendleft(launch)
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
        """Everything that :meth:`restore` needs: the episode so far as its seed and commands."""
        return (self.problem, self._seed, self._record, tuple(self._history))

    def restore(self, snapshot: tuple[Problem, int, Detail, tuple[Command, ...]]) -> View | None:
        """Return to a snapshot exactly, by replaying it; costs as much as the episode up to there."""
        problem, seed, record, history = snapshot
        view = self.reset(problem, seed, record=record)
        for command in history:
            self.apply(command)
            view = self.advance()
        if view is None and not self._over:
            raise GpuschedError("a snapshot was taken between a command and the next view")
        return view
