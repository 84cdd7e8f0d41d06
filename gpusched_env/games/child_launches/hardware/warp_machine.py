"""A GPU at the granularity of warps: its blocks' room, its memory, and what launches cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from gpusched_env.errors import InputError
from gpusched_env.games.child_launches.hardware.launch_costs import HOPPER, KEPLER, LaunchCosts
from gpusched_env.games.child_launches.hardware.warps import cycles_to_ps
from gpusched_env.hardware.specs import GpuSpec, load_gpu


@dataclass(frozen=True, slots=True)
class LoopBody:
    """One turn of an application's loop in a lane, counted from its source."""

    chain: float
    """Loads whose address comes from another load of the turn: their latencies add up."""
    dependent: float
    """Arithmetic instructions one after another."""
    instructions: float
    """All instructions."""
    parent_lines: float
    """Lines of 128 bytes that a lane of a parent asks for: 1 where it walks through memory of its own."""
    child_lines: float
    """The same in a child kernel, whose lanes take neighbouring items: 1/32 where these lie side by side."""
    miss: float = 0.0
    """Share of lines that L2 has not (0 to 1)."""

    def __post_init__(self) -> None:
        for name in ("chain", "dependent", "instructions", "parent_lines", "child_lines"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise InputError(f"loop body: {name} is {getattr(self, name)}, must be at least 0")
        if self.chain + self.dependent <= 0.0:
            raise InputError("loop body: a turn takes no time; chain or dependent must be more than 0")
        if not 0.0 <= self.miss <= 1.0:
            raise InputError(f"loop body: miss is {self.miss}, must be between 0 and 1")


@dataclass(frozen=True, slots=True)
class LoopCosts:
    """A loop on a GPU."""

    iteration_cycles: float
    """One turn of a warp that is alone."""
    iteration_issue_cycles: float
    """Of its SM's schedulers, in the turn."""
    parent_lines: float
    """Lines a lane and turn, in units of those that hit L2."""
    child_lines: float


@dataclass(frozen=True)
class WarpMachine:
    """What a device at warp granularity needs to know of a GPU."""

    gpu: GpuSpec
    clock_mhz: float
    gpu_lines: float
    """Lines of 128 bytes a cycle that L2 serves all SMs together."""
    sm_lines: float
    """Lines a cycle that one SM gets."""
    dram_lines: float
    """Lines a cycle from DRAM."""
    l2_cycles: float
    """Latency of a load that L1 or L2 serves, on average."""
    dram_cycles: float
    """More latency where neither has it."""
    step_cycles: float
    """Latency of an arithmetic instruction."""
    issue_width: float
    """Warp instructions that an SM issues a cycle."""
    prologue_cycles: float
    """What a warp does before its loop: reads parameters, computes its index, loads what it is about."""
    prologue_lines: float
    launches: LaunchCosts

    def __post_init__(self) -> None:
        for name in (
            *("clock_mhz", "gpu_lines", "sm_lines", "dram_lines", "l2_cycles", "step_cycles", "issue_width"),
            "prologue_cycles",
        ):
            if not 0.0 < getattr(self, name) < math.inf:
                raise InputError(f"machine: {name} is {getattr(self, name)}, must be more than 0")
        for name in ("dram_cycles", "prologue_lines"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise InputError(f"machine: {name} is {getattr(self, name)}, must be at least 0")

    @cached_property
    def ps_per_cycle(self) -> float:
        return 1e6 / self.clock_mhz

    @property
    def prologue_issue_cycles(self) -> float:
        """Of an SM's schedulers, in a warp's prologue: one instruction after another."""
        return self.prologue_cycles / (self.step_cycles * self.issue_width)

    def ps(self, cycles: float) -> int:
        """Cycles as the nearest whole number of picoseconds."""
        return cycles_to_ps(cycles, self.ps_per_cycle)

    def costs(self, body: LoopBody) -> LoopCosts:
        """What a loop costs on this GPU.

        A line that L2 misses counts for as many as DRAM is slower than L2, where that is more than one.
        """
        missed = max(1.0, body.miss * self.gpu_lines / self.dram_lines)
        latency = body.chain * (self.l2_cycles + body.miss * self.dram_cycles) + body.dependent * self.step_cycles
        return LoopCosts(
            latency, body.instructions / self.issue_width, body.parent_lines * missed, body.child_lines * missed
        )


SPAWN_KEPLER: Final = WarpMachine(
    gpu=load_gpu("k20m"),
    clock_mhz=1400.0,
    gpu_lines=1.5,
    sm_lines=0.25,
    dram_lines=0.8,
    l2_cycles=100.0,
    dram_cycles=120.0,
    step_cycles=11.0,
    issue_width=2.0,
    prologue_cycles=1500.0,
    prologue_lines=4.0,
    launches=KEPLER,
)
"""The GPU that SPAWN simulates: 13 SMX at 1,400 MHz (Table I of the paper).

* 6 ports of 32 bytes a cycle at the crossbar are 1.5 lines, one at each SMX 0.25.
* 208 GB/s at 1.4 GHz, 70 % of it reached: 0.8 lines.
* 11 cycles an instruction, two schedulers: Kepler. L2: 100 cycles as a mean of hits in L1 and L2.
* Prologue and dispatch are together what a kernel with nothing to do holds its hardware queue for. That this takes
  about 4,000 cycles follows from benchmarks that are bound by the 32 queues; how it is split matters little.
"""

H200: Final = WarpMachine(
    gpu=load_gpu("h200-sxm"),
    clock_mhz=1980.0,
    gpu_lines=21.7,
    sm_lines=0.5,
    dram_lines=17.0,
    l2_cycles=530.0,
    dram_cycles=300.0,
    step_cycles=8.5,
    issue_width=4.0,
    prologue_cycles=2000.0,
    prologue_lines=4.0,
    launches=HOPPER,
)
"""An H200, for what child launches cost today.

* Latencies are read off single warps of breadth-first search, hash join and Mandelbrot (310 to 390 ns an iteration of
  the first two, 34 ns of the last) in ``data/measurements/h200/dynamic_parallelism.json``.
* 64 bytes a cycle at each SM, 5.5 TB/s from L2 (published microbenchmarks of Hopper), 4.8 TB/s of DRAM, 90 % reached.
* Prologue: 1 us, an estimate; a kernel with nothing to do takes 2.8 us with its launch.
"""
