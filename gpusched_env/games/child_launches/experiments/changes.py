"""What-if changes of problems of dynamic parallelism, for tables of what depends on what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.child_launches.problem import LaunchProblem
from gpusched_env.games.child_launches.workload.launches import ParentKernel, Requests, Threads

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


def mapped(order_of: Callable[[int], NDArray[np.int64]]) -> Change:
    """Threads of the last kernel take each other's work.

    Args:
        order_of: of the number of its threads, whose work each thread takes, shape ``(threads,)``.
    """

    def change(problem: LaunchProblem) -> LaunchProblem:
        *before, last = problem.benchmark.kernels
        kernels = (*before, reordered(last, order_of(len(last.threads.base))))
        return problem.changed(benchmark=replace(problem.benchmark, kernels=kernels))

    return change


def reordered(kernel: ParentKernel, order: NDArray[np.int64]) -> ParentKernel:
    """``kernel``, whose thread ``i`` has the work that ``order[i]`` had; requests without nested ones only."""
    threads, requests = kernel.threads, kernel.threads.requests
    if requests is None:
        return replace(kernel, threads=Threads(threads.base[order]))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    thread = place[requests.thread]
    rows = np.argsort(thread, kind="stable")
    if requests.children is None:
        assert requests.iterations is not None
        moved = Requests(thread[rows], requests.items[rows], requests.iterations[rows])
    else:
        first = requests.first_child
        own = np.concatenate([np.arange(first[row], first[row + 1]) for row in rows])
        moved = Requests(thread[rows], requests.items[rows], children=Threads(requests.children.base[own]))
    return replace(kernel, threads=Threads(threads.base[order], moved))
