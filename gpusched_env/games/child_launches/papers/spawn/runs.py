"""The paper's runs: benchmarks under schedulers, on the paper's machine and on variations of it; what-if changes of
problems; and maps of threads to work, which the paper does not give.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.data import stored
from gpusched_env.games.child_launches.baselines.registry import make_launch_scheduler
from gpusched_env.games.child_launches.baselines.threshold import Threshold
from gpusched_env.games.child_launches.devices import make_launch_device
from gpusched_env.games.child_launches.hardware.warp_machine import H200
from gpusched_env.games.child_launches.problem import LaunchProblem, launch_problem
from gpusched_env.games.child_launches.scheduler import LaunchScheduler, run_application
from gpusched_env.games.child_launches.workload.catalogue import whole_of
from gpusched_env.games.child_launches.workload.launches import LaunchRequests, ParentKernel, Threads
from gpusched_env.games.child_launches.workload.suite import benchmark

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
    """The change to children's blocks of so many threads."""

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
        moved = LaunchRequests(thread[rows], requests.items[rows], requests.iterations[rows])
    else:
        first = requests.first_child
        own = np.concatenate([np.arange(first[row], first[row + 1]) for row in rows])
        moved = LaunchRequests(thread[rows], requests.items[rows], children=Threads(requests.children.base[own]))
    return replace(kernel, threads=Threads(threads.base[order], moved))


WARP: Final = 32
Order = Callable[[int], NDArray[np.int64]]
MAPPED_BENCHMARKS: Final = {"Mandel": "28", "JOIN-uniform": "0", "JOIN-gaussian": "10"}
"""Benchmarks whose maps are tried, and the share (percent) of Offline-Search (bars of Figure 15 found in Figure 5)."""


