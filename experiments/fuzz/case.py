"""A case: everything that one fuzzed episode depends on, as plain data that is readable and can be stored."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from gpusched_env.experiments.fuzz.moves import Move
from gpusched_env.experiments.fuzz.moves.move import Sms
from gpusched_env.experiments.fuzz.stored import Counterexample, Share, Stored
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.scenarios.building import build_problem, load_workload
from gpusched_env.scenarios.launching import Capture
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import CommandName, Scenario, make_scenario
from gpusched_env.scenarios.set_up import SetUp, set_up
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.workload.workload import Workload

FORMAT: Final = "gpusched-fuzz/2"

Spread = Annotated[float, Meta(ge=0, le=0.5)]
"""A uniform spread of more would leave blocks without work."""


class RandomCommands(Stored, frozen=True, kw_only=True, tag="random-commands", tag_field="kind"):
    """Random legal commands, and some illegal ones."""

    seed: int
    weights: dict[CommandName | Literal["wait"], float] = msgspec.field(default_factory=dict)
    """How often each command is given; one that is not named: as often as its move says, ``wait`` once."""
    illegal: float = 0.1
    """The weight of commands that are often not legal."""
    oldest: Share = 0.0
    """Share of launches of the oldest kernel that can be launched; of the others any is as likely."""
    confined: Share = 0.2
    """Share of launches with a partition of their own."""
    partial: Share = 0.6
    """Share of saves that are confined to some SMs."""
    urgent: Share = 0.3
    """Share of launches with a stream priority of their own, of which as many are 0 as any other."""
    elsewhere: Share = 0.2
    """Share of launches into a stream of the scheduler's own, where there is one."""
    bounded: Share = 0.4
    """Share of waits with a limit, where something runs."""
    wait_us: float = 20.0
    """Typical limit of a wait."""


class Baseline(Stored, frozen=True, kw_only=True, tag="baseline", tag_field="kind"):
    """A shipped scheduler by name."""

    name: str


class RandomActions(Stored, frozen=True, kw_only=True, tag="random-actions", tag_field="kind"):
    """Random actions of the environment."""

    seed: int
    wait: Share = 0.2
    """Share of waits where something else is legal."""
    launch: Share = 0.5
    """Share of launches among the rest, or of waits where nothing can be launched; of what is left, all legal actions
    are as likely."""
    illegal: Share = 0.05
    """Share of actions drawn from all, legal or not."""


class Script(Stored, frozen=True, kw_only=True, tag="script", tag_field="kind"):
    """A player that makes given moves, then always the same one."""

    moves: tuple[Move, ...] = ()
    then: Literal["wait", "launch"] = "wait"
    """``launch``: whatever is launchable, at once."""


Player = RandomCommands | Baseline | RandomActions | Script


class EnvOptions(Stored, frozen=True, kw_only=True):
    """Play through the Gymnasium environment."""

    slots: int
    running_slots: int
    wait_us: float
    views: bool = False
    """Drive the compiled device through views and commands, as any other device, instead of in compiled code."""


class SnapshotPlan(Stored, frozen=True, kw_only=True):
    """Go back to an earlier point after the end, and play the rest again."""

    step: int
    """Commands before the snapshot."""
    fresh: bool = False
    """Restore it (pickled) on a new device instead of the same one."""


class Case(Stored, frozen=True, kw_only=True):
    """A case: one episode, and how it is played."""

    scenario: Scenario
    gpu: GpuSpec | None = None
    """The GPU in place of the one that the scenario names."""
    workloads: dict[str, Workload] = msgspec.field(default_factory=dict)
    """The workloads of the scenario's tenants that are not shipped ones."""
    spreads: tuple[Spread, ...] = ()
    """Relative deviations of work between the blocks of a kernel, of one kernel of the problem after the other, counted
    round; recordings have none."""
    capture: Capture | None = None
    """Costs of capture, where what is launched between two synchronisations becomes a graph; ``None``: it does not."""
    task_us: Annotated[float, Meta(ge=0)] | None = None
    """Time to take a block from the queue, where kernels run as persistent threads; ``None``: they do not."""
    masks: tuple[Sms | None, ...] = ()
    """SMs of streams of the scheduler's own, instead of those that the scenario has; ``None``: its tenant's."""
    seed: int = 0
    """The seed of the episode."""
    player: Player
    env: EnvOptions | None = None
    record: Detail = "jobs"
    most_commands: Annotated[int, Meta(ge=0)] = 3000
    """Commands after which the episode is left."""
    before: Annotated[int, Meta(ge=0)] = 0
    """Commands of another episode that the devices run first and leave unfinished."""
    snapshot: SnapshotPlan | None = None

    def problem(self) -> Problem:
        """The case's problem.

        Raises:
            InputError: it is not a valid one.
        """
        scenario = make_scenario(msgspec.to_builtins(self.scenario), f"case {self.scenario.summary}")
        problem = build_problem(msgspec.structs.replace(scenario, window=None), gpu=self.gpu, workloads=self.workloads)
        kernels = list(problem.kernels)
        for row, spread in zip(range(len(kernels)), itertools.cycle(self.spreads), strict=False):
            block = kernels[row].block.copy()
            block["spread"] = spread
            kernels[row] = replace(kernels[row], block=block)
        problem = replace(problem, kernels=tuple(kernels))
        needs = SetUp(
            task_us=self.task_us,
            capture=self.capture,
            window=lambda offered, gpu: scenario.window,
            streams=(lambda offered, gpu: self.masks) if self.masks else None,
        )
        return set_up(problem, needs)

    def gpu_spec(self) -> GpuSpec:
        """The GPU."""
        return self.gpu if self.gpu is not None else load_gpu(self.scenario.gpu)

    def self_contained(self) -> Case:
        """The same case with its GPU and all workloads spelled out."""
        named = {tenant.workload for tenant in self.scenario.tenants}
        workloads = {name: self.workloads.get(name) or load_workload(name) for name in sorted(named)}
        return msgspec.structs.replace(self, gpu=self.gpu_spec(), workloads=workloads)


class KernelCounterexample(Counterexample, frozen=True, kw_only=True):
    """A stored case."""

    format: Literal["gpusched-fuzz/2"] = FORMAT
    case: Case
