"""What a world has of cores, by access functions; compiled code reads its own memory instead
(:mod:`gpusched_env.devices.compiled.coring`). The world itself has ``cpu_traffic`` (bytes/us)."""

from __future__ import annotations

from typing import Any


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
