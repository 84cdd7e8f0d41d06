"""Letting a tenant's host sleep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from gpusched_env.compiling import procedure
from gpusched_env.errors import IllegalCommand
from gpusched_env.hardware.clock import to_ps, to_us
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands.command import AnyCommand, OperationOf
from gpusched_env.scheduling.commands.partition import check_tenant
from gpusched_env.scheduling.commands.world import any_tenant, legality_column
from gpusched_env.scheduling.showing import Shown
from gpusched_env.scheduling.view import TenantColumn
from gpusched_env.workload.host import client

MOST_PAUSE_US: Final = 3.6e9
"""Longest pause that a host may be told to sleep, an hour, so that sums of times stay whole numbers."""


@procedure
def may_throttle(w: Any, tenant: int) -> Any:
    """Whether a tenant may be throttled now."""
    return client(w, tenant).throttled_ps < w.now_ps


@dataclass(frozen=True, slots=True)
class Throttle(AnyCommand):
    """Let a tenant's host sleep for ``pause_us`` before it begins its next job, and before each one after that.

    It sleeps once there is a job that it could begin: a training loop, whose next iteration waits already, sleeps
    after each iteration. Kernels that are in flight, and the job in service, go on. A sleep that has begun is not made
    shorter or longer. Chen, Subramaniyan and Wang (GPUColo, ICDCS 2024, section on the inner controller) throttle
    training so.

    Legal: ``view.tenants.throttlable`` is 1: not throttled at this instant already. The pause is finite, 0 to
    :data:`MOST_PAUSE_US`, and another than the present one.

    Cost: no time of the GPU's host but that of the decision. The tenant's next job begins ``throttle_us`` of the
    scenario later (2 ms).
    """

    NAME: ClassVar = "throttle"
    VERB: ClassVar = "throttle a tenant"
    ONCE: ClassVar = True
    NUMBERS: ClassVar = ("tenant", "pause_ps")
    anywhere: ClassVar = staticmethod(any_tenant(may_throttle))
    show: ClassVar = staticmethod(legality_column(may_throttle, TenantColumn.THROTTLABLE.value))

    tenant: int
    """Row of ``view.tenants``."""
    pause_us: float
    """Pause of the tenant's host before each job; 0: none."""

    def numbers(self) -> tuple[int, ...]:
        return self.tenant, to_ps(self.pause_us)

    @classmethod
    def of(cls, *numbers: int) -> Throttle:
        tenant, pause_ps = numbers
        return cls(tenant, to_us(pause_ps))

    def check(self, view: Shown, problem: Problem, operation_of: OperationOf) -> None:
        check_tenant(self, self.tenant, view)
        pause_us = self.pause_us
        if not 0.0 <= pause_us <= MOST_PAUSE_US:
            raise IllegalCommand(f"{self}: pause_us must be a finite number of microseconds, 0 to {MOST_PAUSE_US:g}")
        row = view.tenants.array[self.tenant]
        if to_ps(pause_us) == to_ps(row[TenantColumn.PAUSE_US]):
            raise IllegalCommand(f"{self}: tenant {self.tenant} has this pause already")
        if not row[TenantColumn.THROTTLABLE]:
            raise IllegalCommand(f"{self}: tenant {self.tenant} was throttled at this instant already")
