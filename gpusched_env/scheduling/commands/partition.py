"""Confining a tenant to some SMs, and what a partition is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gpusched_env.compiling import procedure
from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands.command import AnyCommand, OperationOf
from gpusched_env.scheduling.commands.world import any_tenant, legality_column
from gpusched_env.scheduling.showing import Shown
from gpusched_env.scheduling.view import TenantColumn
from gpusched_env.workload.host import client


@dataclass(frozen=True, slots=True)
class Partition:
    """A contiguous range of SMs in placement order, wrapping around at the end."""

    first: int
    """First SM, rank in placement order."""
    sms: int
    """Number of SMs (>= 1)."""


def sms_of(partition: Partition | None) -> tuple[int, int]:
    """A partition in numbers: first SM, and how many (0: none)."""
    return (0, 0) if partition is None else (partition.first, partition.sms)


def partition_of(first_sm: int, sms: int) -> Partition | None:
    """The inverse of :func:`sms_of`."""
    return Partition(first_sm, sms) if sms > 0 else None


def range_or_all(partition: Partition | None, sms: int) -> tuple[int, int]:
    """First SM and number of SMs; all SMs are no confinement, in whatever order they are named."""
    return (0, sms) if partition is None or partition.sms == sms else (partition.first, partition.sms)


def check_partition(command: AnyCommand, partition: Partition | None, sms: int) -> None:
    """Refuse a partition that does not lie within the GPU's SMs."""
    if partition is not None and not (0 <= partition.first < sms and 1 <= partition.sms <= sms):
        raise IllegalCommand(f"{command}: a partition needs first in 0..{sms - 1} and sms in 1..{sms}")


def check_tenant(command: AnyCommand, tenant: int, view: Shown) -> None:
    """Refuse a tenant that is none."""
    tenants = len(view.tenants)
    if not 0 <= tenant < tenants:
        raise IllegalCommand(f"{command}: tenants are 0..{tenants - 1}")


@procedure
def may_set_partition(w: Any, tenant: int) -> Any:
    """Whether a tenant's partition may be changed now."""
    return client(w, tenant).partitioned_ps < w.now_ps


@dataclass(frozen=True, slots=True)
class SetPartition(AnyCommand):
    """Confine the kernels that a tenant launches from now on to some SMs; once at one instant.

    Partitions may overlap, and have more SMs together than the GPU: then blocks of several tenants share SMs. Where the
    scenario says ``restart_us``, the tenant is a process that is started anew: its job in service ends, and the next
    one begins so much later.

    Legal: ``view.tenants.partitionable`` is 1: not set at this instant already. The partition is another than
    the present one, and lies within the GPU's SMs.

    Cost: ``partition_change_us`` of host time, and ``restart_us`` of the scenario of the tenant's; nothing before the
    first launch of the episode.
    """

    NAME: ClassVar = "partition"
    VERB: ClassVar = "confine a tenant"
    ONCE: ClassVar = True
    NUMBERS: ClassVar = ("tenant", "first_sm", "sms")
    anywhere: ClassVar = staticmethod(any_tenant(may_set_partition))
    show: ClassVar = staticmethod(legality_column(may_set_partition, TenantColumn.PARTITIONABLE.value))

    tenant: int
    """Row of ``view.tenants``."""
    partition: Partition | None
    """The SMs for the tenant's kernels; ``None``: the whole GPU."""

    def numbers(self) -> tuple[int, ...]:
        return self.tenant, *sms_of(self.partition)

    @classmethod
    def of(cls, *numbers: int) -> SetPartition:
        tenant, first_sm, sms = numbers
        return cls(tenant, partition_of(first_sm, sms))

    def check(self, view: Shown, problem: Problem, operation_of: OperationOf) -> None:
        check_tenant(self, self.tenant, view)
        check_partition(self, self.partition, view.sms)
        row = view.tenants.array[self.tenant]
        first, sms = range_or_all(self.partition, view.sms)
        if (first, sms) == (row[TenantColumn.PARTITION_FIRST], row[TenantColumn.PARTITION_SMS]):
            raise IllegalCommand(f"{self}: tenant {self.tenant} has this partition already")
        if not row[TenantColumn.PARTITIONABLE]:
            raise IllegalCommand(f"{self}: the partition of tenant {self.tenant} was set at this instant already")
