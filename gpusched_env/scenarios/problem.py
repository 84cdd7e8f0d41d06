"""A scenario resolved for execution: specification, workloads and kernel profiles in tables."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpusched_env.data import read_recorded, recorded_names
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.workload.profile import KernelProfile, profile_kernel
from gpusched_env.workload.tenant import Tenant
from gpusched_env.workload.workload import OpKind, Workload, read_workload

OPS_DTYPE = np.dtype(
    [("kind", np.int64), ("host_us", np.float64), ("identity", np.int64), ("scale", np.float64), ("bytes", np.int64), ("device_us", np.float64)]
)
"""One host operation: ``identity`` is a row of ``Problem.kernels`` (-1 if no kernel), ``scale`` the actual
over the profiled duration of this occurrence, ``device_us`` its recorded device time."""


@dataclass(frozen=True, slots=True)
class TenantProgram:
    """What a tenant's host does, with identities of the problem's kernel table."""

    tenant: Tenant
    workload: Workload
    variants: tuple[NDArray[np.void], ...]
    """One array of :data:`OPS_DTYPE` a recorded iteration."""
    host_spread: NDArray[np.float64]
    """Factors on host times that jobs draw from: recorded iteration times over their median."""
    job_us: float
    """Profiled device time of one job (sum of profiled kernel durations, mean over variants)."""
    alone_us: float
    """Profiled turnaround of one job alone on the GPU."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Everything a device needs to run a scenario, and everything a scheduler may know beforehand."""

    scenario: Scenario
    gpu: GpuSpec
    kernels: tuple[KernelProfile, ...]
    """Profiles by identity; equal name, grid, block, registers and shared memory share a row."""
    gaps_us: NDArray[np.float64]
    """Per identity: profiled mean device idle time that follows it when its tenant runs alone."""
    programs: tuple[TenantProgram, ...]
    """One a tenant, in the scenario's order."""
