"""A GPU at the granularity of warps: how warps that run on one SM slow each other, its blocks' room, its memory, and
what it costs a thread to launch a kernel.

Devices at the granularity of blocks use the laws of :mod:`gpusched_env.hardware.contention`, fitted on recordings of an
H100. Those need each kernel's profile; here an application is known by its loop alone, and what an SM holds changes
with every warp. So the law is the simplest that has the three limits of the Kepler that SPAWN (HPCA 2017) simulates:
all running warps of an SM progress at one common rate, ``1 / stretch``, and

    stretch = sqrt(1 + (traffic of the GPU / capacity)² + (traffic of the SM / capacity)² + (issue of the SM)²)

where traffic and issue are what the running warps would ask for if nobody slowed them. An SM is thus a clock that runs
slower the more it holds: a phase that takes ``d`` cycles alone ends when its SM's clock has gone on by ``d``.

Devices: :mod:`gpusched_env.games.child_launches.devices`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from gpusched_env.compiling import law
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec, load_gpu

DEMAND_UNIT: Final = 1.0 / (1 << 40)
"""Demands are whole multiples of this, so that sums do not depend on the order in which warps came and went."""
MOST_DEMAND: Final = 512.0
"""Most demand of a warp, far more than one can ask for: sums over 8,192 warps stay within 64 bits."""


@law
def cycles_to_ps(cycles: float, ps_per_cycle: float) -> int:
    """Core cycles as the nearest whole number of picoseconds."""
    return math.floor(cycles * ps_per_cycle + 0.5)


@law
def demand(amount: float, cycles: float) -> int:
    """``amount`` (lines, or issue cycles) in ``cycles`` as a rate, in :data:`DEMAND_UNIT` a cycle."""
    return math.floor(min(amount / cycles, MOST_DEMAND) / DEMAND_UNIT + 0.5)


@law
def stretch(gpu_lines: int, gpu_capacity: float, sm_lines: int, sm_capacity: float, issue: int) -> float:
    """Factor (>= 1) on the time of every running warp of an SM.

    Args:
        gpu_lines, sm_lines: demand of the running warps of the GPU and of this SM for lines of 128 bytes.
        gpu_capacity, sm_capacity: lines a cycle that can be served.
        issue: demand of the SM's warps for its schedulers; one is all that they have.
    """
    shared = gpu_lines * DEMAND_UNIT / gpu_capacity
    own = sm_lines * DEMAND_UNIT / sm_capacity
    slots = issue * DEMAND_UNIT
    return math.sqrt(1.0 + shared * shared + own * own + slots * slots)


@law
def clock_now(clock: float, since_ps: int, rate: float, now_ps: int) -> float:
    """An SM's clock (cycles) at ``now_ps`` if it showed ``clock`` at ``since_ps`` and ran at ``rate`` cycles a ps."""
    return clock + (now_ps - since_ps) * rate


@law
def time_of(target: float, clock: float, since_ps: int, rate: float, now_ps: int) -> int:
    """When an SM's clock shows ``target`` (ps), with ``clock``, ``since_ps`` and ``rate`` as in :func:`clock_now`:
    later than ``now_ps``."""
    return max(now_ps + 1, since_ps + math.ceil((target - clock) / rate))


Overflow = Literal["spill", "fail"]


