"""The paper's runs: benchmarks under schedulers, on the paper's machine and on variations of it."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any

from gpusched_env.games.child_launches.baselines.registry import make_launch_scheduler
from gpusched_env.games.child_launches.baselines.threshold import Threshold
from gpusched_env.games.child_launches.devices import make_launch_device
from gpusched_env.games.child_launches.experiments.changes import Change, block_slots, body, child_block, machine
from gpusched_env.games.child_launches.hardware.warp_machine import H200
from gpusched_env.games.child_launches.papers.spawn.maps import FEW, MAPS, maps_of
from gpusched_env.games.child_launches.problem import LaunchProblem, launch_problem
from gpusched_env.games.child_launches.scheduler import LaunchScheduler, run_application
from gpusched_env.games.child_launches.workload.suite import benchmark

FLAT, DP, OFFLINE, SPAWN, DTBL, AGGREGATION = "flat", "baseline-dp", "offline-search", "spawn", "dtbl", "aggregation"
QUICK = "offline-search(points=9)"
BARS = {"dp": DP, "offline": OFFLINE, "spawn": SPAWN}
"""The paper's bars."""
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
"""Of SPAWN that the paper leaves open."""
SHARE = "share "
OF_OFFLOADABLE = ("GC-citation", "GC-graph500", "MM-small", "MM-large")
"""Whose published shares are read as shares of what can be offloaded."""


@functools.cache
def published() -> dict[str, Any]:
    """The paper's figures, by benchmark (``data/published/spawn.json``)."""
    text = (resources.files("gpusched_env.data") / "published" / "spawn.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)["benchmarks"]
    return found


def _both(what: str, change: Callable[..., Change], *names: str) -> dict[str, Change]:
    return {f"{what} x {factor:g}": change(**dict.fromkeys(names, factor)) for factor in (0.5, 2.0)}


SENSITIVITY: dict[str, Change] = {
    **_both("latency", machine, "l2_cycles", "dram_cycles", "step_cycles"),
    **_both("lines of memory", body, "parent_lines", "child_lines"),
    **_both("instructions", body, "instructions"),
    **_both("lines of the GPU a cycle", machine, "gpu_lines"),
    **_both("lines of an SM a cycle", machine, "sm_lines"),
    **_both("DRAM latency", machine, "dram_cycles"),
    **_both("prologue", machine, "prologue_cycles"),
    **_both("dispatch", machine, "dispatch_cycles"),
    **_both("A", machine, "per_child_cycles"),
    **_both("b", machine, "per_call_cycles"),
}
MECHANISMS: dict[str, Change] = {
    "no launch cost (A = b = dispatch = 0)": machine(per_child_cycles=0, per_call_cycles=0, dispatch_cycles=0),
    "no cost a child (A = 0)": machine(per_child_cycles=0),
    "128 hardware queues": machine(hardware_queues=4),
    "no limit of hardware queues": machine(hardware_queues=1 << 20),
    "64 blocks an SM": block_slots,
    "no limits of memory": machine(gpu_lines=1e9, sm_lines=1e9),
    "no limits of memory and issue": machine(gpu_lines=1e9, sm_lines=1e9, issue_width=1e9),
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
    """Of one run."""

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
    """Of :data:`VARIATIONS`."""

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
        whole = made.offloadable if self.benchmark in OF_OFFLOADABLE else 1.0
        return Threshold(made.threshold_of(float(self.scheduler.removeprefix(SHARE)) / 100 * whole))


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
    for name, few in FEW.items():
        found += [SpawnRun(name, scheme, of) for of in maps_of(name) for scheme in (FLAT, DP, SHARE + few, SPAWN)]
    return found
