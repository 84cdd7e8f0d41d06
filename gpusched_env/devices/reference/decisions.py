"""Carrying out a scheduler's commands: each costs host time, and takes effect when that is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.devices.reference.launch import Launch, State
from gpusched_env.devices.reference.preemption import Preemption
from gpusched_env.hardware.clock import NEVER, to_ps
from gpusched_env.scheduling import commands
from gpusched_env.scheduling.commands import CODES, Command, Preempt, Reject, SetPartition, Wait
from gpusched_env.scheduling.legality import whole_or
from gpusched_env.workload import host
from gpusched_env.workload.workload import OpKind

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice


class Decisions:
    """The scheduler's side of the device. Commands were checked before."""

    def __init__(self, device: ReferenceDevice) -> None:
        self._device = device
        self._sms = device.problem.gpu.sms
        self._decision_ps = to_ps(device.problem.scenario.decision_us)
        self._change_ps = to_ps(device.problem.gpu.timing.partition_change_us)
        self._begun = False
        """Whether something was launched: partitions made before that are set-up."""
        tenants = len(device.problem.programs)
        self.partitions = [(0, self._sms)] * tenants
        """By tenant: where its launches go by default."""
        self._partitioned_ps = [NEVER] * tenants
        """By tenant: when that was last set."""
        self.busy_until_ps = 0
        """When the host time of all decisions so far is spent."""
        self.wait_until_ps = NEVER
        self.once_ps = -1
        """When a command was last given that is legal once at an instant."""

    def carry_out(self, command: Command) -> None:
        """Carry out a legal command."""
        now = self._device.clock.now
        if self._device.keeps_kernels and not isinstance(command, Wait):
            launch_id = command.launch if isinstance(command, commands.Launch | Preempt) else -1
            self._device.timeline.decisions.add(now, CODES[type(command)], launch_id)
        self.busy_until_ps = max(self.busy_until_ps, now) + self._decision_ps
        # After a command the scheduler is asked again, until it waits: then something must happen first.
        self._device.world.awake = 0 if isinstance(command, Wait) else 1
        match command:
            case Wait(until_us):
                # At least a picosecond: no sequence of commands stops the clock.
                self.wait_until_ps = max(now + 1, to_ps(until_us))
            case commands.Launch():
                self._launch(command)
            case Preempt(id_, mode, partition):
                launch = self._device.streams.launched[id_]
                self.once_ps = launch.preempted_ps = now
                Preemption(self._device, launch, mode, partition, self.busy_until_ps)
            case SetPartition(tenant, partition):
                self.once_ps = self._partitioned_ps[tenant] = now
                self.partitions[tenant] = whole_or(partition, self._sms)
                self._charge_change()
            case Reject(tenant, number):
                self.once_ps = now
                job = self._device.world.jobs[tenant][number]
                host.reject(self._device.world, tenant, number)
                self._device.streams.vanish(tenant, job)

    def _charge_change(self) -> None:
        """The GPU is told of a partition."""
        if self._begun:
            self.busy_until_ps += self._change_ps

    def _launch(self, command: commands.Launch) -> None:
        launch = self._device.streams.pending[command.launch]
        launch.partition = own = self.partitions[launch.tenant]
        if command.partition is not None:
            launch.partition = whole_or(command.partition, self._sms)
        if launch.partition != own:
            self._charge_change()
        self._begun = True
        if launch.windowed and command.stream is None:
            launch.stream = self._device.streams.stream_for(launch)
        elif command.stream is not None and not launch.returned:
            launch.stream = command.stream
        launch.priority = self._stream_s_priority(launch) if command.priority is None else command.priority
        self._device.streams.launch(launch, self.busy_until_ps)

    def _stream_s_priority(self, launch: Launch) -> int:
        """The priority of a launch's stream; a child without one has its parent's (0: that went with its job)."""
        if launch.stream >= 0:
            return self._device.problem.streams[launch.stream].priority
        parent = launch.parent
        return 0 if parent is None or parent.state is State.DONE else parent.priority

    def preemptible(self, launch: Launch) -> bool:
        """Whether a launched kernel may be preempted now."""
        started = launch.started_ps < NEVER and launch.grid is not None
        return started and not launch.preempting and launch.preempted_ps != self._device.clock.now

    def partitionable(self, tenant: int) -> bool:
        """Whether a tenant's partition may be changed now."""
        return self._partitioned_ps[tenant] != self._device.clock.now

    def rejectable(self, tenant: int) -> list[int]:
        """Numbers of a tenant's jobs that may be rejected now, oldest first."""
        world = self._device.world
        if "reject" not in self._device.problem.scenario.commands:
            return []
        return [job.number for job in world.in_system(tenant) if host.rejectable(world, tenant, job.number)]

    @property
    def any_legal(self) -> bool:
        """Whether a command other than ``Wait`` is legal (of those that the scenario offers)."""
        offered, streams = self._device.problem.scenario.commands, self._device.streams
        tenants = range(len(self.partitions))
        return (
            ("launch" in offered and any(map(streams.launchable, streams.pending.values())))
            or ("partition" in offered and any(self.partitionable(tenant) for tenant in tenants))
            or ("preempt" in offered and any(self.preemptible(launch) for launch in streams.launched.values()))
            or any(self.rejectable(tenant) for tenant in tenants)
        )

    def stuck(self) -> str:
        """What keeps the GPU from going on, where nothing can happen any more."""
        device = self._device
        found = []
        for tenant, client in enumerate(device.world.clients):
            if client.outstanding:
                mine = [id_ for id_, launch in device.streams.pending.items() if launch.tenant == tenant]
                name = device.problem.programs[tenant].tenant.name
                found.append(
                    f"tenant {name}: {client.outstanding} operations unfinished, "
                    + (f"kernels {sorted(mine)[:3]} wait for a launch" if mine else "none waits for the scheduler")
                )
        left = [launch for launch in device.streams.launched.values() if launch.state is not State.DONE]
        tiles = [
            launch.id
            for launch in device.streams.unfinished.values()
            if launch.kind is OpKind.KERNEL and launch.grid is not None and launch.awaits is not None
        ]
        if left:
            found.append(f"launched but unfinished: {[launch.id for launch in left[:5]]}")
        if tiles:
            found.append(f"resident and waiting for the tiles of another: {tiles[:5]}")
        return "; ".join(found)
