"""CPU cores of the GPU's chip: processes that take turns, and a regulator that throttles those that miss the cache.

Bandwidth locks after Ali and Yun (BWLOCK++, ECRTS 2018; public artifact wali-ku/BWLOCK-GPU). Each core has a timer of
its own. At each of its ticks the process with the least *virtual runtime* gets the core, and a budget of misses of the
last-level cache. Who has spent it is throttled: the core stands until its own next tick. A throttled process has not
run, so a fair scheduler chooses it again; *throttle-fair scheduling* charges it for ``rho`` times that time.

A tenant's host holds the lock from its first launch to the return of a synchronisation behind which nothing of it is
left. The lock counts only while the host runs, which on its core has precedence over all processes. Budgets bind while
a lock counts, or always where the command says so.

:mod:`.ticking` is the only text of it: the reference device runs it as plain Python, the compiled device compiles it.
It works on a *world*, by the access functions of :mod:`.world` and :mod:`gpusched_env.workload.host.world`.
"""
