"""What happens on cores: ticks, spent budgets, and hosts that run or do not.

``c`` is a row of the cores. A core's ``current`` process stands while ``host_runs`` or the core is ``throttled``. Its
timer runs to its next tick, or to when the budget is spent, if that comes first.
"""

from __future__ import annotations

from gpusched_env.compiling import procedure
from gpusched_env.hardware.clock import NEVER, to_ps
from gpusched_env.workload.cores.spec import MOST_EVENTS
from gpusched_env.workload.cores.world import core, core_rules, process, set_core_timer, traffic_changed
from gpusched_env.workload.host.states import BLOCKED, IDLE
from gpusched_env.workload.host.world import client, thread


@procedure
def begin_cores(w):
    """All processes are ready; until a core's first tick nothing is regulated."""
    for c in range(core_rules(w).cores):
        k = core(w, c)
        k.budget = MOST_EVENTS
        k.setting = MOST_EVENTS
        k.set_ps = -1
        k.tick_ps = k.phase_ps if k.phase_ps > 0 else core_rules(w).core_period_ps
        k.current = least_served(w, c)
        wait_for_next(w, c)
    set_traffic(w)


@procedure
def least_served(w, c):
    """The process of a core with the least virtual runtime, of equal ones the first; -1: there is none."""
    k = core(w, c)
    best = -1
    for p in range(k.first_process, k.first_process + k.processes):
        if best < 0 or process(w, p).vruntime_ps < process(w, best).vruntime_ps:
            best = p
    return best


@procedure
def works(k):
    """Whether the current process of a core runs."""
    return k.current >= 0 and k.host_runs == 0 and k.throttled == 0


@procedure
def bring_up(w, c):
    """Account for what the current process has done up to now."""
    k = core(w, c)
    if works(k):
        p = process(w, k.current)
        ran_ps = w.now_ps - k.since_ps
        p.vruntime_ps += ran_ps
        if p.misses_per_us > 0.0:
            k.memory_ps += ran_ps
        else:
            k.compute_ps += ran_ps
        if p.counted == 1:
            k.misses += p.misses_per_us * (ran_ps / 1e6)
    k.since_ps = w.now_ps


@procedure
def wait_for_next(w, c):
    """Set a core's timer to its tick, or to when its current process will have spent the budget."""
    k = core(w, c)
    due_ps = k.tick_ps
    if works(k):
        p = process(w, k.current)
        if p.counted == 1 and p.misses_per_us > 0.0:
            left_ps = to_ps(max(0.0, k.budget - k.misses) / p.misses_per_us)
            if left_ps < NEVER:
                due_ps = min(due_ps, w.now_ps + max(1, left_ps))
    set_core_timer(w, c, due_ps)


@procedure
def set_traffic(w):
    """Sum up the traffic of the processes that run, in order of cores."""
    total = 0.0
    for c in range(core_rules(w).cores):
        k = core(w, c)
        if works(k):
            total += process(w, k.current).bytes_per_us
    if total != w.cpu_traffic:
        w.cpu_traffic = total
        traffic_changed(w)


@procedure
def core_due(w, c):
    """A core's timer: its tick, or its budget is spent."""
    bring_up(w, c)
    k = core(w, c)
    if w.now_ps < k.tick_ps:
        k.misses = float(k.budget)
        k.throttled = 1
        k.throttled_since_ps = w.now_ps
    else:
        tick(w, c)
    wait_for_next(w, c)
    set_traffic(w)


@procedure
def tick(w, c):
    """A new period of a core: who was throttled is charged, budgets are filled, the least served process comes on."""
    k = core(w, c)
    if k.throttled == 1:
        throttled_ps = w.now_ps - k.throttled_since_ps
        process(w, k.current).vruntime_ps += int(core_rules(w).rho * throttled_ps)
        k.throttled_ps += throttled_ps
        k.throttled = 0
    k.all_misses += k.misses
    k.last_misses = k.misses
    k.misses = 0.0
    k.budget = k.setting if k.host_runs == 0 and (k.always == 1 or locks(w) > 0) else MOST_EVENTS
    k.current = least_served(w, c)
    k.tick_ps += core_rules(w).core_period_ps
    if c == 0 and core_rules(w).budgets == 1:
        # Once a period a scheduler may look at what the cores did.
        w.awake = 1


@procedure
def locks(w):
    """How many locks count: those whose holder runs."""
    found = 0
    for c in range(core_rules(w).cores):
        found += core(w, c).locked
    return found


@procedure
def set_budget(w, c, events, always):
    """Give a core another budget, from its next tick on."""
    k = core(w, c)
    k.setting = events
    k.always = always
    k.set_ps = w.now_ps


# ---- hosts ---------------------------------------------------------------------------------------------------------


@procedure
def host_is_at_work(w, tenant):
    """Whether a tenant's host runs: it has something to do, or it spins while it waits for the GPU."""
    me = client(w, tenant)
    for i in range(me.first_thread, me.first_thread + me.threads):
        state = thread(w, i).state
        if state != IDLE and (state != BLOCKED or core_rules(w).spins == 1):
            return True
    return False


@procedure
def place_host(w, tenant):
    """A tenant's host may have begun or stopped to run, taken or released its lock."""
    for c in range(core_rules(w).cores):
        k = core(w, c)
        if k.host == tenant:
            runs = 1 if host_is_at_work(w, tenant) else 0
            k.locked = 1 if runs == 1 and client(w, tenant).holds_lock == 1 else 0
            if runs != k.host_runs:
                bring_up(w, c)
                k.host_runs = runs
                wait_for_next(w, c)
                set_traffic(w)
            return
