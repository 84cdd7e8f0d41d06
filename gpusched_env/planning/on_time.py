"""Which jobs can all be in time on one machine and are worth most: Lawler and Moore's dynamic programme.

J. M. Moore, *An n Job, One Machine Sequencing Algorithm for Minimizing the Number of Late Jobs* (Management Science
1968); E. L. Lawler, J. M. Moore, *A Functional Equation and Its Application to Resource Allocation and Sequencing
Problems* (Management Science 1969) for jobs of different weights. Jobs that are to be in time go by deadline; of the
partial plans that are done at a time only those count that are worth more than every plan that is done before.

The scheduler ``moore`` asks it, and observations show what it says (:mod:`gpusched_env.envs.planning`).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import cached

Floats = NDArray[np.float64]

FRONT: Final = 256
"""Partial plans that go on, those that are done first: with fewer jobs than nine all of them."""
MOST_JOBS: Final = 52
"""Jobs that are looked at, the first ones that are given: a plan is the bits of a whole number in floating point."""
SCRATCH: Final = (7, FRONT)
"""Shape of what :func:`worth_most` works in: the order of jobs; of plans when they are done, what they are worth, and
which jobs are in them, before and after a job."""


@cached()
def worth_most(deadline_us: Floats, machine_us: Floats, alone_us: Floats, value: Floats, scratch: Floats) -> int:
    """The jobs of the best plan; of plans worth the same, of the one that is done first.

    Args:
        deadline_us: shape ``(jobs,)``, from now on. Of equal ones the first goes first.
        machine_us: what each takes of the machine.
        alone_us: what each takes at least; one that would be late alone is in no plan.
        value: what each is worth in time; one of 0 or less is in no plan.
        scratch: of shape :data:`SCRATCH`, written.

    Returns:
        bit ``k`` is set if job ``k`` is in the plan.
    """
    jobs = min(deadline_us.size, MOST_JOBS)
    order = scratch[0]
    for job in range(jobs):
        place = job
        while place > 0 and deadline_us[int(order[place - 1])] > deadline_us[job]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = job
    # Of the plans without any job.
    now, then = 1, 4
    scratch[1, 0], scratch[2, 0], scratch[3, 0] = 0.0, 0.0, 0.0
    size = 1
    for k in range(jobs):
        job = int(order[k])
        if value[job] <= 0.0 or alone_us[job] > deadline_us[job]:
            continue
        done, worth, plan = scratch[now], scratch[now + 1], scratch[now + 2]
        # Both lists go by when they are done: plans without the job, and plans with it that are in time.
        without, with_it, filled = 0, 0, 0
        best = -1.0
        while filled < FRONT:
            longer = with_it < size and done[with_it] + machine_us[job] <= deadline_us[job]
            if without == size and not longer:
                break
            if longer and without < size:
                later = done[with_it] + machine_us[job] - done[without]
                longer = later < 0.0 or (later == 0.0 and worth[with_it] + value[job] > worth[without])
            if longer:
                at, of, jobs_in = done[with_it] + machine_us[job], worth[with_it] + value[job], plan[with_it] + 2.0**job
                with_it += 1
            else:
                at, of, jobs_in = done[without], worth[without], plan[without]
                without += 1
            if of > best:
                scratch[then, filled], scratch[then + 1, filled], scratch[then + 2, filled] = at, of, jobs_in
                best = of
                filled += 1
        now, then = then, now
        size = filled
    return int(scratch[now + 2, size - 1])
