"""Random choices from one seeded stream, and small parts that are drawn by them:

GPUs, traces, kernels that a cold L2 slows.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from msgspec.structs import replace

from gpusched_env.hardware.specs import GpuSpec, TileCosts, Timing, gpu_names, load_gpu
from gpusched_env.workload.tenant import Trace
from gpusched_env.workload.workload import GraphNode, Op, OpKind, Workload

T = TypeVar("T")


class Dice:
    """Draws; equal seeds give equal draws."""

    def __init__(self, *seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.tidy = False
        """Whether :meth:`number` gives numbers of one digit only."""

    def chance(self, probability: float) -> bool:
        return bool(self._rng.random() < probability)

    def integer(self, low: int, high: int) -> int:
        """Uniform in ``low`` to ``high``, both included."""
        return int(self._rng.integers(low, high + 1))

    def uniform(self, low: float, high: float) -> float:
        return float(self._rng.uniform(low, high))

    def exponential(self, mean: float) -> float:
        return float(self._rng.exponential(mean))

    def log_uniform(self, low: float, high: float) -> float:
        return math.exp(self.uniform(math.log(low), math.log(high)))

    def log_integer(self, low: int, high: int) -> int:
        """Small numbers as often as large ones, by order of magnitude."""
        return min(high, int(self.log_uniform(low, high + 1)))

    def number(self, low: float, high: float) -> float:
        """Log-uniform; every other one (all, where :attr:`tidy`) has one digit, so that sums of them coincide."""
        value = self.log_uniform(low, high)
        if not self.chance(1.0 if self.tidy else 0.5):
            return value
        return min(high, max(low, float(f"{value:.0e}")))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def pick_by_name(self, names: Sequence[str]) -> str:
        """One of ``names`` for its own sake: where names come or go, only draws of those change.

        (The highest random weight wins; Thaler and Ravishankar 1998.)
        """
        seed = self.seed().to_bytes(8)
        return max(names, key=lambda name: hashlib.blake2b(name.encode(), key=seed, digest_size=8).digest())

    def weighted(self, weights: Mapping[T, float]) -> T:
        """One of the keys, with probabilities in proportion to the (not all zero) weights."""
        at = self.uniform(0.0, sum(weights.values()))
        chosen = next(key for key, weight in weights.items() if weight > 0)
        for key, weight in weights.items():
            if weight > 0:
                chosen = key
                at -= weight
                if at < 0:
                    break
        return chosen

    def some(self, options: Sequence[T]) -> tuple[T, ...]:
        """A random subset in the given order, at least one."""
        chosen = tuple(option for option in options if self.chance(0.5))
        return chosen or (self.pick(options),)

    def shuffled(self, options: Sequence[T]) -> list[T]:
        return [options[i] for i in self._rng.permutation(len(options))]

    def seed(self) -> int:
        return self.integer(0, 2**31 - 1)


MODIFIED = "fuzz-gpu"
"""Name of a modified GPU."""

LATENCIES_US: dict[str, tuple[float, float]] = {
    "launch_latency_us": (0.1, 20.0),
    "stream_gap_us": (0.1, 5.0),
    "graph_gap_us": (0.1, 5.0),
    "graph_launch_us": (1.0, 30.0),
    "event_latency_us": (0.1, 10.0),
    "sync_latency_us": (0.1, 10.0),
    "switch_us": (1.0, 200.0),
    "partition_change_us": (1.0, 50.0),
    "drain_ack_us": (0.1, 20.0),
    "reset_us": (0.1, 50.0),
    "child_launch_us": (0.1, 20.0),
}
"""Range of each latency that is not zero."""
SMS = {1: 2, 2: 3, 3: 3, 4: 4, 5: 3, 7: 2, 8: 2, 16: 1, 30: 0.3, 64: 0.3, 133: 0.1, 200: 0.1, 1320: 0.02}
RESIDENT_GRIDS = {1: 1, 2: 1, 3: 1, 4: 1, 16: 2, 128: 2}
BLOCKS = {1: 1, 2: 2, 3: 1, 8: 2, 16: 2, 32: 2}
"""Most blocks of an SM. Here as above: numbers and their weights."""


def draw_gpu(dice: Dice) -> tuple[str, GpuSpec | None]:
    """Name of a shipped GPU, and what to use in its place (``None``: itself)."""
    names = gpu_names()
    name = dice.weighted({name: {"toy-4sm": 8.0, "h100-sxm": 4.0}.get(name, 12.0 / len(names)) for name in names})
    if dice.chance(0.6 if name == "toy-4sm" else 0.1):
        return name, None
    old = load_gpu(name)
    new: dict[str, Any] = {}
    if dice.chance(0.8):
        new |= {"sms": dice.weighted(SMS), "sm_order": dice.pick(("linear", "even-odd"))}
    if dice.chance(0.4):
        new |= {"resident_grids": dice.weighted(RESIDENT_GRIDS), "channels": dice.integer(1, 8)}
    if dice.chance(0.3):
        new["priorities"] = dice.integer(1, 6)
    if dice.chance(0.6):
        new["timing"] = timing = _timing(dice)
        # Not drawn either.
        post_us, order_us, wait_kernel_us = timing.stream_gap_us, 0.1 * timing.sync_latency_us, timing.event_latency_us
        new["tiles"] = TileCosts(
            post_us=post_us, wait_us=0.3 * timing.graph_gap_us, order_us=order_us, wait_kernel_us=wait_kernel_us
        )
    if dice.chance(0.3):
        switches = {name: dice.chance(0.6) for name in ("issue", "oldest_first", "light_wait", "dram")}
        new["contention"] = replace(old.contention, **switches)
    if dice.chance(0.2):
        new["dram_bytes_per_us"] = old.dram_bytes_per_us * dice.log_uniform(0.05, 2.0)
    if dice.chance(0.4):
        new["copies"] = replace(old.copies, engines=dice.integer(1, 2), latency_us=dice.pick((0.0, 1.0, 2.5)))
    if dice.chance(0.4):
        # SMs that hold more or fewer blocks, or whose shared memory cannot be configured.
        limits, threads, blocks = old.limits, dice.pick((1024, 1536, 2048)), dice.weighted(BLOCKS)
        half = (0, limits.shared_bytes // 2, limits.shared_bytes)
        carveouts = dice.pick((limits.carveouts, limits.carveouts, (), half))
        new["limits"] = replace(limits, threads=threads, warps=threads // 32, blocks=blocks, carveouts=carveouts)
    if dice.chance(0.2):
        new["sm_order"] = tuple(dice.shuffled(range(new.get("sms", old.sms))))
    return name, replace(old, name=MODIFIED, **new)


def modified_timing(dice: Dice, name: str) -> GpuSpec:
    """A shipped GPU with other latencies only, under its own name: recorded workloads stay what they are."""
    return replace(load_gpu(name), timing=_timing(dice))


def _timing(dice: Dice) -> Timing:
    zero = dice.pick((0.0, 0.5, 1.0))
    values = {name: 0.0 if dice.chance(zero) else dice.number(low, high) for name, (low, high) in LATENCIES_US.items()}
    # Not drawn, so that episodes stay what they were before there was this latency.
    beside_us = 0.5 * values["event_latency_us"]
    slice_us = dice.number(5.0, 3000.0)
    # Not drawn either: half of the time streams beyond the channels take turns.
    period_us = values["switch_us"] if slice_us < 1500.0 else 0.0
    return Timing(**values, slice_us=slice_us, graph_gap_beside_us=beside_us, queue_period_us=period_us)


Part = TypeVar("Part", Op, GraphNode)


def with_cold_kernels(dice: Dice, workload: Workload, gpu: GpuSpec) -> Workload:
    """The workload with a footprint, from a trace of the L2 to twice of it, and kernels some of which are cold ones."""
    often = dice.pick((0.3, 1.0))

    def cold(one: Part) -> Part:
        if one.kind is not OpKind.KERNEL or not dice.chance(often):
            return one
        return replace(one, cold=dice.pick((0.05, 0.5, dice.uniform(0.0, 2.0))))

    return replace(
        workload,
        footprint_bytes=int(gpu.l2_bytes * dice.number(0.01, 2.0)),
        graphs=tuple(tuple(map(cold, graph)) for graph in workload.graphs),
        variants=tuple(variant.mapped(cold) for variant in workload.variants),
    )


def random_trace(dice: Dice, gap_us: float) -> Trace:
    """A trace of up to thirty recorded times, some at once, some ``gap_us`` apart."""
    gaps_us = [dice.pick((0.0, gap_us, gap_us * dice.number(0.1, 3.0))) for _ in range(dice.integer(1, 30))]
    times_us = tuple(itertools.accumulate(gaps_us))
    return Trace(
        times_us=times_us,
        from_us=0.0 if dice.chance(0.7) else times_us[-1] * 0.5,
        to_us=times_us[-1] + gap_us,
        speed=1.0 if dice.chance(0.5) else dice.number(0.5, 2.0),
        window=dice.pick(("first", "drawn")),
        at_end=dice.pick(("ends", "repeats")),
    )
