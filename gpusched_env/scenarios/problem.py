"""A scenario resolved for execution: specification, workloads and kernel profiles in tables."""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.data import read_recorded
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import LEAST_SLICE_US, GpuSpec, load_gpu
from gpusched_env.scenarios import adapting
from gpusched_env.scenarios.capture import Capture
from gpusched_env.scenarios.graph_profile import GraphProfile, graph_profile
from gpusched_env.scenarios.host_speed import at_host_speed, check_host_speed
from gpusched_env.scenarios.knowledge import Knowledge, knowledge_of
from gpusched_env.scenarios.load import loaded as with_load
from gpusched_env.scenarios.profile_error import ProfileError, Profiles
from gpusched_env.scenarios.program import Compiler, JobProgram, as_graph
from gpusched_env.scenarios.scenario import CommandName, Contexts, Scenario
from gpusched_env.scenarios.stream import Stream
from gpusched_env.scenarios.stretch import slowed, stretched
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.workload.alone import run_threads_alone
from gpusched_env.workload.carry_over import CarriedOver, carry_over
from gpusched_env.workload.irregular.name import is_irregular
from gpusched_env.workload.irregular.workload import irregular
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import KernelProfile, profile_kernel
from gpusched_env.workload.tenant import Tenant
from gpusched_env.workload.workload import Workload, is_workload_path, read_workload

Made = TypeVar("Made")
Given = TypeVarTuple("Given")


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


