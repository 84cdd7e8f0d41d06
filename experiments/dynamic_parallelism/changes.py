"""What-if changes of problems of dynamic parallelism, for tables of what depends on what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from gpusched_env.dynamic_parallelism.problem import LaunchProblem

Change = Callable[[LaunchProblem], LaunchProblem]


def machine(**factors: float) -> Change:
    """Fields of the machine, or of its launches, times a factor; infinite capacities are no limit."""

    def change(problem: LaunchProblem) -> LaunchProblem:
        own, launches = problem.machine, problem.machine.launches
        fields = {name: getattr(own, name) * factor for name, factor in factors.items() if hasattr(own, name)}
        costs = {name: getattr(launches, name) * factor for name, factor in factors.items() if name not in fields}
        return problem.on(replace(own, launches=replace(launches, **costs), **fields))

    return change


def body(**factors: float) -> Change:
    """Counts of the loop times a factor."""
    return lambda problem: problem.changed(
        body=replace(problem.body, **{name: getattr(problem.body, name) * f for name, f in factors.items()})
    )


def block_slots(problem: LaunchProblem) -> LaunchProblem:
    """64 blocks an SM."""
    gpu = problem.machine.gpu
    limits = msgspec.structs.replace(gpu.limits, blocks=64)
    return problem.on(replace(problem.machine, gpu=msgspec.structs.replace(gpu, limits=limits)))


def child_block(threads: int) -> Change:
    """Children's blocks of so many threads."""

    def change(problem: LaunchProblem) -> LaunchProblem:
        kernels = [
            replace(kernel, child_block=replace(kernel.child_block, threads=threads))
            for kernel in problem.benchmark.kernels
        ]
        return problem.changed(benchmark=replace(problem.benchmark, kernels=tuple(kernels)))

    return change
