"""How fast a tenant's host is: as it was recorded, or as the tenant says."""

from __future__ import annotations

from gpusched_env.errors import InputError
from gpusched_env.scenarios.program import JobProgram
from gpusched_env.workload.idle_gpu import IdleGpu
from gpusched_env.workload.tenant import Tenant


def check_host_speed(tenant: Tenant) -> None:
    """Whether a tenant has one host speed, and host times that it can be the speed of.

    Raises:
        InputError: it has more than one, or one besides a launch as a graph.
    """
    given = [name for name in ("iteration_us", "host_us") if getattr(tenant, name) is not None]
    if given and tenant.launch == "graph":
        raise InputError(
            f"tenant {tenant.name}: {given[0]} is {getattr(tenant, given[0]):g}, but launch is graph, which has no "
            f"host times to set; leave {given[0]} out, or set launch to eager"
        )
    if len(given) > 1:
        raise InputError(
            f"tenant {tenant.name}: iteration_us is {tenant.iteration_us:g} and host_us is {tenant.host_us:g}, but "
            "either says how fast the host is; leave one out"
        )


def at_host_speed(job: JobProgram, tenant: Tenant, gpu: IdleGpu) -> JobProgram:
    """A job's program with the host of ``tenant`` (:func:`check_host_speed`).

    Raises:
        InputError: an ``iteration_us`` that no host speed gives.
    """
    if tenant.iteration_us is not None:
        job = job.with_host_times(_host_scale(job, tenant, gpu))
    if tenant.host_us is not None:
        job = job.with_launch_times(tenant.host_us)
    return job


def _host_scale(job: JobProgram, tenant: Tenant, gpu: IdleGpu) -> float:
    """The factor on host times with which an iteration alone takes its ``iteration_us`` (0 if it takes longer)."""
    threads = job.by_thread()

    def alone(scale: float) -> float:
        return gpu.play(threads, scale).host_us

    iteration_us = tenant.iteration_us or 0.0
    high = 1.0
    if alone(high) < iteration_us and not any(op.host_us > 0.0 for op in job):
        raise InputError(
            f"tenant {tenant.name}: iteration_us is {iteration_us:g}, but workload {tenant.workload} has no host times "
            f"to stretch: an iteration takes {alone(high):g} us at any host speed"
        )
    if alone(0.0) >= iteration_us:
        return 0.0
    while alone(high) < iteration_us:
        high *= 2.0
    return gpu.host_scales(threads, iteration_us, 0.0, high)[0]
