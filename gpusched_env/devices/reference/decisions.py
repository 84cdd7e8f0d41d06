"""Carrying out a scheduler's commands: each costs host time, and takes effect when that is spent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from gpusched_env.devices.reference.context import Context
from gpusched_env.devices.reference.launch import Launch, State
from gpusched_env.devices.reference.preemption import Preemption
from gpusched_env.devices.reference.setting import Setting
from gpusched_env.devices.reference.streams import Streams
from gpusched_env.devices.reference.tiling import TilePair
from gpusched_env.devices.reference.world import World
from gpusched_env.devices.rules.logs import log_decision
from gpusched_env.hardware.clock import NEVER, to_ps
from gpusched_env.scenarios.program import HostOp
from gpusched_env.scheduling import commands
from gpusched_env.scheduling.commands import (
    CODES,
    Command,
    Preempt,
    Reject,
    Reshape,
    SetBudget,
    SetPartition,
    Synchronise,
    Throttle,
    TilePolicy,
    Wait,
)
from gpusched_env.scheduling.commands.partition import whole_or
from gpusched_env.scheduling.commands.preempt import may_preempt
from gpusched_env.scheduling.synchronising import held_slots, pair_of
from gpusched_env.workload import host
from gpusched_env.workload.cores.ticking import set_budget


class Decisions:
    """The scheduler's side of the device. Commands were checked before."""

    def __init__(
        self, setting: Setting, world: World, streams: Streams, context_of: Callable[[Launch], Context]
    ) -> None:
        problem = setting.problem
        self._setting, self._problem, self._clock = setting, problem, setting.clock
        self._world, self._streams, self._context_of = world, streams, context_of
        world.launches = self
        self._sms = problem.gpu.sms
        self._decision_ps = to_ps(problem.scenario.decision_us)
        self._change_ps = to_ps(problem.gpu.timing.partition_change_us)
        self._begun = False
        """Whether something was launched: partitions made before that are set-up."""
        tenants = len(problem.programs)
        self.partitions = [(0, self._sms)] * tenants
        """By tenant: where its launches go by default."""
        self.busy_until_ps = 0
        """When the host time of all decisions so far is spent."""
        self.wait_until_ps = NEVER
        self.once_ps = -1
        """When a command was last given that is legal once at an instant."""

    def carry_out(self, command: Command) -> None:
        """Carry out a legal command."""
        now = self._clock.now
        if not isinstance(command, Wait):
            log_decision(self._world, CODES[type(command)], command.launch_id)
        if command.ONCE:
            self.once_ps = now
        self.busy_until_ps = max(self.busy_until_ps, now) + self._decision_ps
        # After a command the scheduler is asked again, until it waits: then something must happen first.
        self._world.awake = 0 if isinstance(command, Wait) else 1
        match command:
            case Wait(until_us):
                # At least a picosecond: no sequence of commands stops the clock.
                self.wait_until_ps = max(now + 1, to_ps(until_us))
            case commands.Launch():
                self._launch(command)
            case Preempt(id_, mode, partition):
                launch = self._streams.launched[id_]
                launch.preempted_ps = now
                preemption = Preemption(self._setting, self._world, self._context_of(launch), launch)
                preemption.begin(mode, partition, self.busy_until_ps)
            case SetPartition(tenant, partition):
                self._world.clients[tenant].partitioned_ps = now
                self.partitions[tenant] = whole_or(partition, self._sms)
                self._charge_change()
                if self._begun:
                    host.delay(self._world, tenant, to_ps(self._problem.scenario.restart_us))
            case Reject(tenant, number):
                job = self._world.jobs[tenant][number]
                host.reject(self._world, tenant, number)
                self._streams.vanish(tenant, job)
            case Throttle(tenant, pause_us):
                host.throttle(self._world, tenant, to_ps(pause_us))
            case SetBudget(core, events, always):
                set_budget(self._world, int(core), int(events), int(always))
            case Synchronise(id_, policy, order, wait_kernel):
                self._streams.synchronise(self._pair(id_, policy), order, wait_kernel=wait_kernel)

            case Reshape(id_, form):
                self._streams.reshape(self._streams.pending[id_], form)

    def _pair(self, id_: int, policy: TilePolicy) -> TilePair:
        """A pending launch and its producer under a policy."""
        consumer = self._streams.pending[id_]
        producer, op = consumer.producer, consumer.op
        assert producer is not None
        assert isinstance(op, HostOp)
        made, used = (self._problem.kernels[one.op.identity].kernel for one in (producer, consumer))
        return TilePair(pair_of(policy, made, used, op.needs), producer, consumer)

    def _charge_change(self) -> None:
        """Setting a partition on the GPU takes time."""
        if self._begun:
            self.busy_until_ps += self._change_ps

    def _launch(self, command: commands.Launch) -> None:
        launch = self._streams.pending[command.launch]
        if launch.windowed and command.stream is None:
            launch.stream = self._streams.own.stream_for(launch)
        elif command.stream is not None and not launch.preempted:
            launch.stream = command.stream
        mask = self._problem.streams[launch.stream].mask if launch.stream >= 0 else None
        launch.partition = own = self.partitions[launch.tenant] if mask is None else mask
        if command.partition is not None:
            launch.partition = whole_or(command.partition, self._sms)
        if launch.partition != own:
            self._charge_change()
        self._begun = True
        launch.priority = self._priority_of_stream(launch) if command.priority is None else command.priority
        self._streams.launch(launch, self.busy_until_ps)

    def _priority_of_stream(self, launch: Launch) -> int:
        """The priority of a launch's stream; a child without one has its parent's (0: that went with its job)."""
        if launch.stream >= 0:
            return self._problem.streams[launch.stream].priority
        parent = launch.parent
        return 0 if parent is None or parent.state is State.DONE else parent.priority

    def on_gpu(self, launch: Launch) -> bool:
        """Whether a kernel has started, and has not left the SMs."""
        return launch.started_ps < NEVER and launch.grid is not None

    @property
    def any_launchable(self) -> bool:
        """Whether a pending launch may be launched now."""
        return any(map(self._streams.launchable, self._streams.pending.values()))

    @property
    def any_preemptible(self) -> bool:
        """Whether a launched kernel may be preempted now."""
        return any(may_preempt(self._world, launch) for launch in self._streams.launched.values())

    @property
    def any_synchronisable(self) -> bool:
        """Whether the tiles of a pending launch may be synchronised now."""
        return any(map(self._streams.synchronisable, self._streams.pending.values()))

    @property
    def any_reshapable(self) -> bool:
        """Whether a pending launch may be given another form now."""
        return any(map(self._streams.forms, self._streams.pending.values()))

    def held(self) -> list[str]:
        """Whose blocks wait for tiles of another."""
        found = []
        for launch in sorted(self._streams.launched.values(), key=lambda launch: launch.id):
            if launch.grid is None or launch.tiling is None or launch.tiling.awaits is None:
                continue
            blocks = Counter(
                block.number
                for sm in self._context_of(launch).sms
                for block in sm.blocks
                if block.grid is launch.grid and block.held
            )
            if blocks:
                producer = launch.tiling.awaits.producer.id
                found.append(held_slots(launch.id, producer, launch.tiling.grid, blocks))
        return found
