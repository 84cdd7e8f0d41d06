"""What happens on cores: ticks, spent budgets, and hosts that run or do not.

It works on a world of cores, by access functions. The reference device keeps plain objects; compiled code reads its
own memory instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpusched_env.compiling import procedure
from gpusched_env.hardware.clock import NEVER, to_ps
from gpusched_env.workload.cores.spec import MOST_EVENTS, CpuCores
from gpusched_env.workload.host.states import BLOCKED, IDLE
from gpusched_env.workload.host.world import client, thread


def core_rules(w: Any) -> Any:
    """``cores`` (their number), ``core_period_ps``, ``rho``, ``spins``, and ``budgets`` (0 or 1: they may be set)
    of the problem."""
    return w.rules


def core(w: Any, c: int) -> Any:
    """A core, with its ``host`` (a tenant, -1: none) and its processes, ``first_process`` and how many."""
    return w.cores[c]


def process(w: Any, p: int) -> Any:
    """A process: ``misses_per_us``, ``bytes_per_us``, ``counted`` and its ``vruntime_ps``."""
    return w.processes[p]


def set_core_timer(w: Any, c: int, at_ps: int) -> None:
    """Set the timer of a core, which may be set already; when it is due :func:`.ticking.core_due` is called."""
    w.set_core_timer(c, at_ps)


def traffic_changed(w: Any) -> None:
    """``w.cpu_traffic`` has changed: what is left for the GPU is another."""
    w.traffic_changed()


@dataclass
class CoreState:
    """A core at run time."""

    number: int
    host: int
    """The tenant whose host runs here; -1: none."""
    first_process: int
    processes: int
    phase_ps: int
    current: int = -1
    """The process that has the core; -1: none."""
    host_runs: int = 0
    locked: int = 0
    """Whether its host holds the bandwidth lock and runs."""
    throttled: int = 0
    budget: int = 0
    """Misses that it may have in this period."""
    setting: int = 0
    """Budget that the scheduler gave it, from the next tick on."""
    always: int = 0
    """Whether its budget binds also while no lock counts."""
    misses: float = 0.0
    last_misses: float = 0.0
    all_misses: float = 0.0
    """Misses of all periods before this one."""
    tick_ps: int = 0
    """When its next tick is."""
    since_ps: int = 0
    """Up to when its process is accounted for."""
    throttled_since_ps: int = 0
    set_ps: int = -1
    throttled_ps: int = 0
    memory_ps: int = 0
    compute_ps: int = 0


@dataclass
class ProcessState:
    """An endless process."""

    misses_per_us: float
    bytes_per_us: float
    counted: int
    vruntime_ps: int = 0


def core_tables(cores: CpuCores | None, tenants: Sequence[str]) -> tuple[list[CoreState], list[ProcessState]]:
    """Cores in the scenario's order, and the processes of one after the other."""
    rows: list[CoreState] = []
    processes: list[ProcessState] = []
    for core in () if cores is None else cores.cores:
        host = -1 if core.host is None else tenants.index(core.host)
        rows.append(CoreState(core.number, host, len(processes), len(core.processes), to_ps(core.phase_us)))
        processes += [
            ProcessState(one.misses_per_us, one.misses_per_us * one.bytes_a_miss, int(one.counted))
            for one in core.processes
        ]
    return rows, processes


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
def process_runs(k):
    """Whether the current process of a core runs."""
    return k.current >= 0 and k.host_runs == 0 and k.throttled == 0


@procedure
def account_process(w, c):
    """Account for what the current process has done up to now."""
    k = core(w, c)
    if process_runs(k):
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
    if process_runs(k):
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
        if process_runs(k):
            total += process(w, k.current).bytes_per_us
    if total != w.cpu_traffic:
        w.cpu_traffic = total
        traffic_changed(w)


@procedure
def core_due(w, c):
    """A core's timer: its tick, or its budget is spent."""
    account_process(w, c)
    k = core(w, c)
    if w.now_ps < k.tick_ps:
        k.misses = float(k.budget)
        k.throttled = 1
        k.throttled_since_ps = w.now_ps
    else:
        begin_period(w, c)
    wait_for_next(w, c)
    set_traffic(w)


@procedure
def begin_period(w, c):
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
    k.budget = k.setting if k.host_runs == 0 and (k.always == 1 or locks_held(w) > 0) else MOST_EVENTS
    k.current = least_served(w, c)
    k.tick_ps += core_rules(w).core_period_ps
    if c == 0 and core_rules(w).budgets == 1:
        # Once a period a scheduler may look at what the cores did.
        w.awake = 1


@procedure
def locks_held(w):
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
                account_process(w, c)
                k.host_runs = runs
                wait_for_next(w, c)
                set_traffic(w)
            return
