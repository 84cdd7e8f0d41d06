"""What it costs a thread to launch a kernel, and how many of them a GPU takes.

All times in core cycles. ``cuda_launch`` names follow the device runtime of CUDA.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from gpusched_env.errors import InputError

Overflow = Literal["spill", "fail"]


@dataclass(frozen=True, slots=True)
class LaunchCosts:
    """Child launches as one generation of GPUs does them."""

    per_child_cycles: float
    """``A``: a warp whose lanes launch ``x`` children stalls ``A x + b`` cycles; its SM goes on with others."""
    per_call_cycles: float
    """``b``."""
    dispatch_cycles: float
    """From when a child has a hardware queue until its first block can start."""
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


KEPLER: Final = LaunchCosts(per_child_cycles=1721, per_call_cycles=20210, dispatch_cycles=2500)
"""SPAWN (HPCA 2017), Table II, which has A and b from DTBL (ISCA 2015): ``cudaGetParameterBuffer`` takes 129 x + 8,023
cycles, ``cudaLaunchDevice`` 1,592 x + 12,187. 32 queues: Hyper-Q. From the end of a kernel to the start of the next one
in a hardware queue GPUs take 1.2 to 2.1 us (recordings of an H100): 2,500 cycles at 1,400 MHz; DTBL's dispatch alone
takes 283."""
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