class _Made:
    """What has been made of a problem; not copied or sent with it."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], Any] = {}

    def once(self, make: Callable[[Problem, *Given], Made], problem: Problem, *given: *Given) -> Made:
        """``make(problem, *given)``, always the same one: devices keep what they make of a problem."""
        key = make, *given
        if key not in self._found:
            self._found[key] = make(problem, *given)
        found: Made = self._found[key]
        return found

    def __reduce__(self) -> tuple[type[_Made], tuple[()]]:
        return _Made, ()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Problem:
    """The truth: everything that a device needs to run a scenario. Schedulers get its :attr:`knowledge`."""

    scenario: Scenario
    gpu: GpuSpec
    kernels: tuple[KernelProfile, ...]
    """True profiles by identity: equal name, grid, block, registers and shared memory of one workload."""
    gaps_us: NDArray[np.float64]
    """Per identity, kernels and then graphs: true profiled mean time from its end to the start of its tenant's next
    kernel in the iteration, alone on the GPU (copies between the two leave the SMs idle too); 0 for the last one."""
    graphs: tuple[GraphProfile, ...]
    """CUDA graphs; their identities follow those of the kernels."""
    streams: tuple[Stream, ...]
    """The tenants' streams, tenant after tenant, then the scheduler's own. A stream's hardware queue is its row modulo
    the GPU's channels."""
    programs: tuple[TenantProgram, ...]
    """One a tenant, in the scenario's order."""
    profiles: Profiles | None = None
    """Durations and gaps that everybody is told; ``None``: the true ones."""
    carried_over: tuple[CarriedOver, ...] = ()
    """Workloads that were recorded on another GPU, each once: their durations are estimates
    (:mod:`gpusched_env.workload.carry_over`)."""
    plain: Problem | None = None
    """Where launches pass a window, the same problem with streams that keep their order."""
    _made: _Made = field(default_factory=_Made, init=False, repr=False, compare=False)

    @property
    def knowledge(self) -> Knowledge:
        """What a scheduler may know; made once."""
        return self._made.once(knowledge_of, self)

    @property
    def told(self) -> Profiles:
        """Durations and gaps that everybody is told."""
        return self.true_profiles if self.profiles is None else self.profiles

    @property
    def profiled(self) -> list[KernelProfile | GraphProfile]:
        """True profiles by identity: kernels, then graphs."""
        return [*self.kernels, *self.graphs]

    @property
    def true_profiles(self) -> Profiles:
        """Those of the recordings."""
        durations = np.array([known.duration_us for known in self.profiled], np.float64)
        return Profiles(duration_us=durations, gap_us=np.asarray(self.gaps_us, np.float64))

    def with_profiles(self, profiles: Profiles) -> Problem:
        """The same problem with other profiles told, those of a measurement stage for example."""
        if self.plain is not None:
            return self.plain.with_profiles(profiles).with_window(self.window)
        return adapting.told(self, profiles)

    def with_profile_error(self, error: ProfileError) -> Problem:
        """The same problem with this error in the true profiles, as if the scenario said so."""
        if self.plain is not None:
            return self.plain.with_profile_error(error).with_window(self.window)
        told = self.with_profiles(self.true_profiles.distorted(error))
        return replace(told, scenario=msgspec.structs.replace(self.scenario, profiles=error))

    def with_contexts(self, contexts: Contexts) -> Problem:
        """The same problem with tenants sharing a context, or each in its own."""
        return self._with(contexts, self.scenario.commands, self.scenario.decision_us)

    @property
    def host_contention(self) -> tuple[float, float]:
        """The scenario's, of hosts at work and of waiting ones; contexts of their own are processes of their own, whose
        hosts do not slow each other."""
        scenario = self.scenario
        shared = scenario.contexts == "shared"
        return (scenario.host_contention, scenario.waiting_contention) if shared else (0.0, 0.0)

    def with_own_processes(self) -> Problem:
        """The same problem with a process for each tenant, whose hosts do not slow each other."""
        if self.host_contention == (0.0, 0.0):
            return self
        if self.plain is not None:
            return self.plain.with_own_processes().with_window(self.window)
        return self._made.once(adapting.own_processes, self)

    def with_slice(self, slice_us: float) -> Problem:
        """The same problem with slices of ``slice_us`` where contexts take turns, in place of the GPU's.

        Raises:
            InputError: it is below :data:`~gpusched_env.hardware.specs.LEAST_SLICE_US`.
        """
        if not slice_us >= LEAST_SLICE_US:
            raise InputError(f"slice_us is {slice_us}, must be at least {LEAST_SLICE_US:g}")
        if slice_us == self.gpu.timing.slice_us:
            return self
        if self.plain is not None:
            return self.plain.with_slice(slice_us).with_window(self.window)
        return self._made.once(adapting.with_slices_of, self, slice_us)

    def with_masked_launches(self) -> Problem:
        """The same problem with launches that carry their SMs as a field (Bakita and Anderson, *Hardware Compute
        Partitioning on NVIDIA GPUs*, RTAS 2023), so that the GPU is told of them at no cost."""
        if self.gpu.timing.partition_change_us == 0.0:
            return self
        if self.plain is not None:
            return self.plain.with_masked_launches().with_window(self.window)
        return self._made.once(adapting.masked_launches, self)

    def with_interception(self, interception_us: float) -> Problem:
        """The same problem with decisions that take ``interception_us`` more of the host's time.

        Raises:
            InputError: it is negative; a scheduler cannot give its host time.
        """
        if not interception_us >= 0.0:
            raise InputError(f"interception_us is {interception_us}, must be at least 0: deciding takes host time")
        scenario = self.scenario
        return self._with(scenario.contexts, scenario.commands, scenario.decision_us + interception_us)

    def with_commands(self, commands: Sequence[CommandName]) -> Problem:
        """The same problem offering ``commands`` besides its own: what can be decided sets the decision epochs."""
        scenario = self.scenario
        more = tuple(command for command in commands if command not in scenario.commands)
        return self._with(scenario.contexts, (*scenario.commands, *more), scenario.decision_us)

    def with_only(self, commands: Sequence[CommandName]) -> Problem:
        """The same problem offering no others than ``commands``."""
        scenario = self.scenario
        fewer = tuple(command for command in scenario.commands if command in commands)
        return self._with(scenario.contexts, fewer, scenario.decision_us)

    @property
    def window(self) -> KernelWindow | None:
        """What launches pass; ``None``: nothing, streams keep their order."""
        return None if self.plain is None else self.scenario.window

    def with_window(self, window: KernelWindow | None) -> Problem:
        """The same problem with launches that pass a window, or with streams that keep their order.

        Raises:
            InputError: a tenant's program has no place in a window.
        """
        if window == self.window:
            return self
        if self.plain is not None:
            return self.plain.with_window(window)
        assert window is not None
        return self._made.once(adapting.through_window, self, window)

    def with_captured_graphs(self, capture: Capture) -> Problem:
        """The same problem with streams that keep their order, and what is launched between two synchronisations as one
        CUDA graph, by the memory that the launches touch.

        Raises:
            InputError: a tenant's program cannot be captured.
        """
        if self.plain is not None:
            return self.plain.with_captured_graphs(capture)
        return self._made.once(adapting.captured_graphs, self, capture)

    def with_persistent_threads(self, task_us: float) -> Problem:
        """The same problem with kernels whose blocks are tasks of one that stays on the GPU
        (:func:`~gpusched_env.scenarios.persistent.as_tasks`)."""
        if self.plain is not None:
            return self.plain.with_persistent_threads(task_us).with_window(self.window)
        return self._made.once(adapting.persistent_threads, self, task_us)

    def in_real_time(self) -> Problem:
        """The same problem for a real GPU: nothing that this and the host's own work take is simulated."""
        return self._made.once(adapting.in_real_time, self)

    def with_opened_graphs(self) -> Problem:
        """The same problem with the kernels of graphs as launches of their own, for who intercepts inside graphs.

        Tenants get streams for the branches of their graphs, in front of the scheduler's own.
        """
        if not any(op.nodes for program in self.programs for job in program.variants for op in job):
            return self
        return self._made.once(adapting.opened_graphs, self)

    def _with(self, contexts: Contexts, commands: tuple[CommandName, ...], decision_us: float) -> Problem:
        """This problem if nothing differs, else always the same other one: devices keep what they make of a problem."""
        scenario = self.scenario
        if (contexts, commands, decision_us) == (scenario.contexts, scenario.commands, scenario.decision_us):
            return self
        if self.plain is not None:
            return self.plain._with(contexts, commands, decision_us).with_window(self.window)
        return self._made.once(adapting.offered, self, contexts, commands, decision_us)


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
            speed gives, or more than one of ``iteration_us``, ``host_us`` and a graph.
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
        workload, done = carry_over(slowed(named, slower), gpu)
        loaded.append(_as_launched(workload, tenant, gpu))
        if done is not None:
            carried.setdefault(tenant.workload, done)
    profiles: list[KernelProfile] = []
    graphs: list[GraphProfile] = []
    first_kernel: dict[str, int] = {}
    first_graph: dict[tuple[str, str], int] = {}
    for tenant, workload in zip(scenario.tenants, loaded, strict=True):
        if tenant.workload not in first_kernel:
            first_kernel[tenant.workload] = len(profiles)
            try:
                recorded_on = gpu if workload.gpu == gpu.name else workload.spec
                profiles += [_profile(kernel, recorded_on, gpu) for kernel in workload.kernels]
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
        _program(tenant, compiler, gaps, scenario.variation)
        for tenant, compiler in zip(scenario.tenants, compilers, strict=True)
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
        problem = problem.with_profile_error(scenario.profiles)
    return problem.with_window(scenario.window)


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
    """A shipped workload by name, one from a file (``.json`` or ``.json.gz``), or a generated one
    (:mod:`gpusched_env.workload.irregular`)."""
    if is_irregular(name_or_path):
        return irregular(name_or_path)
    return read_workload(Path(name_or_path)) if is_workload_path(name_or_path) else read_recorded(name_or_path)


