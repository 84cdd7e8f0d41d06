"""SPAWN: Tang, Pattnaik, Jiang, Kayiran, Jog, Pai, Ibrahim, Kandemir, Das, *Controlled Kernel Launch for Dynamic
Parallelism in GPUs* (HPCA 2017), Algorithm 1.

The GPU is a queue: child blocks are jobs, the SMs one server, first come, first served. A child is launched if launch
overhead, the blocks before it and its own take no longer than the work in its thread:

    A x + b + (its blocks + blocks in the system) × block time / running blocks  <=  work × warp time

What the paper leaves open is a parameter, and the default is what comes nearest to the launches that it counts (Figure
18, not its speed-ups); ``docs/spawn.md`` has what each reading is worth.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import numpy as np

from gpusched_env.baselines.ranges import Choice, Ranges
from gpusched_env.errors import InputError
from gpusched_env.games.child_launches.device import SERIALISE, SPAWN, Decision, LaunchKnowledge, RequestView

CAPACITY: Final = 65_536
"""Child blocks in the system at most: the queue of a Kepler."""


class SpawnScheduler:
    """SPAWN: a child is launched if it is expected to end before its parent thread would be through."""

    ranges: ClassVar[Ranges] = {
        "block_time": Choice(("mean", "recent")),
        "running": Choice(("busy", "last", "window", "most")),
        "warp_time": Choice(("residency", "within-1024", "within-4096")),
        "lanes": Choice(("calling", "spawned", "one")),
        "cold_blocks": Choice((None, 0, 64, 512, 4096)),
    }

    def __init__(
        self,
        block_time: Literal["mean", "recent"] = "recent",
        running: Literal["busy", "last", "window", "most"] = "busy",
        warp_time: Literal["residency", "within-1024", "within-4096"] = "within-4096",
        lanes: Literal["calling", "spawned", "one"] = "calling",
        cold_blocks: int | None = None,
        capacity: int = CAPACITY,
    ) -> None:
        """
        Args:
            block_time: of child blocks that ended, the mean or an exponential mean.
            running: child blocks that run on average. The paper has the last window of 1,024 cycles, which may be 0:
                ``window``, then, is at least 1; ``last`` is the last window in which any ran, ``busy`` the mean of
                all those, ``most`` the last window or, if none ran, as many as the GPU holds.
            warp_time: of the child warps that ended in a window. The paper has it windowed, too, without saying how: if
                counters are reset every so many cycles, a warp counts as no more.
            lanes: ``x`` in the overhead: lanes of the warp that call, those that launch up to this one, or 1.
            cold_blocks: as long as no child block has ended, launch while no more than these are in the system;
                ``None``: launch everything, as in the paper.
            capacity: child blocks in the system, at most.

        Raises:
            InputError: an option has another value.
        """
        for name, value, known in (
            ("block_time", block_time, ("mean", "recent")),
            ("running", running, ("busy", "last", "window", "most")),
            ("warp_time", warp_time, ("residency", "within-1024", "within-4096")),
            ("lanes", lanes, ("calling", "spawned", "one")),
        ):
            if value not in known:
                raise InputError(f"spawn: {name} is {value!r}, must be one of {', '.join(known)}")
        self.block_time, self.running, self.warp_time, self.lanes = block_time, running, warp_time, lanes
        self.cold_blocks, self.capacity = cold_blocks, capacity
        self._per_child_ps = self._per_call_ps = 0.0
        self._most = 1.0

    def reset(self, knowledge: LaunchKnowledge, rng: np.random.Generator) -> None:
        """Take the launch overhead of the GPU."""
        machine = knowledge.machine
        costs = machine.launches
        self._per_child_ps = costs.per_child_cycles * machine.ps_per_cycle
        self._per_call_ps = costs.per_call_cycles * machine.ps_per_cycle
        self._most = float(machine.gpu.sms * machine.gpu.limits.blocks)

    def decide(self, view: RequestView) -> Decision:
        """The decision by the paper's Algorithm 1."""
        blocks = view.blocks + view.inside
        if blocks > self.capacity:
            return SERIALISE
        if view.blocks_ended == 0:
            return SPAWN if self.cold_blocks is None or blocks <= self.cold_blocks else SERIALISE
        calls = {"calling": view.calls, "spawned": view.spawned + 1, "one": 1}[self.lanes]
        block_ps = view.block_ps if self.block_time == "mean" else view.recent_block_ps
        warp_ps = {"residency": view.warp_ps, "within-1024": view.warp_1024_ps, "within-4096": view.warp_4096_ps}
        child_ps = self._per_child_ps * calls + self._per_call_ps + blocks * block_ps / self._running(view)
        return SPAWN if child_ps <= view.work * warp_ps[self.warp_time] else SERIALISE

    def _running(self, view: RequestView) -> float:
        if self.running == "busy":
            return view.busy_running or 1.0
        if self.running == "last":
            return view.last_running or 1.0
        if self.running == "window":
            return max(view.window_running, 1.0)
        return view.window_running or self._most
