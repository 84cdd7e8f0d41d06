"""A scenario in slow motion: everything that tenants do lasts longer, what the GPU and the scheduler take does not.

On a real GPU a scheduler in Python takes some tens of microseconds for a decision, as long as several kernels of a
network. Slowed down together, kernels, hosts and clients keep their proportions, and decisions, launches and gaps
between kernels weigh less.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from gpusched_env.reading import checked
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.workload.arrivals import ArrivalProcess
from gpusched_env.workload.cores.spec import CpuCores, Process
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.tenant import Tenant
from gpusched_env.workload.workload import Child, GraphNode, Op, Workload

_Timed = TypeVar("_Timed", Op, GraphNode)
S = TypeVar("S", bound=msgspec.Struct)


def stretched(scenario: Scenario) -> Scenario:
    """A scenario whose clients, objectives and horizon take :attr:`~Scenario.stretch` times as long; that is 1 then.

    Its workloads are :func:`slowed` by who loads them.

    Raises:
        InputError: something takes too long then.
    """
    factor = scenario.stretch
    if factor == 1.0:
        return scenario
    tenants = tuple(_tenant(tenant, factor) for tenant in scenario.tenants)
    longer = _times(scenario, factor, "horizon_us", "arrivals_until_us")
    cores = scenario.cores and _cores(scenario.cores, factor)
    made = msgspec.structs.replace(longer, tenants=tenants, cores=cores, stretch=1.0)
    return checked(msgspec.to_builtins(made), Scenario, f"scenario {scenario.name}, {factor:g} times as long")


def _cores(cores: CpuCores, factor: float) -> CpuCores:
    """Cores with longer periods and as many misses and as much more traffic in one."""

    def process(one: Process) -> Process:
        return _times(_times(one, 1.0 / factor, "misses_per_us"), factor, "bytes_a_miss")

    rows = tuple(
        msgspec.structs.replace(_times(core, factor, "phase_us"), processes=tuple(map(process, core.processes)))
        for core in cores.cores
    )
    return msgspec.structs.replace(_times(cores, factor, "period_us"), cores=rows)


def _tenant(tenant: Tenant, factor: float) -> Tenant:
    longer = _times(tenant, factor, "slo_us", "iteration_us", "host_us")
    return msgspec.structs.replace(longer, arrivals=_arrivals(tenant.arrivals, factor))


def _arrivals(arrivals: ArrivalProcess, factor: float) -> ArrivalProcess:
    later: ArrivalProcess = _times(arrivals, factor, "start_us", "think_us", "period_us", "calm_us", "busy_us")
    return _times(later, 1.0 / factor, "rate_per_s", "busy_rate_per_s", "speed")


def _times(struct: S, factor: float, *names: str) -> S:
    """With some fields multiplied: those that it has, and that are given."""
    given = {name: getattr(struct, name, None) for name in names}
    changed = {name: value * factor for name, value in given.items() if value is not None}
    return msgspec.structs.replace(struct, **changed)


def slowed(workload: Workload, factor: float) -> Workload:
    """A workload whose kernels, copies and host take ``factor`` times as long, with as much more traffic."""
    if factor == 1.0:
        return workload

    def op_of(op: Op) -> Op:
        children = tuple(_child(child, factor) for child in op.children)
        return msgspec.structs.replace(_timed(op, factor), host_us=op.host_us * factor, children=children)

    return msgspec.structs.replace(
        workload,
        kernels=tuple(_kernel(kernel, factor) for kernel in workload.kernels),
        graphs=tuple(tuple(_timed(node, factor) for node in nodes) for nodes in workload.graphs),
        variants=tuple(
            msgspec.structs.replace(
                v, ops=tuple(map(op_of, v.ops)), threads=tuple(tuple(map(op_of, ops)) for ops in v.threads)
            )
            for v in workload.variants
        ),
        iteration_us=tuple(us * factor for us in workload.iteration_us),
    )


def _kernel(kernel: Kernel, factor: float) -> Kernel:
    return _times(kernel, factor, "duration_us", "dram_bytes")


def _child(child: Child, factor: float) -> Child:
    return _times(child, factor, "duration_us")


def _timed(op: _Timed, factor: float) -> _Timed:
    return msgspec.structs.replace(op, duration_us=op.duration_us * factor, bytes=round(op.bytes * factor))
