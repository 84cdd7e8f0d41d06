"""The problem that devices run, from a scenario: what it names is loaded, carried over to its GPU and profiled."""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from gpusched_env.data import read_recorded
from gpusched_env.data.dependent_kernels import is_measured_chain, measured_chain
from gpusched_env.data.parboil import is_parboil, parboil
from gpusched_env.data.products import is_product_chain, product_chain
from gpusched_env.errors import InputError
from gpusched_env.hardware.l2 import keeps
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.reading import LONGEST_US
from gpusched_env.scenarios.adapting import with_profile_error, with_window
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.profile_error import ProfileError
from gpusched_env.scenarios.profiles import GraphProfile, graph_profile
from gpusched_env.scenarios.program import Compiler, JobProgram, as_graph
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scenarios.tenant_program import Stream, TenantProgram, engine_of, mean_per_job, steps_of
from gpusched_env.scenarios.variants import slowed_workload, stretched, with_load
from gpusched_env.workload.carry_over import CarriedOver, carry_over
from gpusched_env.workload.dependent import is_chain, random_chain
from gpusched_env.workload.generated_names import is_irregular
from gpusched_env.workload.idle_gpu import IdleGpu, Span
from gpusched_env.workload.irregular_graphs import irregular
from gpusched_env.workload.kernel import Kernel, Physics
from gpusched_env.workload.profile import KernelProfile, profile_kernel
from gpusched_env.workload.tenant import Tenant, Trace
from gpusched_env.workload.trace_replay import TraceReplay, replay_of
from gpusched_env.workload.workload import OpKind, Workload, is_workload_path, read_workload


def build_problem(
    scenario: Scenario, *, gpu: GpuSpec | None = None, workloads: Mapping[str, Workload] | None = None
) -> Problem:
    """Load and profile what ``scenario`` names.

    Args:
        scenario: the problem as data.
        gpu: the GPU to use in place of the one that ``scenario`` names. Workloads recorded on a GPU of its
            name are taken to be recorded on it; others are carried over (:mod:`gpusched_env.workload.carry_over`).
        workloads: workloads that tenants may name, before the shipped ones and files.

    Raises:
        InputError: an unknown GPU or workload, a kernel that cannot fit on the GPU, tenants that need
            more memory than it has, stream priorities that it does not have, an ``iteration_us`` that no host
            speed gives, or more than one of ``iteration_us``, ``host_us`` and a graph; a serving engine whose workload
            lacks the steps that it may need.
    """
    gpu = gpu or load_gpu(scenario.gpu)
    check_gpu(scenario, gpu)
    slower, scenario = scenario.stretch, stretched(with_load(scenario))
    loaded = []
    carried: dict[str, CarriedOver] = {}
    for row, tenant in enumerate(scenario.tenants):
        try:
            named = (workloads or {}).get(tenant.workload) or load_workload(tenant.workload)
        except InputError as error:
            raise InputError(f"scenario {scenario.name}: tenants[{row}].workload: {error}") from error
        workload, done = carry_over(slowed_workload(named, slower), gpu, scenario.physics)
        loaded.append(_as_launched(workload, tenant, gpu))
        if done is not None:
            carried.setdefault(tenant.workload, done)
    profiles: list[KernelProfile] = []
    graphs: list[GraphProfile] = []
    first_kernel: dict[str, int] = {}
    first_graph: dict[tuple[str, str], int] = {}
    for tenant, workload in zip(scenario.tenants, loaded, strict=True):
        if tenant.workload not in first_kernel:
            first_kernel[tenant.workload] = first = len(profiles)
            try:
                recorded_on = gpu if workload.gpu == gpu.name else workload.spec
                known = workload.footprint_bytes > 0
                profiles += [
                    replace(
                        _profile(kernel, recorded_on, gpu, known, scenario.physics),
                        forms=tuple(first + form for form in kernel.forms),
                    )
                    for kernel in workload.kernels
                ]
            except InputError as error:
                raise InputError(f"workload {tenant.workload}: {error}") from error
    compilers = []
    streams: list[Stream] = []
    for row, (tenant, workload) in enumerate(zip(scenario.tenants, loaded, strict=True)):
        key = tenant.workload, tenant.launch
        known = key in first_graph
        first = first_graph.setdefault(key, len(profiles) + len(graphs))
        compiler = Compiler(workload, profiles, first_kernel[tenant.workload], first, len(streams), gpu)
        if not known:
            graphs += [
                graph_profile(f"{workload.name} graph {g}", compiler.nodes(nodes), profiles, gpu)
                for g, nodes in enumerate(workload.graphs)
            ]
        streams += [Stream(row, max(1 - gpu.priorities, priority)) for priority in workload.stream_priorities]
        compilers.append(compiler)
    streams += [Stream(-1, 0) for _ in range(scenario.streams)]
    gaps: list[list[float]] = [[] for _ in range(len(profiles) + len(graphs))]
    programs = tuple(
        _program(tenant, compiler, gaps, scenario, _replay(scenario.name, row, tenant))
        for row, (tenant, compiler) in enumerate(zip(scenario.tenants, compilers, strict=True))
    )
    problem = Problem(
        scenario=msgspec.structs.replace(scenario, window=None),
        gpu=gpu,
        kernels=tuple(profiles),
        gaps_us=np.array([statistics.fmean(g) if g else 0.0 for g in gaps]),
        graphs=tuple(graphs),
        streams=tuple(streams),
        programs=programs,
        carried_over=tuple(carried.values()),
    )
    if scenario.profiles != ProfileError():
        problem = with_profile_error(problem, scenario.profiles)
    return with_window(problem, scenario.window)