@functools.lru_cache(maxsize=8192)
def _profile(kernel: Kernel, recorded_on: GpuSpec, gpu: GpuSpec) -> KernelProfile:
    return profile_kernel(kernel, recorded_on, gpu)


def _program(tenant: Tenant, compiler: Compiler, gaps: list[list[float]], variation: bool) -> TenantProgram:
    check_host_speed(tenant)
    workload, timing = compiler.workload, compiler.gpu.timing
    variants = []
    alone = []
    for variant in workload.variants if variation else workload.variants[:1]:
        job = at_host_speed(compiler.job(variant), tenant, compiler.gpu)
        _, spans = run_threads_alone(job.by_thread(), timing)
        placed = zip(job.ops, (span for thread in spans for span in thread), strict=True)
        kernels = sorted((span, op.identity) for op, span in placed if span is not None and op.identity >= 0)
        for ((_, end), identity), ((start, _), _) in itertools.pairwise(kernels):
            gaps[identity].append(max(0.0, start - end))
        alone.append(max(span[1] for thread in spans for span in thread if span is not None))
        variants.append(job)
    median = statistics.median(workload.iteration_us)
    return TenantProgram(
        tenant=tenant,
        workload=workload,
        variants=tuple(variants),
        host_spread=tuple(t / median for t in workload.iteration_us)
        if variation and tenant.host_us is None
        else (1.0,),
        alone_us=statistics.fmean(alone),
    )
