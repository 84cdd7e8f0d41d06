"""The scheduler's side of the reference device: carrying out commands, and what views show.

Each command costs host time, and takes effect when that is spent.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gpusched_env.devices.reference.context import Context
from gpusched_env.devices.reference.launch import Launch, State, in_order
from gpusched_env.devices.reference.preemption import Preemption
from gpusched_env.devices.reference.streams import Streams
from gpusched_env.devices.reference.tiling import TilePair
from gpusched_env.devices.reference.world import World
from gpusched_env.devices.rules import rows
from gpusched_env.devices.rules.world import log_decision
from gpusched_env.hardware.clock import NEVER, to_ps, to_us
from gpusched_env.scenarios.program import HostOp
from gpusched_env.scheduling import commands
from gpusched_env.scheduling.commands import CODES, Command, TilePolicy, Wait
from gpusched_env.scheduling.commands.partition import range_or_all
from gpusched_env.scheduling.commands.preempt import may_preempt
from gpusched_env.scheduling.cores import CoreColumn, fill_cores
from gpusched_env.scheduling.synchronising import held_slots, pair_of
from gpusched_env.scheduling.view import (
    DependencyColumn,
    JobColumn,
    PendingColumn,
    RunningColumn,
    TenantColumn,
    ViewTable,
)
from gpusched_env.workload import host
from gpusched_env.workload.cores.ticking import set_budget

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice


class Decisions:
    """The scheduler's side of the device. Commands were checked before."""

    def __init__(self, world: World, streams: Streams, context_of: Callable[[Launch], Context]) -> None:
        problem = world.problem
        self._problem, self._clock = problem, world.clock
        self._world, self._streams, self._context_of = world, streams, context_of
        world.launches = self
        self._sms = problem.gpu.sms
        self._decision_ps = to_ps(problem.scenario.decision_us)
        self._change_ps = to_ps(problem.gpu.timing.partition_change_us)
        self._begun = False
        """Whether something was launched: partitions made before that are set-up."""
        tenants = len(problem.programs)
        self.partitions = [(0, self._sms)] * tenants
        """First SM and number of SMs where launches of each tenant go by default."""
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
            case commands.Preempt(id_, mode, partition):
                launch = self._streams.launched[id_]
                launch.preempted_ps = now
                preemption = Preemption(self._world, self._context_of(launch), launch)
                preemption.begin(mode, partition, self.busy_until_ps)
            case commands.SetPartition(tenant, partition):
                self._world.clients[tenant].partitioned_ps = now
                self.partitions[tenant] = range_or_all(partition, self._sms)
                self._charge_change()
                if self._begun:
                    host.delay(self._world, tenant, to_ps(self._problem.scenario.restart_us))
            case commands.Reject(tenant, number):
                job = self._world.jobs[tenant][number]
                host.reject(self._world, tenant, number)
                self._streams.vanish(tenant, job)
            case commands.Throttle(tenant, pause_us):
                host.throttle(self._world, tenant, to_ps(pause_us))
            case commands.SetBudget(core, events, always):
                set_budget(self._world, int(core), int(events), int(always))
            case commands.Synchronise(id_, policy, order, wait_kernel):
                self._streams.synchronise(self._pair(id_, policy), order, wait_kernel=wait_kernel)
            case commands.Reshape(id_, form):
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
        """Charge for a change: setting a partition on the GPU takes time."""
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
            launch.partition = range_or_all(command.partition, self._sms)
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

    @property
    def any_preemptible(self) -> bool:
        """Whether a launched kernel may be preempted now."""
        return any(may_preempt(self._world, launch) for launch in self._streams.launched.values())

    def held(self) -> list[str]:
        """Launches whose blocks wait for tiles of another, one sentence each, in order of id."""
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


def _shown(device: ReferenceDevice) -> list[Launch]:
    """Pending launches within the look-ahead, tenant after tenant, oldest first."""
    lookahead = device.problem.scenario.lookahead
    found: list[Launch] = []
    for tenant in range(len(device.problem.programs)):
        mine = {launch for launch in device.streams.pending.values() if launch.tenant == tenant}
        found += in_order(mine)[:lookahead]
    return found


def _launches(
    device: ReferenceDevice,
    launches: Iterable[Launch],
    columns: type[enum.IntEnum],
    fill: Callable[[World, Launch, Any], None],
) -> ViewTable:
    """A table with a row a launch."""
    shown = list(launches)
    array = np.empty((len(shown), len(columns)))
    for launch, row in zip(shown, array, strict=True):
        fill(device.world, launch, row)
    return ViewTable(array, columns)


def _whole(
    device: ReferenceDevice, count: int, columns: type[enum.IntEnum], fill: Callable[[World, Any], object]
) -> ViewTable:
    """A table of ``count`` rows."""
    array = np.empty((count, len(columns)))
    fill(device.world, array)
    return ViewTable(array, columns)


def _jobs(device: ReferenceDevice) -> ViewTable:
    count = sum(client.arrived - client.completed - client.rejected for client in device.world.clients)
    return _whole(device, count, JobColumn, rows.list_jobs)


def _dependencies(device: ReferenceDevice) -> ViewTable:
    pairs = [(launch.id, other.id) for launch in _shown(device) for other in in_order(launch.waits)]
    return ViewTable(np.array(pairs, np.float64).reshape(len(pairs), len(DependencyColumn)), DependencyColumn)


def _occupancy(device: ReferenceDevice) -> float:
    gpu = device.problem.gpu
    threads = sum(sm.threads for context in device.contexts if context.active for sm in context.sms)
    return threads / (gpu.sms * gpu.limits.threads)


BUILDERS: Final[dict[str, Callable[[ReferenceDevice], Any]]] = {
    "time_us": lambda d: to_us(d.clock.now),
    "pending": lambda d: _launches(d, _shown(d), PendingColumn, rows.fill_pending),
    "running": lambda d: _launches(d, d.streams.launched.values(), RunningColumn, rows.fill_running),
    "tenants": lambda d: _whole(d, len(d.problem.programs), TenantColumn, rows.fill_tenants),
    "jobs": _jobs,
    "dependencies": _dependencies,
    "cores": lambda d: _whole(d, len(d.world.cores), CoreColumn, fill_cores),
    "sms": lambda d: d.problem.gpu.sms,
    "busy_sms": lambda d: d.world.busy_sms,
    "occupancy": _occupancy,
    "dram": lambda d: d.world.traffic / d.problem.gpu.dram_bytes_per_us,
    "horizon_us": lambda d: d.problem.scenario.horizon_us,
}
