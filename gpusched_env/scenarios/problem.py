"""A scenario resolved for execution: specification, workloads and kernel profiles in tables."""

from __future__ import annotations

import functools
import itertools
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.data import read_recorded
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.hardware.timing import host_copy_us
from gpusched_env.scenarios.knowledge import Knowledge, knowledge_of
from gpusched_env.scenarios.profile_error import ProfileError, Profiles, told_program
from gpusched_env.scenarios.scenario import CommandName, Contexts, Scenario
from gpusched_env.workload.alone import run_alone
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import KernelProfile, profile_kernel
from gpusched_env.workload.tenant import Tenant
from gpusched_env.workload.workload import Op, OpKind, Workload, read_workload


@dataclass(frozen=True, slots=True)
class HostOp:
    """One host operation of a tenant on this problem's GPU."""

    kind: OpKind
    host_us: float
    """Host time before it."""
    identity: int
    """Row of ``Problem.kernels``; -1 if it is no kernel."""
    scale: float
    """Actual over profiled duration of this occurrence (kernels)."""
    device_us: float
    """Device time alone (kernels: profiled duration times ``scale``)."""
    bytes: int
    left_us: float
    """Profiled device time of this and all later kernels of the iteration, as everybody is told."""


@dataclass(frozen=True, slots=True)
class TenantProgram:
    """What a tenant's host does, with identities of the problem's kernel table."""

    tenant: Tenant
    workload: Workload
    variants: tuple[tuple[HostOp, ...], ...]
    """One sequence a recorded iteration (only the first without variation)."""
    host_spread: tuple[float, ...]
    """Factors on host times that jobs draw from: recorded iteration times over their median."""
    gap_us: float
    """Time between a kernel's end and the start of the next one queued in the stream."""
    alone_us: float
    """Profiled turnaround of one job alone on the GPU (mean over variants)."""


class _Made:
    """What has been made of a problem; not copied or sent with it."""

    __slots__ = ("adapted", "knowledge")

    def __init__(self) -> None:
        self.knowledge: Knowledge | None = None
        self.adapted: dict[tuple[Contexts, tuple[CommandName, ...], float], Problem] = {}

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
    """Per identity: true profiled mean time from its end to the start of its tenant's next kernel in the iteration,
    alone on the GPU (copies between the two leave the SMs idle too); 0 for the last kernel."""
    programs: tuple[TenantProgram, ...]
    """One a tenant, in the scenario's order."""
    profiles: Profiles | None = None
    """Durations and gaps that everybody is told; ``None``: the true ones."""
    _made: _Made = field(default_factory=_Made, init=False, repr=False, compare=False)

    @property
    def knowledge(self) -> Knowledge:
        """What a scheduler may know; made once."""
        made = self._made
        if made.knowledge is None:
            made.knowledge = knowledge_of(self)
        return made.knowledge

    @property
    def told(self) -> Profiles:
        """Durations and gaps that everybody is told."""
        return self.true_profiles if self.profiles is None else self.profiles

    @property
    def true_profiles(self) -> Profiles:
        """Those of the recordings."""
        durations = np.array([kernel.duration_us for kernel in self.kernels], np.float64)
        return Profiles(duration_us=durations, gap_us=np.asarray(self.gaps_us, np.float64))

    def with_profiles(self, profiles: Profiles) -> Problem:
        """The same problem with other profiles told, those of a measurement stage for example."""
        true_us = [kernel.duration_us for kernel in self.kernels]
        programs = tuple(told_program(program, true_us, profiles.duration_us) for program in self.programs)
        return replace(self, profiles=profiles, programs=programs)

    def with_profile_error(self, error: ProfileError) -> Problem:
        """The same problem with this error in the true profiles, as if the scenario said so."""
        told = self.with_profiles(self.true_profiles.distorted(error))
        return replace(told, scenario=msgspec.structs.replace(self.scenario, profiles=error))

    def with_contexts(self, contexts: Contexts) -> Problem:
        """The same problem with tenants sharing a context, or each in its own."""
        return self._with(contexts, self.scenario.commands, self.scenario.decision_us)

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

    def _with(self, contexts: Contexts, commands: tuple[CommandName, ...], decision_us: float) -> Problem:
        """This problem if nothing differs, else always the same other one: devices keep what they make of a problem."""
        scenario = self.scenario
        if (contexts, commands, decision_us) == (scenario.contexts, scenario.commands, scenario.decision_us):
            return self
        known = self._made.adapted
        found = known.get((contexts, commands, decision_us))
        if found is None:
            changed = msgspec.structs.replace(scenario, contexts=contexts, commands=commands, decision_us=decision_us)
            found = known[contexts, commands, decision_us] = replace(self, scenario=changed)
        return found


