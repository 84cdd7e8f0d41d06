"""What a scheduler may know before an episode: the GPU, the tenants, kernel profiles, and what it may do.

Never the truth of the episode: no actual durations, no profiles without the scenario's error, no arrivals, no seed.
A scheduler that is to have those asks for them by name (:class:`gpusched_env.scheduling.contract.Clairvoyant`).
"""

from __future__ import annotations

import math
from collections.abc import Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.profiles import GraphProfile, JobDemand, job_demand
from gpusched_env.scenarios.scenario import CommandName, Contexts, PreemptionName
from gpusched_env.scenarios.tenant_program import Mask, mean_per_job
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.workload.profile import KernelProfile

if TYPE_CHECKING:
    from gpusched_env.scenarios.problem import Problem
    from gpusched_env.scenarios.tenant_program import TenantProgram


class Offer(Protocol):
    """What decides the actions of an agent; a scenario and the knowledge of it say the same."""

    @property
    def name(self) -> str: ...
    @property
    def tenants(self) -> Sized: ...
    @property
    def commands(self) -> tuple[CommandName, ...]: ...
    @property
    def stream_priorities(self) -> tuple[int, ...]: ...
    @property
    def preemption(self) -> tuple[PreemptionName, ...]: ...
    @property
    def shown_ahead(self) -> int: ...
    @property
    def own_streams(self) -> int: ...
    @property
    def core_count(self) -> int: ...


@dataclass(frozen=True, slots=True)
class KernelKnowledge:
    """A kernel by identity: what a launch call says of it, and its profile alone on this GPU."""

    name: str
    """Name of the function, or of the graph."""
    grid: tuple[int, int, int]
    """Blocks of the grid, by dimension."""
    block: tuple[int, int, int]
    """Threads of a block, by dimension."""
    registers: int
    """32-bit registers a thread."""
    shared_bytes: int
    """Shared memory a block."""
    blocks: int
    """Thread blocks of the grid."""
    threads: int
    """Threads of a block."""
    blocks_per_sm: int
    """Blocks that an empty SM holds."""
    sms: int
    """SMs that it uses on an empty GPU."""
    duration_us: float
    """Profiled mean duration alone, as it is told; NaN if it was never measured."""
    gap_us: float
    """Profiled mean time from its end to the start of its tenant's next kernel, alone, as it is told; or NaN."""
    issue: float
    """Profiled share of the issue slots of the SMs it uses, alone, 0 to 1."""
    dram: float
    """Profiled share of the GPU's DRAM bandwidth, alone, 0 to 1."""
    idempotent: bool
    """Whether it may be reset."""
    nodes: int = 1
    """Kernels in it: 1, of a graph all."""
    graph: bool = False
    """Whether it is a graph, which runs as a unit; there are graphs of one kernel."""
    forms: tuple[int, ...] = ()
    """Identities of kernels that do the same work with another tile shape or split-K."""


@dataclass(frozen=True, slots=True)
class StreamKnowledge:
    """A stream: what is launched into it starts in order."""

    tenant: int
    """Row of the tenant whose program uses it; -1: the scheduler's own."""
    priority: int
    """Stream priority that the program asks for, CUDA's convention."""
    mask: Mask | None = None
    """SMs of what is launched into it, first one and number; ``None``: those of the launch's tenant."""


@dataclass(frozen=True, slots=True)
class TenantKnowledge:
    """A tenant: what it wants, and what it may launch."""

    name: str
    """The tenant's name in the scenario."""
    priority: int
    """Urgency, 0 is the most urgent."""
    weight: float
    """Weight of its jobs in the cost."""
    slo_us: float
    """Service objective for the turnaround of a job, of a serving engine for the time to a request's first token;
    ``inf`` without one."""
    alone_us: float
    """Profiled turnaround of one job alone on the GPU, of a serving engine up to the first token."""
    device_us: float
    """Profiled durations of the kernels of a job, summed, as they are told: :attr:`alone_us` without the gaps between
    them; 0 if none was ever measured."""
    jobs_a_us: float
    """Mean rate of arrivals, jobs a microsecond; 0 where jobs wait for each other or are all there at once."""
    kernels: tuple[int, ...]
    """Identities that it may launch, ascending: rows of ``Knowledge.kernels``."""
    demand: JobDemand
    """What a job asks of the GPU, by the profiles of its kernels."""
    max_batch: int = 1
    """Jobs that it serves together at most: above 1 a serving engine, whose jobs may complete out of order. A launch of
    its belongs to the request that it prefills, or to the oldest that runs."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What :meth:`gpusched_env.scheduling.contract.Scheduler.reset` gets."""

    name: str
    """Name of the scenario, or of a variant of it (``<scenario>-held_out-0``)."""
    gpu: GpuSpec
    """Specification of the GPU, from a file in ``gpusched_env/hardware/gpus`` or of one's own."""
    tenants: tuple[TenantKnowledge, ...]
    """What is known of each tenant, in the order of a view's table of tenants."""
    kernels: tuple[KernelKnowledge, ...]
    """What is known of each identity (the column ``IDENTITY`` of views): kernels, then graphs as schedulers that do not
    look inside them know them (blocks, SMs and shares are those of its kernels together; no grid and registers)."""
    streams: tuple[StreamKnowledge, ...]
    """What is known of each stream, by row (the column ``STREAM`` of views)."""
    commands: tuple[CommandName, ...]
    """Commands on offer besides waiting."""
    stream_priorities: tuple[int, ...]
    """Stream priorities that an agent can choose for a launch."""
    preemption: tuple[PreemptionName, ...]
    """Modes that an agent can choose, if ``preempt`` is among the commands."""
    contexts: Contexts
    """``shared``: kernels of all tenants may run at one time; ``per-tenant``: processes that take turns."""
    lookahead: int
    """Pending kernels of each tenant that a view has."""
    launch_depth: int
    """Kernels that a host may have issued and unfinished before its next launch call blocks."""
    decision_us: float
    """Host time of one decision."""
    window: KernelWindow | None
    """What launches pass; ``None``: nothing, streams keep their order."""
    horizon_us: float
    """The episode ends here at the latest."""
    core_count: int
    """CPU cores that share the GPU's memory; 0: none are simulated."""

    @property
    def shown_ahead(self) -> int:
        """:attr:`lookahead`, as a scenario calls what its window or itself shows."""
        return self.lookahead

    @property
    def own_streams(self) -> int:
        """Streams of the scheduler's own, the last of :attr:`streams`; not those of a window, which are all alike."""
        return sum(stream.tenant < 0 for stream in self.streams) if self.window is None else 0

    @property
    def duration_us(self) -> NDArray[np.float64]:
        """Profiled durations by identity, NaN where never measured."""
        return np.array([kernel.duration_us for kernel in self.kernels], np.float64)

    @property
    def gap_us(self) -> NDArray[np.float64]:
        """Profiled gaps by identity, NaN where never measured."""
        return np.array([kernel.gap_us for kernel in self.kernels], np.float64)


