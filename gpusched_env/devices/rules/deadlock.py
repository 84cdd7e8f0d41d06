"""What is said where work is left but nothing can happen any more."""

from __future__ import annotations

from collections.abc import Iterable

from gpusched_env.errors import DeadlockError
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.view import View


def deadlock(problem: Problem, view: View, outstanding: Iterable[int], held: Iterable[str]) -> DeadlockError:
    """The error that says what waits for what.

    Args:
        outstanding: by tenant, operations of its hosts that have not finished.
        held: whose blocks wait for tiles of another (:func:`gpusched_env.scheduling.synchronising.held_slots`).
    """
    pending, waiting = view.pending, []
    for tenant, (program, count) in enumerate(zip(problem.programs, outstanding, strict=True)):
        if count:
            kernels = pending.id[pending.tenant == tenant].astype(int).tolist()[:3]
            waiting.append(
                f"tenant {program.tenant.name}: {count} operations unfinished, "
                + (f"kernels {kernels} wait for a launch" if kernels else "none waits for the scheduler")
            )
    blocked = view.running.id.astype(int).tolist()[:5]
    if blocked:
        waiting.append(f"launched but unfinished: {blocked}")
    return DeadlockError(f"nothing can happen any more at {view.time_us:.3f} us: {'; '.join([*waiting, *held])}")