def build_problem(
    scenario: Scenario, *, gpu: GpuSpec | None = None, workloads: Mapping[str, Workload] | None = None
) -> Problem:
    """Load and profile what ``scenario`` names.

    Args:
        scenario: the problem as data.
        gpu: the GPU to use in place of the one that ``scenario`` names. Workloads recorded on a GPU of its
            name are taken to be recorded on it.
        workloads: workloads that tenants may name, before the shipped ones and files.

    Raises:
        InputError: an unknown GPU or workload, a kernel that cannot fit on the GPU, tenants that need
            more memory than it has, stream priorities that it does not have, or an ``iteration_us`` that
            no host speed gives.
    """
    profile = functools.partial(_shipped_profile, scenario.gpu) if gpu is None else functools.partial(_profile, gpu)
    gpu = gpu or load_gpu(scenario.gpu)
    where = f"scenario {scenario.name}"
    lowest = 1 - gpu.priorities
    for priority in scenario.stream_priorities:
        if priority < lowest:
            raise InputError(f"{where}: stream_priorities has {priority}, {gpu.name} has {lowest} to 0")
    needed = sum(tenant.memory_bytes for tenant in scenario.tenants)
    if needed > gpu.memory_bytes:
        raise InputError(f"{where}: tenants need {needed} bytes of device memory, {gpu.name} has {gpu.memory_bytes}")
    profiles: list[KernelProfile] = []
    offsets: dict[str, int] = {}
    programs = []
    gaps: list[list[float]] = []
    for tenant in scenario.tenants:
        workload = (workloads or {}).get(tenant.workload) or load_workload(tenant.workload)
        if tenant.workload not in offsets:
            offsets[tenant.workload] = len(profiles)
            try:
                profiles += [profile(workload.gpu, kernel) for kernel in workload.kernels]
            except InputError as error:
                raise InputError(f"workload {tenant.workload}: {error}") from error
            gaps += [[] for _ in workload.kernels]
        programs.append(_program(tenant, workload, offsets[tenant.workload], profiles, gaps, gpu, scenario.variation))
    problem = Problem(
        scenario=scenario,
        gpu=gpu,
        kernels=tuple(profiles),
        gaps_us=np.array([statistics.fmean(g) if g else 0.0 for g in gaps]),
        programs=tuple(programs),
    )
    return problem if scenario.profiles == ProfileError() else problem.with_profile_error(scenario.profiles)


def load_workload(name_or_path: str) -> Workload:
    """A shipped workload by name, or one from a file (``.json`` or ``.json.gz``)."""
    if name_or_path.endswith((".json", ".json.gz")) or os.sep in name_or_path:
        return read_workload(Path(name_or_path))
    return read_recorded(name_or_path)


@functools.lru_cache(maxsize=8192)
def _shipped_profile(gpu: str, recorded_on: str, kernel: Kernel) -> KernelProfile:
    return _profile(load_gpu(gpu), recorded_on, kernel)


def _profile(gpu: GpuSpec, recorded_on: str, kernel: Kernel) -> KernelProfile:
    return profile_kernel(kernel, gpu if recorded_on == gpu.name else load_gpu(recorded_on), gpu)


