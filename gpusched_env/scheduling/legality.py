"""What makes a command illegal whatever device it is given to."""

from __future__ import annotations

from gpusched_env.errors import IllegalCommand
from gpusched_env.scheduling.commands import Command, Partition, Preempt, SetPartition


def check_partition(command: Command, partition: Partition | None, sms: int) -> None:
    """Whether the partition of a command (``None``: it has none) lies on a GPU of ``sms`` SMs.

    Raises:
        IllegalCommand: it does not.
    """
    if partition is not None and not (0 <= partition.first < sms and 1 <= partition.sms <= sms):
        raise IllegalCommand(f"{command}: a partition needs first in 0..{sms - 1} and sms in 1..{sms}")


def check_first_at_instant(command: Preempt | SetPartition, tenant: int, last_us: float, now_us: float) -> None:
    """Whether time has passed since the last command of this kind for a tenant, so that no loop stops the clock.

    Args:
        command: a change of the partition, or a preemption; only those of whole kernels count.
        tenant: whose partition or kernel it is about.
        last_us: when the last one was given; ``-inf``: there was none.
        now_us: the present.

    Raises:
        IllegalCommand: the last one was given at this instant.
    """
    if last_us < now_us:
        return
    if isinstance(command, SetPartition):
        raise IllegalCommand(f"{command}: the partition of tenant {tenant} was set at this instant already")
    if command.partition is None:
        raise IllegalCommand(f"{command}: a kernel of tenant {tenant} was preempted at this instant already")


def check_preemption(command: Preempt, *, preempting: bool, idempotent: bool, sms: int) -> None:
    """Whether a running kernel may be preempted.

    Args:
        command: how.
        preempting: a preemption of the kernel is under way.
        idempotent: the kernel may be reset.
        sms: SMs of the GPU.

    Raises:
        IllegalCommand: names the reason.
    """
    kernel = f"{command}: kernel {command.kernel}"
    if preempting:
        raise IllegalCommand(f"{kernel} is being preempted already")
    if command.mode not in ("drain", "save", "reset"):
        raise IllegalCommand(f"{command}: mode must be drain, save or reset")
    if command.mode == "reset" and not idempotent:
        raise IllegalCommand(f"{kernel} is not idempotent and cannot be reset")
    if command.partition is not None and command.mode != "save":
        raise IllegalCommand(f"{command}: only mode save can be confined to a partition")
    check_partition(command, command.partition, sms)