def _square(rows: int, columns: int) -> Order:
    """Patches of so many tiles of a square image, one after the other."""

    def order(threads: int) -> NDArray[np.int64]:
        side = round(threads**0.5)
        tiles = np.arange(threads).reshape(side // rows, rows, side // columns, columns)
        return tiles.swapaxes(1, 2).ravel()

    return order


def _shuffled(threads: int) -> NDArray[np.int64]:
    return np.random.default_rng(0).permutation(threads)


def _far_apart(threads: int) -> NDArray[np.int64]:
    """Lanes of a warp lie a 32nd of the work apart."""
    whole = threads // WARP * WARP
    return np.concatenate([np.arange(whole).reshape(WARP, -1).T.ravel(), np.arange(whole, threads)])


def _warps_shuffled(threads: int) -> NDArray[np.int64]:
    whole = threads // WARP * WARP
    warps = np.random.default_rng(0).permutation(whole // WARP)
    return np.concatenate([np.arange(whole).reshape(-1, WARP)[warps].ravel(), np.arange(whole, threads)])


ANY: Final[dict[str, Change]] = {
    "lanes far apart": mapped(_far_apart),
    "warps shuffled": mapped(_warps_shuffled),
    "threads shuffled": mapped(_shuffled),
}
OF_IMAGES: Final[dict[str, Change]] = {
    "a warp 4 x 8 tiles": mapped(_square(4, 8)),
    "a block 8 x 16 tiles": mapped(_square(8, 16)),
}
MAPS: Final = {**OF_IMAGES, **ANY}


def maps_of(benchmark: str) -> dict[str, Change]:
    """Maps that are tried for a benchmark of :data:`MAPPED_BENCHMARKS`."""
    return MAPS if benchmark == "Mandel" else ANY


FLAT, DP, OFFLINE, SPAWN, DTBL, AGGREGATION = "flat", "baseline-dp", "offline-search", "spawn", "dtbl", "aggregation"
QUICK = "offline-search(points=9)"
BARS = {"dp": DP, "offline": OFFLINE, "spawn": SPAWN}
"""The paper's bars, by their names here."""
CHOICES = {
    "block time: mean of all": "spawn(block_time=mean)",
    "warp time: at most 1,024 cycles": "spawn(warp_time=within-1024)",
    "warp time: all of it": "spawn(warp_time=residency)",
    "block time: mean of all, warp time: all of it": "spawn(block_time=mean,warp_time=residency)",
    "running blocks: the last window, at least 1": "spawn(running=window)",
    "running blocks: the last window in which any ran": "spawn(running=last)",
    "running blocks: a full GPU, if none ran": "spawn(running=most)",
    "lanes: those that launch so far": "spawn(lanes=spawned)",
    "lanes: 1": "spawn(lanes=one)",
    "cold start: 208 blocks at most": "spawn(cold_blocks=208)",
}
"""Choices of SPAWN that the paper leaves open."""
SHARE = "share "


def published() -> Any:
    """The paper's figures, by benchmark."""
    return stored("published", "spawn.json")["benchmarks"]


def _both(what: str, change: Callable[..., Change], *names: str) -> dict[str, Change]:
    return {f"{what} x {factor:g}": change(**dict.fromkeys(names, factor)) for factor in (0.5, 2.0)}


SENSITIVITY: dict[str, Change] = {
    **_both("latency", machine, "l2_cycles", "dram_cycles", "step_cycles"),
    **_both("lines of memory", body, "parent_lines", "child_lines"),
    **_both("prologue", machine, "prologue_cycles"),
    **_both("b", machine, "per_call_cycles"),
}
MECHANISMS: dict[str, Change] = {
    "no launch cost (A = b = 0)": machine(per_child_cycles=0, per_call_cycles=0),
    "no limit of hardware queues": machine(hardware_queues=1 << 20),
    "64 blocks an SM": block_slots,
}
SHARED_QUEUE = "a queue a parent's block"
STRUCTURE: dict[str, Change] = {
    **{f"blocks of {threads}": child_block(threads) for threads in (32, 64, 128, 256)},
    SHARED_QUEUE: lambda problem: problem.changed(queue_of="block"),
}
TODAY = "H200"
VARIATIONS: dict[str, Change] = {
    "": lambda problem: problem,
    **MAPS,
    **SENSITIVITY,
    **MECHANISMS,
    **STRUCTURE,
    TODAY: lambda problem: problem.on(H200),
}


@dataclass(frozen=True, slots=True)
class SpawnOutcome:
    """What one run comes to."""

    cycles: float
    children: int
    occupancy: float
    """Warps on SMs over what they hold, mean over the run."""


@dataclass(frozen=True, slots=True)
class SpawnRun:
    """A benchmark under a scheduler."""

    benchmark: str
    scheduler: str
    """A name with options, or :data:`SHARE` and the percentage of the work that a static threshold offloads."""
    variation: str = ""
    """Name of the variation, one of :data:`VARIATIONS`."""

    def problem(self) -> LaunchProblem:
        """The benchmark as the variation has it."""
        return VARIATIONS[self.variation](problem_of(self.benchmark))

    def run(self, device: str) -> SpawnOutcome:
        run = run_application(self._scheduler(), self.problem(), make_launch_device(device))
        return SpawnOutcome(run.cycles, run.children, run.occupancy)

    def _scheduler(self) -> LaunchScheduler:
        if not self.scheduler.startswith(SHARE):
            return make_launch_scheduler(self.scheduler)
        made = problem_of(self.benchmark).benchmark
        return Threshold(made.threshold_of(float(self.scheduler.removeprefix(SHARE)) / 100 * whole_of(made)))


@functools.lru_cache(maxsize=16)
def problem_of(name: str) -> LaunchProblem:
    """A benchmark on the paper's machine."""
    return launch_problem(benchmark(name))


def all_cells() -> list[SpawnRun]:
    """Every run of a benchmark."""
    schemes = (FLAT, DP, OFFLINE, SPAWN, DTBL, AGGREGATION, *CHOICES.values())
    found: list[SpawnRun] = []
    for name, figures in published().items():
        found += [SpawnRun(name, scheme) for scheme in (*schemes, *(SHARE + share for share in figures["offload"]))]
        found += [
            SpawnRun(name, scheme, of) for of in (*SENSITIVITY, *MECHANISMS) for scheme in (FLAT, DP, QUICK, SPAWN)
        ]
        found += [SpawnRun(name, DP, of) for of in STRUCTURE]
        found += [SpawnRun(name, scheme, TODAY) for scheme in (FLAT, DP, QUICK, SPAWN)]
    for name, few in MAPPED_BENCHMARKS.items():
        found += [SpawnRun(name, scheme, of) for of in maps_of(name) for scheme in (FLAT, DP, SHARE + few, SPAWN)]
    return found
