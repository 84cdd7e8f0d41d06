"""What a scheduler asks of the problem that it plays, and the problem made so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.hardware.specs import LEAST_SLICE_US, GpuSpec
from gpusched_env.scenarios.adapting import (
    captured_graphs,
    masked_streams,
    opened_graphs,
    persistent_threads,
    stream_k,
    with_window,
)
from gpusched_env.scenarios.launching import Capture
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import CommandName, Contexts, Scenario
from gpusched_env.scenarios.tenant_program import Mask
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.workload.cores.spec import CpuCores

Graphs = Literal["units", "opened"]


@dataclass(frozen=True, kw_only=True)
class SetUp:
    """How a scheduler wants its tenants run and itself asked; what is left out stays as the scenario has it.

    A scheduler says it in its attribute ``set_up``: ``set_up = SetUp(contexts="per-tenant", commands=("preempt",))``.

    Raises:
        InputError: a field that there is not, or a value out of its range.
    """

    contexts: Contexts | None = None
    """``per-tenant``: tenants are processes that take turns (time slicing); ``shared``: they share the GPU."""
    slice_us: float | None = None
    """Length of the turns of processes; at least :data:`~gpusched_env.hardware.specs.LEAST_SLICE_US`."""
    own_processes: bool = False
    """Tenants are processes though they share a context (MPS): their hosts do not slow each other."""
    commands: tuple[CommandName, ...] = ()
    """What the scheduler decides besides what the scenario offers. It is asked wherever one of them can be decided."""
    uses: Callable[[Scenario], Sequence[CommandName]] | None = None
    """The commands that the scheduler ever gives in a scenario: nothing else asks it for a decision."""
    interception_us: float = 0.0
    """Host time that each decision takes besides the scenario's (>= 0), as the way of intercepting launches costs."""
    graphs: Graphs = "units"
    """``opened``: the scheduler sees and launches the kernels inside of CUDA graphs. Tenants get streams for their
    branches, before the scheduler's own."""
    capture: Capture | None = None
    """What is launched between two synchronisations becomes one CUDA graph, at this cost; streams keep their order."""
    window: Callable[[KernelWindow | None, GpuSpec], KernelWindow | None] | None = None
    """The window of launches, by the scenario's window and the GPU; ``None`` of it: streams keep their order."""
    task_us: float | None = None
    """All kernels are tasks of one that stays on the GPU (persistent threads); to get one takes so long (>= 0)."""
    stream_k: bool = False
    """Matrix products whose tiles others need, or that need tiles, are divided evenly between all slots
    (:mod:`gpusched_env.scenarios.adapting`)."""
    masks: bool = False
    """The SMs of a launch are written into the launch, by no interface that the driver documents: confining takes no
    host time (Bakita and Anderson, *Hardware Compute Partitioning on NVIDIA GPUs*, RTAS 2023)."""
    streams: Callable[[Scenario, GpuSpec], Sequence[Mask | None]] | None = None
    """Streams of the scheduler's own instead of the scenario's, from scenario and GPU: the SMs of each
    (:attr:`Stream.mask <gpusched_env.scenarios.tenant_program.Stream.mask>`), or ``None``. They are allocated
    beforehand: what is launched into one is confined at no cost, but where a launch waits for one of another stream
    that costs ``event_latency_us``."""
    rho: float | None = None
    """How throttled processes on the CPU's cores are charged (:attr:`CpuCores.rho
    <gpusched_env.workload.cores.spec.CpuCores.rho>`, 0 to 1000): 0 is CFS, 1 and 3 are TFS-1 and TFS-3."""
    hardware: bool = False
    """The scheduler needs hardware that no GPU of today has, and is no baseline for a training."""

    def __new__(cls, **given: Any) -> SetUp:
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise InputError(f"SetUp has no field {name!r}; {did_you_mean(name, known)}")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        if self.contexts is not None and self.contexts not in get_args(Contexts):
            raise InputError(f"SetUp: contexts is {self.contexts!r}; {did_you_mean(self.contexts, get_args(Contexts))}")
        if self.graphs not in get_args(Graphs):
            raise InputError(f"SetUp: graphs is {self.graphs!r}, must be 'units' or 'opened'")
        if self.slice_us is not None and not self.slice_us >= LEAST_SLICE_US:
            raise InputError(f"SetUp: slice_us is {self.slice_us}, must be at least {LEAST_SLICE_US:g}")
        if not self.interception_us >= 0.0:
            raise InputError(
                f"SetUp: interception_us is {self.interception_us}, must be at least 0: deciding takes host time"
            )
        if self.rho is not None and not 0.0 <= self.rho <= 1e3:
            raise InputError(f"SetUp: rho is {self.rho}, must be 0 to 1000")
        for command in self.commands:
            if command not in get_args(CommandName):
                raise InputError(f"SetUp: no command {command!r}; {did_you_mean(command, get_args(CommandName))}")


PLAIN = SetUp()
"""The set-up of a scheduler that asks for nothing."""