def knowledge_of(problem: Problem) -> Knowledge:
    """What a scheduler may know of ``problem``; :attr:`Problem.knowledge` keeps it."""
    scenario, told = problem.scenario, problem.told
    profiles = zip(problem.profiled, told.duration_us.tolist(), told.gap_us.tolist(), strict=True)
    return Knowledge(
        name=scenario.name,
        gpu=problem.gpu,
        tenants=tuple(_tenant(program, problem) for program in problem.programs),
        kernels=tuple(_known(profile, duration_us, gap_us) for profile, duration_us, gap_us in profiles),
        streams=tuple(StreamKnowledge(stream.tenant, stream.priority, stream.mask) for stream in problem.streams),
        commands=scenario.commands,
        stream_priorities=scenario.stream_priorities,
        preemption=scenario.preemption,
        contexts=scenario.contexts,
        lookahead=scenario.lookahead,
        launch_depth=scenario.launch_depth,
        decision_us=scenario.decision_us,
        window=problem.window,
        horizon_us=scenario.horizon_us,
        core_count=scenario.core_count,
    )


def _tenant(program: TenantProgram, problem: Problem) -> TenantKnowledge:
    tenant, durations = program.tenant, problem.told.duration_us
    launched = [[op.identity for op in ops if op.identity >= 0] for ops in program.variants]
    return TenantKnowledge(
        name=tenant.name,
        priority=tenant.priority,
        weight=tenant.weight,
        slo_us=math.inf if tenant.slo_us is None else tenant.slo_us,
        alone_us=program.answer_us,
        device_us=mean_per_job(program.engine, [float(np.nansum(durations[ops])) for ops in launched], answered=True),
        jobs_a_us=program.jobs_a_us,
        kernels=tuple(sorted({identity for ops in launched for identity in ops})),
        demand=job_demand(program, problem.profiled, durations, problem.gpu),
        max_batch=1 if program.engine is None else program.engine.max_batch,
    )


def _known(profile: KernelProfile | GraphProfile, duration_us: float, gap_us: float) -> KernelKnowledge:
    return (
        _kernel(profile, duration_us, gap_us)
        if isinstance(profile, KernelProfile)
        else _graph(profile, duration_us, gap_us)
    )


def _graph(graph: GraphProfile, duration_us: float, gap_us: float) -> KernelKnowledge:
    return KernelKnowledge(
        name=graph.name,
        grid=(graph.blocks, 1, 1),
        block=(graph.threads, 1, 1),
        registers=0,
        shared_bytes=0,
        blocks=graph.blocks,
        threads=graph.threads,
        blocks_per_sm=graph.blocks_per_sm,
        sms=graph.sms,
        duration_us=duration_us,
        gap_us=gap_us,
        issue=graph.issue,
        dram=graph.dram,
        idempotent=False,
        nodes=graph.kernels,
        graph=True,
    )


def _kernel(profile: KernelProfile, duration_us: float, gap_us: float) -> KernelKnowledge:
    kernel = profile.kernel
    return KernelKnowledge(
        name=kernel.name,
        grid=kernel.grid,
        block=kernel.block,
        registers=kernel.registers,
        shared_bytes=kernel.shared_bytes,
        blocks=kernel.blocks,
        threads=kernel.threads,
        blocks_per_sm=profile.footprint.blocks_per_sm,
        sms=profile.sms,
        duration_us=duration_us,
        gap_us=gap_us,
        issue=profile.issue,
        dram=profile.dram,
        idempotent=kernel.idempotent,
        forms=profile.forms,
    )