def check_gpu(scenario: Scenario, gpu: GpuSpec) -> None:
    """Whether ``gpu`` has what ``scenario`` asks for; workloads fit on any GPU, or are made to.

    Raises:
        InputError: too few stream priorities, or too little memory.
    """
    where = f"scenario {scenario.name}"
    lowest = 1 - gpu.priorities
    for priority in scenario.stream_priorities:
        if priority < lowest:
            raise InputError(
                f"{where}: stream_priorities has {priority}, {gpu.name} has {lowest} to 0; "
                f"set stream_priorities to {list(range(0, lowest - 1, -1))}"
            )
    needed = sum(tenant.memory_bytes for tenant in scenario.tenants)
    if needed > gpu.memory_bytes:
        raise InputError(f"{where}: tenants need {needed} bytes of device memory, {gpu.name} has {gpu.memory_bytes}")


def _as_launched(workload: Workload, tenant: Tenant, gpu: GpuSpec) -> Workload:
    """A tenant's workload, as a graph where the tenant launches it so."""
    if tenant.launch == "eager":
        return workload
    try:
        return as_graph(workload, gpu)
    except ValueError as error:
        raise InputError(f"tenant {tenant.name}: launch is graph, but workload {tenant.workload}: {error}") from error


def load_workload(name_or_path: str) -> Workload:
    """A shipped workload by name, one from a file (``.json`` or ``.json.gz``), a generated one
    (:mod:`gpusched_env.workload.irregular`, :mod:`gpusched_env.workload.dependent`,
    :mod:`gpusched_env.data.products`), or measured kernels by their parameters
    (:mod:`gpusched_env.data.dependent_kernels`, :mod:`gpusched_env.data.parboil`)."""
    if is_irregular(name_or_path):
        return irregular(name_or_path)
    if is_chain(name_or_path):
        return random_chain(name_or_path)
    if is_product_chain(name_or_path):
        return product_chain(name_or_path)
    if is_measured_chain(name_or_path):
        return measured_chain(name_or_path)
    if is_parboil(name_or_path):
        return parboil(name_or_path)
    return read_workload(Path(name_or_path)) if is_workload_path(name_or_path) else read_recorded(name_or_path)


@functools.lru_cache(maxsize=8192)
def _profile(kernel: Kernel, recorded_on: GpuSpec, gpu: GpuSpec, l2_recorded: bool, physics: Physics) -> KernelProfile:
    return profile_kernel(kernel, recorded_on, gpu, l2_recorded=l2_recorded, physics=physics)


