"""Cores of the CPU and their processes as plain objects, for :mod:`gpusched_env.workload.cores.ticking`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpusched_env.hardware.clock import to_ps
from gpusched_env.workload.cores.spec import CpuCores


@dataclass
class Core:
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
    """Misses in this period."""
    setting: int = 0
    """What the scheduler gave it, from the next tick on."""
    always: int = 0
    """Whether that binds also while no lock counts."""
    misses: float = 0.0
    last_misses: float = 0.0
    all_misses: float = 0.0
    """Of the periods before."""
    tick_ps: int = 0
    """Its next one."""
    since_ps: int = 0
    """Up to when its process is accounted for."""
    throttled_since_ps: int = 0
    set_ps: int = -1
    throttled_ps: int = 0
    memory_ps: int = 0
    compute_ps: int = 0


@dataclass
class Process:
    """An endless process."""

    misses_per_us: float
    bytes_per_us: float
    counted: int
    vruntime_ps: int = 0


def core_tables(cores: CpuCores | None, tenants: Sequence[str]) -> tuple[list[Core], list[Process]]:
    """Cores in the scenario's order, and the processes of one after the other."""
    rows: list[Core] = []
    processes: list[Process] = []
    for core in () if cores is None else cores.cores:
        host = -1 if core.host is None else tenants.index(core.host)
        rows.append(Core(core.number, host, len(processes), len(core.processes), to_ps(core.phase_us)))
        processes += [
            Process(one.misses_per_us, one.misses_per_us * one.bytes_a_miss, int(one.counted)) for one in core.processes
        ]
    return rows, processes
