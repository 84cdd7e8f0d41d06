"""What schedulers of one program's kernels ask for, and a scenario of theirs has, besides a window."""

from __future__ import annotations

from msgspec.structs import replace

from gpusched_env.experiments.fuzz.case import Case
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.windows import on_memory
from gpusched_env.scenarios.capture import Capture
from gpusched_env.workload.tenant import Tenant

LAUNCHERS = 0.08
"""Share of cases in which the hosts of some tenants do nothing but launch."""
CAPTURES = 0.08
"""Share of cases whose programs are captured into graphs, of those that can be and have no window."""
PERSISTENT = 0.06
PERSISTENT_WINDOWS = 0.3
"""Share of cases in which all kernels run as tasks of one that stays: of those without a window, and with one."""

MASKED = 0.3
"""Share of cases whose streams of the scheduler's own have masks, of those with such streams and without a window."""
MOST_MASKS = 12
"""More than hardware holds queues of at a time."""


def adapted(dice: Dice, case: Case, *, capturable: bool) -> Case:
    """A case that is, most of the time, the same, and otherwise adapted in one or several of these ways."""
    if capturable and case.scenario.window is None and dice.chance(CAPTURES):
        case = replace(on_memory(dice, case), capture=_capture(dice))
    if dice.chance(LAUNCHERS):
        tenants = tuple(_launching(dice, tenant) for tenant in case.scenario.tenants)
        case = replace(case, scenario=replace(case.scenario, tenants=tenants))
    if dice.chance(PERSISTENT if case.scenario.window is None else PERSISTENT_WINDOWS):
        case = replace(case, task_us=_time_us(dice))
    if case.scenario.window is None and case.scenario.streams > 0 and dice.chance(MASKED):
        case = replace(case, masks=tuple(_mask(dice, case) for _ in range(dice.integer(1, MOST_MASKS))))
    return case


def _mask(dice: Dice, case: Case) -> tuple[int, int] | None:
    sms = case.gpu_spec().sms
    return None if dice.chance(0.2) else (dice.integer(0, sms - 1), dice.integer(1, sms))


def _capture(dice: Dice) -> Capture:
    return Capture(node_us=_time_us(dice), edge_us=_time_us(dice), per_input=dice.chance(0.7))


def _launching(dice: Dice, tenant: Tenant) -> Tenant:
    """Most of the time with a host that does nothing but launch, unless it launches graphs."""
    if tenant.launch == "graph" or dice.chance(0.3):
        return tenant
    return replace(tenant, iteration_us=None, host_us=_time_us(dice))


def _time_us(dice: Dice) -> float:
    return 0.0 if dice.chance(0.3) else dice.number(0.1, 10.0)
