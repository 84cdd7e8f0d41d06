"""Which tenants may come and go from outside, on every simulated device."""

from __future__ import annotations

from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.workload.host import NO_LIMIT


def jobs_to_come(problem: Problem, tenant: int, jobs: int | None) -> int:
    """How many jobs a tenant that is to come sends, :data:`~gpusched_env.workload.host.NO_LIMIT` for ``None``.

    Raises:
        IllegalCommand: it may not come, or not with so many.
    """
    check_loop(problem, tenant, "come")
    if jobs is not None and jobs < 1:
        raise IllegalCommand(f"{_name(problem, tenant)} cannot come with {jobs} jobs; must be at least 1")
    return NO_LIMIT if jobs is None else jobs


def check_loop(problem: Problem, tenant: int, what: str) -> None:
    """Whether a tenant may ``come`` or ``go`` (``what``).

    Raises:
        IllegalCommand: there is no such tenant, or it is no closed loop without a number of jobs.
    """
    tenants = problem.scenario.tenants
    if not 0 <= tenant < len(tenants):
        raise IllegalCommand(f"tenant {tenant} cannot {what}: tenants are 0 to {len(tenants) - 1}")
    if not tenants[tenant].arrivals.closed or tenants[tenant].jobs is not None:
        raise IllegalCommand(
            f"{_name(problem, tenant)} cannot {what}: its arrivals must be a closed loop without a number of jobs"
        )


def misplaced(problem: Problem, tenant: int, what: str) -> IllegalCommand:
    """The error that a tenant which is there cannot ``come``, or one that is not cannot ``go``."""
    return IllegalCommand(f"{_name(problem, tenant)} cannot {what}: it is {'' if what == 'come' else 'not '}there")


def _name(problem: Problem, tenant: int) -> str:
    return f"tenant {tenant} ({problem.scenario.tenants[tenant].name})"
