"""Small problems of child launches to solve by hand: a cycle is a nanosecond, and nothing slows anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from msgspec.structs import replace as altered

from gpusched_env.games.child_launches.device import SERIALISE, SPAWN, LaunchDevice, RequestView
from gpusched_env.games.child_launches.experiments.fuzz_cases import HostKernel, LaunchCase, Request, ThreadWork
from gpusched_env.games.child_launches.hardware.warp_machine import LaunchCosts, LoopBody, WarpMachine
from gpusched_env.games.child_launches.problem import LaunchProblem
from gpusched_env.games.child_launches.workload.launches import BlockShape
from gpusched_env.hardware.specs import GpuSpec, load_gpu

NOTHING_SLOWS = 1e12
PS = 1000
"""A cycle."""
COSTS = LaunchCosts(per_child_cycles=5, per_call_cycles=20, dispatch_cycles=50)
BODY = LoopBody(chain=0, dependent=1, instructions=0, parent_lines=0, child_lines=0)
"""A turn takes 10 cycles, a prologue 100."""


def gpu(sms: int = 1, threads: int = 2048, blocks: int = 16) -> GpuSpec:
    k20m = load_gpu("k20m")
    return altered(k20m, sms=sms, limits=altered(k20m.limits, threads=threads, warps=threads // 32, blocks=blocks))


MACHINE = WarpMachine(
    gpu=gpu(),
    clock_mhz=1000,
    gpu_lines=NOTHING_SLOWS,
    sm_lines=NOTHING_SLOWS,
    dram_lines=NOTHING_SLOWS,
    l2_cycles=10,
    dram_cycles=0,
    step_cycles=10,
    issue_width=NOTHING_SLOWS,
    prologue_cycles=100,
    prologue_lines=0,
    launches=COSTS,
)


def thread(base: int = 0, *requests: int | Request) -> ThreadWork:
    """Requests are children of one thread, of so many iterations."""
    return ThreadWork(
        base=base, requests=tuple(r if isinstance(r, Request) else Request(items=1, iterations=r) for r in requests)
    )


def kernel(*threads: ThreadWork, block: int = 32, child_block: int = 32) -> HostKernel:
    return HostKernel(block=BlockShape(block, 8), child_block=BlockShape(child_block, 8), threads=threads)


def toy(*kernels: HostKernel, machine: WarpMachine = MACHINE, body: LoopBody = BODY, **options: Any) -> LaunchProblem:
    """A problem; options are those of :class:`LaunchProblem` and of :class:`LaunchCosts`."""
    costs = {name: options.pop(name) for name in [*options] if name in LaunchCosts.__dataclass_fields__}
    machine = replace(machine, launches=replace(machine.launches, **costs))
    return LaunchCase(machine=machine, body=body, kernels=kernels, **options).problem()


def run(device: LaunchDevice, problem: LaunchProblem, decisions: Iterable[bool] | None = None) -> list[RequestView]:
    """Run to the end; what was asked.

    ``decisions``: whether to launch, of one request after the other; those that are not said are not, but all, if
    nothing is said.
    """
    given = iter(decisions or ())
    views = []
    view = device.reset(problem)
    while view is not None:
        views.append(view)
        device.apply(SPAWN if next(given, decisions is None) else SERIALISE)
        view = device.advance()
    return views


def column(device: LaunchDevice, name: str) -> list[float]:
    """A time of all launches, in cycles."""
    return [ps / PS for ps in device.launches[f"{name}_ps"].tolist()]