def set_up_of(scheduler: object) -> SetUp:
    """What a scheduler, or a class of schedulers, asks for; :data:`PLAIN` where it says nothing.

    Raises:
        InputError: its ``set_up`` is something else; or its class has one by another name, or fields of one as
            attributes, which nobody would read.
    """
    kind = scheduler if isinstance(scheduler, type) else type(scheduler)
    declared = getattr(scheduler, "set_up", PLAIN)
    if not isinstance(declared, SetUp):
        raise InputError(f"{kind.__name__}.set_up is {declared!r}, must be a SetUp")
    attributes = {name: value for base in kind.__mro__ for name, value in vars(base).items()}
    for field in fields(SetUp):
        if field.name in attributes:
            raise InputError(f"nobody reads {kind.__name__}.{field.name}; say set_up = SetUp({field.name}=...)")
    for name, value in attributes.items():
        if isinstance(value, SetUp) and name != "set_up":
            raise InputError(f"nobody reads {kind.__name__}.{name}; call it set_up")
    return declared


def problem_for(scheduler: object, problem: Problem) -> Problem:
    """``problem`` as ``scheduler`` asks for it, always the same one.

    Raises:
        InputError: as from :func:`set_up_of` and :func:`set_up`.
    """
    return set_up(problem, set_up_of(scheduler))


def set_up(problem: Problem, needs: SetUp) -> Problem:
    """``problem`` as ``needs`` say, always the same one; ``problem`` itself where it is so.

    What changes programs is done first, to the problem whose streams keep their order, and the window last.

    Raises:
        InputError: a tenant's program cannot be captured, or has no place in a window; a mask that the GPU has not, or
            masked streams together with a window.
    """
    window = problem.window if needs.window is None else needs.window(problem.window, problem.gpu)
    in_order = changed = problem.unwindowed or problem
    if needs.task_us is not None:
        changed = changed.once(persistent_threads, needs.task_us)
    if needs.stream_k:
        changed = changed.once(stream_k)
    if needs.capture is not None:
        changed, window = changed.once(captured_graphs, needs.capture), None
    if needs.graphs == "opened" and _has_graphs(changed):
        changed = changed.once(opened_graphs)
    if needs.streams is not None:
        masks = _masks(needs.streams, problem, window)
        if masks != tuple(stream.mask for stream in changed.streams if stream.tenant < 0):
            changed = changed.once(masked_streams, masks)
    before, after = _Terms.of(changed), _asked(_Terms.of(changed), needs, problem.scenario)
    if after != before:
        changed = changed.once(_on_terms, after)
    return problem if changed is in_order and window == problem.window else with_window(changed, window)


def _masks(
    streams: Callable[[Scenario, GpuSpec], Sequence[Mask | None]], problem: Problem, window: KernelWindow | None
) -> tuple[Mask | None, ...]:
    """What :attr:`SetUp.streams` says of a problem."""
    if window is not None:
        raise InputError("SetUp: a window has streams of its own, which have no masks; leave out streams or window")
    sms, masks = problem.gpu.sms, tuple(streams(problem.scenario, problem.gpu))
    for mask in masks:
        if mask is not None and not (0 <= mask[0] < sms and 1 <= mask[1] <= sms):
            raise InputError(
                f"SetUp: streams has the mask {mask}; on {problem.gpu.name} its first SM must be in 0..{sms - 1}, and "
                f"their number in 1..{sms}"
            )
    # All SMs are no confinement, in whatever order they are named.
    return tuple((0, sms) if mask is not None and mask[1] == sms else mask for mask in masks)


class _Terms(NamedTuple):
    """What a set-up changes of a problem without touching its programs."""

    contexts: Contexts
    host_contention: float
    waiting_contention: float
    commands: tuple[CommandName, ...]
    decision_us: float
    slice_us: float
    partition_change_us: float
    cores: CpuCores | None

    @classmethod
    def of(cls, problem: Problem) -> _Terms:
        scenario, timing = problem.scenario, problem.gpu.timing
        return cls(
            scenario.contexts, scenario.host_contention, scenario.waiting_contention, scenario.commands,
            scenario.decision_us, timing.slice_us, timing.partition_change_us, scenario.cores,
        )  # fmt: skip


def _asked(terms: _Terms, needs: SetUp, scenario: Scenario) -> _Terms:
    commands = (*terms.commands, *(command for command in needs.commands if command not in terms.commands))
    if needs.uses is not None:
        used = needs.uses(msgspec.structs.replace(scenario, commands=commands))
        commands = tuple(command for command in commands if command in used)
    return _Terms(
        contexts=needs.contexts or terms.contexts,
        host_contention=0.0 if needs.own_processes else terms.host_contention,
        waiting_contention=0.0 if needs.own_processes else terms.waiting_contention,
        commands=commands,
        decision_us=terms.decision_us + needs.interception_us,
        slice_us=needs.slice_us or terms.slice_us,
        partition_change_us=0.0 if needs.masks else terms.partition_change_us,
        cores=terms.cores if needs.rho is None else terms.cores and msgspec.structs.replace(terms.cores, rho=needs.rho),
    )


def _on_terms(problem: Problem, terms: _Terms) -> Problem:
    asked = terms._asdict()
    timing = {name: asked.pop(name) for name in ("slice_us", "partition_change_us")}
    return replace(
        problem,
        scenario=msgspec.structs.replace(problem.scenario, **asked),
        gpu=msgspec.structs.replace(problem.gpu, timing=msgspec.structs.replace(problem.gpu.timing, **timing)),
    )


def _has_graphs(problem: Problem) -> bool:
    return any(op.nodes for program in problem.programs for job in program.variants for op in job)