def _program(
    tenant: Tenant,
    workload: Workload,
    offset: int,
    profiles: Sequence[KernelProfile],
    gaps: list[list[float]],
    gpu: GpuSpec,
    variation: bool,
) -> TenantProgram:
    graph = tenant.launch == "graph"
    timing = gpu.timing
    if graph:
        timing = msgspec.structs.replace(timing, stream_gap_us=timing.graph_gap_us)
    variants = []
    alone = []
    for variant in workload.variants if variation else workload.variants[:1]:
        ops = _host_ops(_as_graph(variant.ops, gpu) if graph else variant.ops, workload, offset, profiles, gpu)
        if tenant.iteration_us is not None and not graph:
            scale = _host_scale(ops, tenant, gpu)
            ops = tuple(replace(op, host_us=op.host_us * scale) for op in ops)
        _, starts, ends = run_alone(((op.kind, op.host_us, op.device_us) for op in ops), timing)
        device_ops = (op for op in ops if op.kind is not OpKind.SYNC)
        spans = zip(device_ops, starts, ends, strict=True)
        kernels = [(op.identity, start, end) for op, start, end in spans if op.identity >= 0]
        for (identity, _, end), (_, start, _) in itertools.pairwise(kernels):
            gaps[identity].append(max(0.0, start - end))
        alone.append(ends[-1])
        variants.append(ops)
    median = statistics.median(workload.iteration_us)
    return TenantProgram(
        tenant=tenant,
        workload=workload,
        variants=tuple(variants),
        host_spread=tuple(t / median for t in workload.iteration_us) if variation else (1.0,),
        gap_us=timing.stream_gap_us,
        alone_us=statistics.fmean(alone),
    )


def _as_graph(ops: tuple[Op, ...], gpu: GpuSpec) -> tuple[Op, ...]:
    """The operations of an iteration as one graph launch: no host time between them, one wait at the end."""
    device_ops = [msgspec.structs.replace(op, host_us=0.0) for op in ops if op.kind is not OpKind.SYNC]
    device_ops[0] = msgspec.structs.replace(device_ops[0], host_us=gpu.timing.graph_launch_us)
    return (*device_ops, Op(OpKind.SYNC))


def _host_ops(
    ops: tuple[Op, ...], workload: Workload, offset: int, profiles: Sequence[KernelProfile], gpu: GpuSpec
) -> tuple[HostOp, ...]:
    result = []
    left = sum(profiles[offset + op.index].duration_us for op in ops if op.kind is OpKind.KERNEL)
    for op in ops:
        if op.kind is OpKind.KERNEL:
            profile = profiles[offset + op.index]
            scale = op.duration_us / workload.kernels[op.index].duration_us
            result.append(HostOp(op.kind, op.host_us, offset + op.index, scale, profile.duration_us * scale, 0, left))
            left -= profile.duration_us
        else:
            # A recorded copy keeps its time on the GPU of the recording; elsewhere the engine's speed decides.
            between = op.kind in (OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST) and workload.gpu != gpu.name
            device_us = host_copy_us(gpu, op.bytes) if between else op.duration_us
            result.append(HostOp(op.kind, op.host_us, -1, 1.0, device_us, op.bytes, left))
    return tuple(result)


def _host_scale(ops: Sequence[HostOp], tenant: Tenant, gpu: GpuSpec) -> float:
    """The factor on host times with which an iteration alone takes its ``iteration_us`` (0 if it takes longer)."""

    def alone(scale: float) -> float:
        return run_alone(((op.kind, op.host_us, op.device_us) for op in ops), gpu.timing, scale)[0]

    iteration_us = tenant.iteration_us or 0.0
    low, high = 0.0, 1.0
    if alone(high) < iteration_us and not any(op.host_us > 0.0 for op in ops):
        raise InputError(
            f"tenant {tenant.name}: iteration_us is {iteration_us:g}, but workload {tenant.workload} has no host times "
            f"to stretch: an iteration takes {alone(high):g} us at any host speed"
        )
    while alone(high) < iteration_us:
        high *= 2.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if alone(middle) < iteration_us else (low, middle)
    return low