@dataclass(frozen=True, slots=True)
class LaunchCosts:
    """Child launches as one generation of GPUs does them."""

    per_child_cycles: float
    """``A``: a warp whose lanes launch ``x`` children stalls ``A x + b`` cycles; its SM goes on with others."""
    per_call_cycles: float
    """Cycles ``b`` that a call stalls, however many children it launches."""
    dispatch_cycles: float
    """Cycles from when a child has a hardware queue until its first block can start."""
    interval_cycles: float = 0.0
    """Least time between two children that become ready: the throughput of launches."""
    hardware_queues: int = 32
    """Kernels that can have blocks running, the parent counted."""
    pool: int | None = None
    """Children that may wait to get a hardware queue; ``None``: as many as there are."""
    overflow: Overflow = "spill"
    """What happens beyond: the launch takes ``spill_cycles`` more, or fails, and its thread does the work itself."""
    spill_cycles: float = 0.0

    def __post_init__(self) -> None:
        for name in ("per_child_cycles", "per_call_cycles", "dispatch_cycles", "interval_cycles", "spill_cycles"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise InputError(f"launch costs: {name} is {getattr(self, name)}, must be at least 0")
        if self.hardware_queues < 2:
            raise InputError(f"launch costs: {self.hardware_queues} hardware queues; a parent and a child need 2")
        if self.pool is not None and self.pool < 1:
            raise InputError(f"launch costs: a pool of {self.pool}; must be at least 1, or None")
        if self.overflow not in ("spill", "fail"):
            raise InputError(f"launch costs: overflow is {self.overflow!r}, must be 'spill' or 'fail'")


KEPLER: Final = LaunchCosts(per_child_cycles=1721, per_call_cycles=20210, dispatch_cycles=0)
"""SPAWN (HPCA 2017), Table II, which has A and b from DTBL (ISCA 2015): ``cudaGetParameterBuffer`` takes 129 x + 8,023
cycles, ``cudaLaunchDevice`` 1,592 x + 12,187. 32 queues: Hyper-Q. The paper simulates with GPGPU-Sim, where the next
kernel of a queue starts in the cycle after one ends (``stream_manager::operation``, ``-gpgpu_kernel_launch_latency``: 0
unless it is set); GPUs take 1.2 to 2.1 us (recordings of an H100)."""
HOPPER: Final = LaunchCosts(
    per_child_cycles=551,
    per_call_cycles=9880,
    dispatch_cycles=1000,
    interval_cycles=990,
    hardware_queues=129,
    pool=2048,
    overflow="fail",
)
"""Measured on an H200 at 1,980 MHz (``data/measurements/h200/dynamic_parallelism.json``): a call of ``x`` lanes holds
its warp for 5.0 + 0.28 x us; children of real applications come 0.47 to 0.64 us apart, whoever launches them; exactly
128 run at once; a launch beyond ``cudaLimitDevRuntimePendingLaunchCount`` (2,048 unless it is set) fails."""
FREE: Final = LaunchCosts(0.0, 0.0, 0.0, hardware_queues=1 << 30)
"""Blocks join a running kernel (DTBL): no launch, no queue; limits of blocks and threads stay."""


@dataclass(frozen=True, slots=True)
class LoopBody:
    """One turn of an application's loop in a lane, counted from its source."""

    chain: float
    """Loads whose address comes from another load of the turn: their latencies add up."""
    dependent: float
    """Arithmetic instructions one after another."""
    instructions: float
    """All instructions of the turn."""
    parent_lines: float
    """Lines of 128 bytes that a lane of a parent asks for: 1 where it walks through memory of its own."""
    child_lines: float
    """Lines that a lane of a child asks for; its lanes take neighbouring items: 1/32 where these lie side by side."""
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
    """Cycles of one turn of a warp that is alone."""
    iteration_issue_cycles: float
    """Cycles of its SM's schedulers, in the turn."""
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
    """Further latency of a load that neither L1 nor L2 serves."""
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
        """Cycles of an SM's schedulers in a warp's prologue: one instruction after another."""
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
    prologue_cycles=4000.0,
    prologue_lines=4.0,
    launches=KEPLER,
)
"""The GPU that SPAWN simulates: 13 SMX at 1,400 MHz (Table I of the paper).

* 6 ports of 32 bytes a cycle at the crossbar are 1.5 lines, one at each SMX 0.25.
* 208 GB/s at 1.4 GHz, 70 % of it reached: 0.8 lines.
* 11 cycles an instruction, two schedulers: Kepler. L2: 100 cycles as a mean of hits in L1 and L2.
* Prologue: what a warp takes before its loop, with instructions and parameters that are in no cache yet. Fitted, by
  the cycles an extra child of BFS-graph500, SSSP-graph500, SSSP-citation and JOIN-gaussian (Figures 15 and 18 of the
  paper): to 500 cycles the geometric mean of ours over the paper's is 1. SSSP-graph500 has none in the end, as
  Baseline-DP's own threshold is the best here. Other than a wait between kernels, a prologue lets children of many
  blocks cost more than those of one.
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
