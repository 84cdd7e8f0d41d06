"""Giving a core of the CPU another budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gpusched_env.compiling import procedure
from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands.command import AnyCommand, OperationOf
from gpusched_env.scheduling.cores import CoreColumn
from gpusched_env.scheduling.showing import Shown
from gpusched_env.workload.cores.spec import MOST_EVENTS
from gpusched_env.workload.cores.ticking import core, core_rules


@procedure
def any_settable(w: Any) -> Any:
    """Whether the budget of a core may be set now."""
    for c in range(core_rules(w).cores):  # noqa: SIM110 (Numba has no any() over generators)
        if core(w, c).set_ps < w.now_ps:
            return True
    return False


@dataclass(frozen=True, slots=True)
class SetBudget(AnyCommand):
    """Give a CPU core that shares the GPU's memory another budget of cache misses a period.

    The budget counts from the core's own next tick on, and binds while the bandwidth lock of a tenant counts, whose
    host holds it and runs. A process that has spent it is throttled until the next tick; hosts never are. Ali and Yun
    (BWLOCK++, ECRTS 2018).

    Legal: ``view.cores.settable`` is 1: not set at this instant already. The budget is whole, 1 to
    :data:`~gpusched_env.workload.cores.spec.MOST_EVENTS` (which no core reaches), and is not what the core has.

    Cost: no time of the GPU's host but that of the decision.
    """

    NAME: ClassVar = "budget"
    VERB: ClassVar = "set the budget of a core"
    ONCE: ClassVar = True
    NUMBERS: ClassVar = ("core", "events", "always")
    anywhere: ClassVar = staticmethod(any_settable)

    core: int
    """Row of ``view.cores``."""
    events: int = MOST_EVENTS
    """Misses of the last-level cache in a period."""
    always: bool = False
    """Whether the budget binds also while no lock counts."""

    @classmethod
    def of(cls, *numbers: int) -> SetBudget:
        number, events, always = numbers
        return cls(number, events, always == 1)

    def check(self, view: Shown, problem: Problem, operation_of: OperationOf) -> None:
        cores, always = view.cores, self.always
        if not 0 <= self.core < len(cores):
            there_are = f"cores are 0..{len(cores) - 1}" if len(cores) else "there are no cores"
            raise IllegalCommand(f"{self}: {there_are}")
        if not 1 <= self.events <= MOST_EVENTS:
            raise IllegalCommand(f"{self}: events must be 1 to {MOST_EVENTS} (no regulation)")
        row = cores.array[self.core]
        if (self.events, always) == (row[CoreColumn.BUDGET], row[CoreColumn.ALWAYS]):
            raise IllegalCommand(f"{self}: core {self.core} has this budget already")
        if not row[CoreColumn.SETTABLE]:
            raise IllegalCommand(f"{self}: the budget of core {self.core} was set at this instant already")
