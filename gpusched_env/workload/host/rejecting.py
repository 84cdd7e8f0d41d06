"""Jobs that are given up."""

from __future__ import annotations

import math

from gpusched_env.compiling import procedure
from gpusched_env.hardware.clock import NEVER
from gpusched_env.workload.host.jobs import give_up
from gpusched_env.workload.host.states import HOST, IDLE, NOBODY, SERVED
from gpusched_env.workload.host.threads import stop_work
from gpusched_env.workload.host.world import client, host_changed, job, program, rules, set_timer, thread


@procedure
def rejectable(w, tenant, number):
    """Whether a job in the system may be rejected now: an end to charge it up to, and no loop at one instant.

    A request that runs may not: its steps are those of others, too.
    """
    c = client(w, tenant)
    j = job(w, tenant, number)
    again = c.rejected_ps == w.now_ps and j.arrived_ps == w.now_ps
    runs = program(w, tenant).max_batch > 0 and j.state == SERVED
    return rules(w).horizon_us < math.inf and not again and not runs


@procedure
def reject(w, tenant, number):
    """A scheduler gives a job up, and the host goes on.

    The caller lets the job's pending launches vanish.
    """
    c = client(w, tenant)
    c.rejected_ps = w.now_ps
    if c.host_job == number:
        c.host_job = NOBODY
        c.busy = 0
        w.tenants_serving -= 1
        for k in range(c.first_thread, c.first_thread + c.threads):
            stop_work(w, k)
            thread(w, k).state = IDLE
            set_timer(w, HOST, k, NEVER)
        set_timer(w, HOST, c.first_thread, w.now_ps)
        if rules(w).cores > 0:
            host_changed(w, tenant)
    give_up(w, tenant, number)
