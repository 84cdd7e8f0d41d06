"""Tenants that come and go from outside: closed loops that somebody begins and ends while the episode runs."""

from __future__ import annotations

from gpusched_env.compiling import procedure
from gpusched_env.hardware.clock import NEVER
from gpusched_env.workload.host.arrivals import send_at
from gpusched_env.workload.host.states import ARRIVAL, NO_LIMIT, UNTOLD
from gpusched_env.workload.host.world import client, set_timer


@procedure
def is_there(w, tenant):
    """Whether a closed loop has begun, and sends jobs after those that came."""
    c = client(w, tenant)
    if c.until == UNTOLD:
        return c.arrived > 0
    return c.until == NO_LIMIT or c.arrived < c.until


@procedure
def come(w, tenant, jobs):
    """A closed loop sends a job at the present time, and then so many in all (:data:`.states.NO_LIMIT` ...).

    If a job from before it went is still in the system, the first one comes after that.

    Returns:
        whether it came; it cannot where it is there.
    """
    if is_there(w, tenant):
        return False
    c = client(w, tenant)
    c.until = c.arrived + jobs if jobs != NO_LIMIT else NO_LIMIT
    if c.arrived == c.completed + c.rejected:
        # It is a new process: what the last one owed for changes of its knobs was that one's.
        c.owed_ps = 0
        send_at(w, tenant, w.now_ps)
    return True


@procedure
def go(w, tenant):
    """A closed loop sends nothing any more; what is in the system goes on.

    Returns:
        whether it went; it cannot where it is not there.
    """
    if not is_there(w, tenant):
        return False
    c = client(w, tenant)
    c.until = c.arrived
    set_timer(w, ARRIVAL, tenant, NEVER)
    return True
