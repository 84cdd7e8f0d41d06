"""Whether a command is legal now, before compiled code carries it out."""

from __future__ import annotations

import math
from typing import NamedTuple

from gpusched_env.devices.compiled import commands as codes
from gpusched_env.devices.compiled.arena import Arena
from gpusched_env.errors import IllegalCommand
from gpusched_env.scheduling.commands import Command, Launch, Partition, Preempt, SetPartition, Wait
from gpusched_env.scheduling.legality import check_first_at_instant, check_partition, check_preemption

MODES = {"drain": 0, "save": 1, "reset": 2}


class Checked(NamedTuple):
    """A legal command, as :func:`~gpusched_env.devices.compiled.commands.carry_out` takes it."""

    kind: int
    tenant: int = 0
    choice: int = 0
    first: int = 0
    sms: int = 0
    until_us: float = math.inf


def check(arena: Arena, command: Command) -> Checked:
    """A command in numbers.

    Raises:
        IllegalCommand: names the command and why it is not legal now.
    """
    if isinstance(command, Wait):
        now = float(arena.env["now_us"])
        if not command.until_us >= now:
            raise IllegalCommand(f"{command}: until_us lies before the present time {now} us")
        return Checked(codes.WAIT, until_us=command.until_us)
    if isinstance(command, Launch):
        return _launch(arena, command)
    if isinstance(command, Preempt):
        return _preempt(arena, command)
    if isinstance(command, SetPartition):
        return _set_partition(arena, command)
    raise IllegalCommand(f"{command!r} is not a command")


def _launch(arena: Arena, command: Launch) -> Checked:
    lowest = 1 - arena.problem.gpu.priorities
    if not lowest <= command.priority <= 0:
        raise IllegalCommand(f"{command}: stream priority must be in {lowest}..0 on {arena.problem.gpu.name}")
    heads = {}
    for tenant, client in enumerate(arena.clients):
        number = int(client["finished"] if client["returned"] else client["handed"])
        if number < client["issued"]:
            heads[int(arena.launch(tenant, number)["id"])] = tenant
    if command.kernel not in heads:
        raise IllegalCommand(f"{command}: kernel {command.kernel} is not launchable; launchable now: {list(heads)}")
    check_partition(command, command.partition, arena.problem.gpu.sms)
    return Checked(codes.LAUNCH, heads[command.kernel], command.priority, *_sms(command.partition))


def _preempt(arena: Arena, command: Preempt) -> Checked:
    for tenant, client in enumerate(arena.clients):
        launch = arena.launch(tenant, int(client["finished"]))
        if client["placed"] and client["started_us"] < math.inf and int(launch["id"]) == command.kernel:
            break
    else:
        raise IllegalCommand(f"{command}: kernel {command.kernel} is not running")
    idempotent = arena.problem.kernels[arena.identity(launch)].kernel.idempotent
    check_preemption(command, preempting=bool(client["preempting"]), idempotent=idempotent, sms=arena.problem.gpu.sms)
    check_first_at_instant(command, tenant, float(client["preempted_us"]), float(arena.env["now_us"]))
    return Checked(codes.PREEMPT, tenant, MODES[command.mode], *_sms(command.partition))


def _set_partition(arena: Arena, command: SetPartition) -> Checked:
    clients = arena.clients
    if not 0 <= command.tenant < len(clients):
        raise IllegalCommand(f"{command}: tenants are 0..{len(clients) - 1}")
    check_partition(command, command.partition, arena.problem.gpu.sms)
    whole = command.partition is None or command.partition.sms == arena.problem.gpu.sms
    first, sms = (
        (0, arena.problem.gpu.sms)
        if whole or command.partition is None
        else (command.partition.first, command.partition.sms)
    )
    client = clients[command.tenant]
    if (first, sms) == (client["partition_first"], client["partition_sms"]):
        raise IllegalCommand(f"{command}: tenant {command.tenant} has this partition already")
    now_us = float(arena.env["now_us"])
    check_first_at_instant(command, command.tenant, float(client["partitioned_us"]), now_us)
    return Checked(codes.SET_PARTITION, command.tenant, first=first, sms=sms)


def _sms(partition: Partition | None) -> tuple[int, int]:
    """First SM and number of SMs, 0 without a partition."""
    return (0, 0) if partition is None else (partition.first, partition.sms)
