"""Carrying out a scheduler's commands, after checking that they are legal."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import TYPE_CHECKING

from simpy.events import Event

from gpusched_env.devices.reference.host import Host
from gpusched_env.devices.reference.launch import Launch
from gpusched_env.devices.reference.phases import Phase, Timer, order
from gpusched_env.devices.reference.preemption import preempt, save_some
from gpusched_env.errors import IllegalCommand
from gpusched_env.scheduling import commands
from gpusched_env.scheduling.commands import Command, Partition, Preempt, SetPartition
from gpusched_env.scheduling.legality import check_first_at_instant, check_partition, check_preemption
from gpusched_env.workload.workload import OpKind

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice

KERNEL = OpKind.KERNEL

DECISION_CODES = {commands.Launch: 0, Preempt: 1, SetPartition: 2}
"""Values of the timeline's ``command`` column."""


class Decisions:
    """The scheduler's side of the device: each command costs host time, and takes effect when that is spent."""

    def __init__(self, device: ReferenceDevice) -> None:
        self._device = device
        self._env = device.env
        gpu = device.problem.gpu
        self._sms = gpu.sms
        self._lowest_priority = 1 - gpu.priorities
        self._launch_latency_us = gpu.timing.launch_latency_us
        self._decision_us = device.problem.scenario.decision_us
        self.partitions: list[Partition | None] = [None] * len(device.problem.programs)
        """By tenant: where its launches go by default."""
        self.partitioned_us = [-math.inf] * len(self.partitions)
        """By tenant: when that was last set."""
        self.preempted_us = [-math.inf] * len(self.partitions)
        """By tenant: when a whole kernel of it was last told to make way."""
        self._begun = False
        """Whether a kernel has been launched."""
        self.busy_until_us = 0.0
        """When the host time of all decisions so far is spent."""

    def charge(self) -> float:
        """Charge the host time of one decision; returns when its command takes effect."""
        self.busy_until_us = max(self.busy_until_us, self._env.now) + self._decision_us
        return self.busy_until_us

    def launch(self, command: commands.Launch) -> None:
        """Hand a pending kernel to its stream."""
        if not self._lowest_priority <= command.priority <= 0:
            gpu = self._device.problem.gpu.name
            raise IllegalCommand(f"{command}: stream priority must be in {self._lowest_priority}..0 on {gpu}")
        for host in self._device.hosts:
            if host.pending and host.pending[0].id == command.kernel:
                break
        else:
            heads = [host.pending[0].id for host in self._device.hosts if host.pending]
            raise IllegalCommand(f"{command}: kernel {command.kernel} is not launchable; launchable now: {heads}")
        check_partition(command, command.partition, self._sms)
        launch = host.pending.popleft()
        host.kernels_pending -= 1
        launch.priority = command.priority
        launch.partition = command.partition or self.partitions[host.index]
        self._begun = True
        self._note(command, launch.id)
        self.hand_over(host, launch, self.charge())

    def hand_over(self, host: Host, launch: Launch, at_us: float) -> None:
        """Pass an operation to its stream, and copies right behind it too."""
        pending = host.pending
        while True:
            if launch.op.kind is KERNEL:
                self._device.count_launched(launch)
            launch.launched_us = at_us
            launch.arrives_us = at_us + self._launch_latency_us
            if launch.preemptions:
                self._env.process(self._resume(launch))
            else:
                self._device.streams[host.index].put(launch)
            if not pending or pending[0].op.kind is KERNEL:
                return
            launch = pending.popleft()

    def _resume(self, launch: Launch) -> Generator[Event, None, None]:
        """A preempted kernel comes back to the head of its stream, where it still is."""
        yield Timer(self._env, launch.arrives_us + launch.restore_us, order(Phase.STREAM, launch.tenant))
        self._device.context_of(launch).submit(launch)

    def may_preempt(self, launch: Launch) -> bool:
        """Whether all of a launched kernel may be preempted now."""
        return launch.running and not launch.preempting and self.preempted_us[launch.tenant] < self._env.now

    def may_set_partition(self, tenant: int) -> bool:
        """Whether a tenant's partition may be changed now."""
        return bool(self.partitioned_us[tenant] < self._env.now)

    def preempt(self, command: Preempt) -> None:
        """Take a running kernel off the GPU, or off some SMs."""
        launch = self._device.launched.get(command.kernel)
        if launch is None or not launch.running:
            raise IllegalCommand(f"{command}: kernel {command.kernel} is not running")
        idempotent = self._device.problem.kernels[launch.op.identity].kernel.idempotent
        check_preemption(command, preempting=launch.preempting, idempotent=idempotent, sms=self._sms)
        check_first_at_instant(command, launch.tenant, self.preempted_us[launch.tenant], self._env.now)
        launch.preempting = True
        self._note(command, launch.id)
        if command.partition is None:
            self.preempted_us[launch.tenant] = self._env.now
            self._env.process(preempt(self._device, launch, command.mode, self.charge()))
        else:
            self._env.process(save_some(self._device, launch, command.partition, self.charge()))

    def set_partition(self, command: SetPartition) -> None:
        """Confine a tenant's later launches to some SMs."""
        tenants = len(self.partitions)
        if not 0 <= command.tenant < tenants:
            raise IllegalCommand(f"{command}: tenants are 0..{tenants - 1}")
        check_partition(command, command.partition, self._sms)
        # All SMs are no confinement, in whatever order they are named.
        whole = command.partition is not None and command.partition.sms == self._sms
        partition = None if whole else command.partition
        if partition == self.partitions[command.tenant]:
            raise IllegalCommand(f"{command}: tenant {command.tenant} has this partition already")
        check_first_at_instant(command, command.tenant, self.partitioned_us[command.tenant], self._env.now)
        self._note(command, -1)
        self.partitioned_us[command.tenant] = self._env.now
        self.partitions[command.tenant] = partition
        self.charge()
        if self._begun:
            # Partitions made before the first launch are set-up; later ones keep the scheduler's host busy.
            self.busy_until_us += self._device.problem.gpu.timing.partition_change_us

    def _note(self, command: Command, kernel: int) -> None:
        timeline = self._device.timeline
        if timeline.detail != "jobs":
            timeline.decisions.add(self._env.now, DECISION_CODES[type(command)], kernel)
