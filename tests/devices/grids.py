"""A driver for :class:`SmArray` in tests: grids arrive at given times, block ends are stepped through."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.reference.sms import SmArray
from gpusched_env.hardware.occupancy import footprint
from gpusched_env.hardware.records import block_record
from gpusched_env.hardware.specs import GpuSpec, load_gpu


@dataclass
class Grid:
    """A grid of ``blocks`` blocks of ``threads`` threads that arrives at ``at_us``."""

    at_us: float
    blocks: int
    threads: int
    latency_us: float
    priority: int = 0
    shared_bytes: int = 0
    registers: int = 16
    rho: float = 0.0
    wait: float = 0.0
    spread: float = 0.0
    dram_bytes: float = 0.0
    partition: tuple[int, int] | None = None
    started_us: float = math.nan
    ended_us: float = math.nan
    spans: list[tuple[int, int, float, float]] = field(default_factory=list)
    """(SM, blocks, start, end) of its residencies."""


def block_of(gpu: GpuSpec, grid: Grid) -> NDArray[np.void]:
    footprint_ = footprint(gpu, grid.threads, grid.registers, grid.shared_bytes)
    return block_record(footprint_, grid.latency_us, grid.rho, grid.wait, grid.dram_bytes, grid.spread)


def without_contention(name: str) -> GpuSpec:
    """A shipped GPU whose block limit and memory never matter for grids without issue or DRAM demand."""
    return msgspec.structs.replace(load_gpu(name), dram_bytes_per_us=1e12)


def few_sms(gpu: GpuSpec, sms: int) -> GpuSpec:
    """``gpu`` with fewer SMs, even ones first."""
    return msgspec.structs.replace(gpu, sms=sms, sm_order="even-odd")


def run(gpu: GpuSpec, grids: list[Grid], *, each_wave: bool = True, check: bool = False) -> SmArray:
    """Run ``grids`` to the end; fills their start, end and spans (spans need ``each_wave``)."""
    sms = SmArray(gpu, each_wave=each_wave)
    arrivals = sorted(grids, key=lambda g: g.at_us)
    slots: dict[int, Grid] = {}
    now = 0.0
    while arrivals or slots:
        upcoming = min(sms.next_us, arrivals[0].at_us if arrivals else math.inf)
        assert upcoming < math.inf, "nothing can happen any more"
        assert upcoming >= now, "time runs back"
        now = upcoming
        if now < sms.next_us:
            grid = arrivals.pop(0)
            partition = grid.partition or (0, gpu.sms)
            if sms.ahead:
                sms.catch_up(now)
                note(sms, slots, now)
            slots[sms.add(block_of(gpu, grid), 1.0, grid.blocks, grid.priority, partition)] = grid
        sms.step(now)
        note(sms, slots, now)
        if check:
            check_limits(gpu, sms, slots)
    return sms


def note(sms: SmArray, slots: dict[int, Grid], now: float) -> None:
    """Write down what happened in the last step."""
    for slot in sms.started:
        slots[slot].started_us = now
    for sm, slot, blocks, since in sms.ended_rows().tolist():
        slots[int(slot)].spans.append((int(sm), int(blocks), since, now))
    for slot in sms.finished:
        slots[slot].ended_us = now
        sms.remove(slot)
        del slots[slot]


def check_limits(gpu: GpuSpec, sms: SmArray, slots: dict[int, Grid]) -> None:
    """No SM holds more than its limits, and what it says it holds is what its rows hold."""
    usage = sms.usage()
    held = {name: np.zeros(gpu.sms, np.int64) for name in ("threads", "warps", "blocks", "registers", "shared")}
    for sm, slot, blocks, left, rate in sms.residents():
        demand = block_of(gpu, slots[slot])[0]
        for name in ("threads", "warps", "registers"):
            held[name][sm] += blocks * demand[name]
        held["shared"][sm] += blocks * demand["shared_bytes"]
        held["blocks"][sm] += blocks
        assert left > -1e-6
        assert rate >= 0.0
    limits = gpu.limits
    for name, bound in (
        ("threads", limits.threads),
        ("warps", limits.warps),
        ("blocks", limits.blocks),
        ("registers", limits.registers),
        ("shared", limits.shared_bytes),
    ):
        assert usage[name].tolist() == held[name].tolist()
        assert usage[name].max() <= bound
    busy = usage["blocks"] > 0
    assert (usage["shared"][busy] <= usage["carveout"][busy]).all()
    assert usage["carveout"][busy].max(initial=0) <= limits.shared_bytes
