"""Random GPUs: shipped specifications, as they are or with some of their parts changed."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.hardware.specs import GpuSpec, Limits, Timing, gpu_names, load_gpu

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


def draw_gpu(dice: Dice) -> tuple[str, GpuSpec | None]:
    """Name of a shipped GPU, and what to use in its place (``None``: itself)."""
    name = dice.weighted({name: {"toy-4sm": 8.0, "h100-sxm": 4.0}.get(name, 1.0) for name in gpu_names()})
    if dice.chance(0.6 if name == "toy-4sm" else 0.1):
        return name, None
    spec = load_gpu(name)
    for change, probability in CHANGES.items():
        if dice.chance(probability):
            spec = change(dice, spec)
    return name, msgspec.structs.replace(spec, name=MODIFIED)


def modified_timing(dice: Dice, name: str) -> GpuSpec:
    """A shipped GPU with other latencies only, under its own name: recorded workloads stay what they are."""
    return _timing(dice, load_gpu(name))


def _sms(dice: Dice, spec: GpuSpec) -> GpuSpec:
    few = {1: 2, 2: 3, 3: 3, 4: 4, 5: 3, 7: 2, 8: 2}
    sms = dice.weighted({**few, 16: 1, 30: 0.3, 64: 0.3, 133: 0.1, 200: 0.1, 1320: 0.02})
    return msgspec.structs.replace(spec, sms=sms, sm_order=dice.pick(("linear", "even-odd")))


def _sm_order(dice: Dice, spec: GpuSpec) -> GpuSpec:
    return msgspec.structs.replace(spec, sm_order=tuple(dice.shuffled(range(spec.sms))))


def _queues(dice: Dice, spec: GpuSpec) -> GpuSpec:
    grids = dice.weighted({1: 1, 2: 1, 3: 1, 4: 1, 16: 2, 128: 2})
    return msgspec.structs.replace(spec, channels=dice.integer(1, 8), resident_grids=grids)


def _priorities(dice: Dice, spec: GpuSpec) -> GpuSpec:
    return msgspec.structs.replace(spec, priorities=dice.integer(1, 6))


def _timing(dice: Dice, spec: GpuSpec) -> GpuSpec:
    zero = dice.pick((0.0, 0.5, 1.0))
    values = {name: 0.0 if dice.chance(zero) else dice.number(low, high) for name, (low, high) in LATENCIES_US.items()}
    timing = Timing(**values, slice_us=dice.number(5.0, 3000.0))
    return msgspec.structs.replace(spec, timing=timing)


def _contention(dice: Dice, spec: GpuSpec) -> GpuSpec:
    switches = {name: dice.chance(0.6) for name in ("issue", "oldest_first", "light_wait", "dram")}
    return msgspec.structs.replace(spec, contention=msgspec.structs.replace(spec.contention, **switches))


def _bandwidth(dice: Dice, spec: GpuSpec) -> GpuSpec:
    return msgspec.structs.replace(spec, dram_bytes_per_us=spec.dram_bytes_per_us * dice.log_uniform(0.05, 2.0))


def _copies(dice: Dice, spec: GpuSpec) -> GpuSpec:
    copies = msgspec.structs.replace(spec.copies, engines=dice.integer(1, 2), latency_us=dice.pick((0.0, 1.0, 2.5)))
    return msgspec.structs.replace(spec, copies=copies)


def _limits(dice: Dice, spec: GpuSpec) -> GpuSpec:
    """SMs that hold more or fewer blocks, or whose shared memory cannot be configured."""
    old = spec.limits
    threads = dice.pick((1024, 1536, 2048))
    limits: Limits = msgspec.structs.replace(
        old,
        threads=threads,
        warps=threads // 32,
        blocks=dice.weighted({1: 1, 2: 2, 3: 1, 8: 2, 16: 2, 32: 2}),
        carveouts=dice.pick((old.carveouts, old.carveouts, (), (0, old.shared_bytes // 2, old.shared_bytes))),
    )
    return msgspec.structs.replace(spec, limits=limits)


CHANGES: dict[Callable[[Dice, GpuSpec], GpuSpec], float] = {
    _sms: 0.8,
    _queues: 0.4,
    _priorities: 0.3,
    _timing: 0.6,
    _contention: 0.3,
    _bandwidth: 0.2,
    _copies: 0.4,
    _limits: 0.4,
    _sm_order: 0.2,
}
"""How often each part is changed, in this order."""