def _replay(scenario: str, row: int, tenant: Tenant) -> TraceReplay | None:
    """What a tenant's arrivals play, if they are a trace."""
    if not isinstance(tenant.arrivals, Trace):
        return None
    try:
        return replay_of(tenant.arrivals)
    except InputError as error:
        raise InputError(f"scenario {scenario}: tenants[{row}].arrivals: {error}") from error


def _program(
    tenant: Tenant, compiler: Compiler, gaps: list[list[float]], scenario: Scenario, replay: TraceReplay | None
) -> TenantProgram:
    check_host_speed(tenant)
    workload, variation = compiler.workload, scenario.variation
    gpu = IdleGpu(compiler.gpu, scenario.launch_depth)
    engine = engine_of(tenant, workload, replay)
    recorded = workload.variants if variation else workload.variants[:1]
    variants = []
    alone = []
    for variant in recorded if engine is None else steps_of(workload):
        job = at_host_speed(compiler.job(variant), tenant, gpu)
        played = gpu.play(job.by_thread())
        placed = zip(job.ops, itertools.chain(*played.spans), strict=True)
        kernels = sorted((*_whole(parts), op.identity) for op, parts in placed if op.identity >= 0)
        for (_, end, identity), (start, _, _) in itertools.pairwise(kernels):
            gaps[identity].append(max(0.0, start - end))
        alone.append(played.device_us)
        variants.append(job)
    if max(alone) > LONGEST_US:
        raise InputError(f"tenant {tenant.name}: a job takes {max(alone):g} us alone, must be at most {LONGEST_US:g}")
    median = statistics.median(workload.iteration_us)
    found_again, brings = _in_l2(workload, variants, compiler)
    return TenantProgram(
        tenant=tenant,
        workload=workload,
        variants=tuple(variants),
        host_spread=tuple(t / median for t in workload.iteration_us)
        if variation and tenant.host_us is None
        else (1.0,),
        alone_us=mean_per_job(engine, alone),
        answer_us=mean_per_job(engine, alone, answered=True),
        engine=engine,
        replay=replay,
        footprint_bytes=workload.footprint_bytes,
        brings=brings,
        keeps=found_again,
    )


def _whole(parts: Sequence[Span]) -> Span:
    """The span from the first start to the last end."""
    return min(start for start, _ in parts), max(end for _, end in parts)


def _in_l2(workload: Workload, jobs: list[JobProgram], compiler: Compiler) -> tuple[bool, float]:
    """:attr:`TenantProgram.keeps` and :attr:`TenantProgram.brings`: a program that finds everything again brings no
    more than its footprint an iteration, and that only if it was driven out."""
    if not workload.footprint_bytes or not keeps(compiler.gpu.l2_bytes, workload.footprint_bytes):
        return False, 1.0
    kernels = [part for job in jobs for op in job for part in (op.nodes or (op,)) if part.kind is OpKind.KERNEL]
    brought = sum(compiler.profiles[part.identity].brought_bytes * part.scale for part in kernels) / len(jobs)
    return True, min(1.0, workload.footprint_bytes / brought) if brought > 0.0 else 1.0


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
        factor = _host_scale(job, tenant.iteration_us, gpu)
        if factor is None:
            raise InputError(
                f"tenant {tenant.name}: iteration_us is {tenant.iteration_us:g}, but workload {tenant.workload} has no "
                f"host times to stretch: an iteration takes {gpu.play(job.by_thread()).host_us:g} us at any host speed"
            )
        job = job.with_host_times(factor)
    if tenant.host_us is not None:
        job = job.with_launch_times(tenant.host_us)
    return job


@functools.lru_cache(maxsize=1024)
def _host_scale(job: JobProgram, iteration_us: float, gpu: IdleGpu) -> float | None:
    """The factor on host times with which an iteration alone takes ``iteration_us`` (0 if it takes longer); ``None``:
    there are no host times."""
    threads = job.by_thread()

    def alone(scale: float) -> float:
        return gpu.play(threads, scale).host_us

    high = 1.0
    if alone(high) < iteration_us and not any(op.host_us > 0.0 for op in job):
        return None
    if alone(0.0) >= iteration_us:
        return 0.0
    while alone(high) < iteration_us:
        high *= 2.0
    return gpu.host_scales(threads, iteration_us, 0.0, high)[0]
