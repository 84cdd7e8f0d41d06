"""Scenarios made from others: variants of their workload sets, more or less load, slow motion."""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar

import msgspec

from gpusched_env.errors import InputError
from gpusched_env.reading import checked
from gpusched_env.scenarios.scenario import Scenario, override
from gpusched_env.scenarios.workload_sets import SetName, Variant
from gpusched_env.workload.cores.spec import CpuCores, Process
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.tenant import ArrivalProcess, Tenant
from gpusched_env.workload.workload import Child, GraphNode, Op, Workload

_VARIANT = re.compile(r"-(train|held_out)-\d+$")
"""What :func:`scenario_variants` puts behind a scenario's name."""


def family(name: str) -> str:
    """The name of the scenario that ``name`` is, or is a variant of."""
    return _VARIANT.sub("", name)


def scenario_variants(scenario: Scenario, which: SetName) -> list[Scenario]:
    """Every variant of one workload set, in the file's order, as a scenario of its own.

    A variant is called ``<scenario>-<set>-<number>``, its summary says what replaces what, and it has no
    workload sets itself. Tenants, commands and priorities are those of the scenario, so that observations and
    actions keep their shapes.

    Raises:
        InputError: the scenario has no workload sets, or ``which`` is not one of them.
    """
    changes = variant_changes(scenario, which)
    found = []
    for i, change in enumerate(changes):
        variant = override(scenario, **change)
        given = ", ".join(f"{name}: {fields['workload']}" for name, fields in change["tenants"].items())
        found.append(
            msgspec.structs.replace(
                variant,
                name=f"{scenario.name}-{which}-{i}",
                summary=f"{scenario.summary}; {given}" if given else scenario.summary,
                workload_sets=None,
            )
        )
    return found


def variant_changes(scenario: Scenario, which: SetName) -> list[dict[str, Any]]:
    """What :func:`~gpusched_env.scenarios.scenario.override` takes to make each variant of a workload set.

    An environment of the scenario takes the same for an episode: ``env.reset(options={"scenario": change})``,
    with a ``change`` drawn anew for each episode in domain randomisation.

    Raises:
        InputError: as :func:`scenario_variants`.
    """
    sets = scenario.workload_sets
    if which not in ("train", "held_out"):
        raise InputError(f"workload set {which!r} is not known; known are train and held_out")
    if sets is None:
        raise InputError(f"scenario {scenario.name} has no workload_sets")
    variants: tuple[Variant, ...] = getattr(sets, which)
    return [
        replaced(scenario, {name: msgspec.to_builtins(new) for name, new in variant.items()}) for variant in variants
    ]


def replaced(scenario: Scenario, tenants: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What :func:`~gpusched_env.scenarios.scenario.override` takes for substitutes of tenants.

    Args:
        scenario: whose they are.
        tenants: by name, fields of :class:`~gpusched_env.scenarios.workload_sets.Substitute`.
    """
    change: dict[str, Any] = {"tenants": {name: dict(fields) for name, fields in tenants.items()}}
    cores = msgspec.to_builtins(scenario.cores)
    for fields in change["tenants"].values():
        if "neighbours" in fields:
            left = iter(fields.pop("neighbours"))
            rows = [core if core["host"] is not None else {**core, "processes": next(left)} for core in cores["cores"]]
            change["cores"] = cores = {**cores, "cores": rows}
    return change


RATES: Final = ("rate_per_s", "busy_rate_per_s", "speed")
GAPS: Final = ("period_us", "think_us")
"""Fields of arrivals that say how often; bursts keep their sizes, busy and calm times their lengths, traces their cuts.
"""


def with_load(scenario: Scenario) -> Scenario:
    """A scenario whose jobs arrive :attr:`~Scenario.load` times as often; that is 1 then."""
    if scenario.load == 1.0:
        return scenario
    tenants = tuple(
        msgspec.structs.replace(tenant, arrivals=faster_arrivals(tenant.arrivals, scenario.load))
        for tenant in scenario.tenants
    )
    return msgspec.structs.replace(scenario, tenants=tenants, load=1.0)


def faster_arrivals(arrivals: ArrivalProcess, factor: float) -> ArrivalProcess:
    """An arrival process of ``factor`` times the rate; itself if it has none."""
    fields = arrivals.__struct_fields__
    rates = {name: getattr(arrivals, name) * factor for name in RATES if name in fields}
    gaps = {name: getattr(arrivals, name) / factor for name in GAPS if name in fields}
    return msgspec.structs.replace(arrivals, **rates, **gaps)


_Timed = TypeVar("_Timed", Op, GraphNode)
S = TypeVar("S", bound=msgspec.Struct)


def stretched(scenario: Scenario) -> Scenario:
    """A scenario whose clients, objectives and horizon take :attr:`~Scenario.stretch` times as long; that is 1 then.

    Its workloads are :func:`slowed_workload` by who loads them.

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
    """The struct with some fields multiplied: those that it has, and that are given."""
    given = {name: getattr(struct, name, None) for name in names}
    changed = {name: value * factor for name, value in given.items() if value is not None}
    return msgspec.structs.replace(struct, **changed)


def slowed_workload(workload: Workload, factor: float) -> Workload:
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
        variants=tuple(variant.mapped(op_of) for variant in workload.variants),
        iteration_us=tuple(us * factor for us in workload.iteration_us),
    )


def _kernel(kernel: Kernel, factor: float) -> Kernel:
    return _times(kernel, factor, "duration_us", "dram_bytes")


def _child(child: Child, factor: float) -> Child:
    return _times(child, factor, "duration_us")


def _timed(op: _Timed, factor: float) -> _Timed:
    return msgspec.structs.replace(op, duration_us=op.duration_us * factor, bytes=round(op.bytes * factor))
