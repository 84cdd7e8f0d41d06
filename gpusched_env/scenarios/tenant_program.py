"""What a tenant's host does in a problem."""

from __future__ import annotations

from dataclasses import dataclass

from gpusched_env.scenarios.program import JobProgram
from gpusched_env.workload.tenant import Tenant
from gpusched_env.workload.workload import Workload


@dataclass(frozen=True, slots=True)
class TenantProgram:
    """What a tenant's host does, with identities of the problem's kernel table."""

    tenant: Tenant
    workload: Workload
    variants: tuple[JobProgram, ...]
    """One a recorded iteration (only the first without variation)."""
    host_spread: tuple[float, ...]
    """Factors on host times that jobs draw from: recorded iteration times over their median."""
    alone_us: float
    """Profiled turnaround of one job alone on the GPU (mean over variants)."""
    footprint_bytes: int = 0
    """That an iteration touches; 0: not known."""
    brings: float = 1.0
    """What its kernels bring into the L2, as a share of the DRAM traffic of their profiles."""
    keeps: bool = False
    """Whether it finds all of its data in the L2 again when nobody else runs: it brings in what it has lost only."""
