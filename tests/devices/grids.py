"""A driver for the reference device's SMs in tests: grids arrive at given times, block ends are stepped through."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.reference.blocks import Grid as Resident
from gpusched_env.devices.reference.blocks import Rates, Sm
from gpusched_env.devices.reference.dispatcher import Dispatcher
from gpusched_env.hardware.clock import to_ps, to_us
from gpusched_env.hardware.occupancy import BlockNeeds, block_record, footprint, gpu_record
from gpusched_env.hardware.placement import sm_order
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


def run(gpu: GpuSpec, grids: list[Grid], *, check: bool = False) -> None:
    """Run ``grids`` to the end; fills their start, end and spans."""
    record = gpu_record(gpu)
    physics = SimpleNamespace(**dict(zip(record.dtype.names or (), record[0].item(), strict=True)))
    sms = [Sm(rank, int(number), physics) for rank, number in enumerate(sm_order(gpu))]
    dispatcher, rates = Dispatcher(sms), Rates(sms, physics)
    arrivals = sorted(grids, key=lambda g: g.at_us)
    residents: dict[Resident, Grid] = {}
    now = serial = 0
    while arrivals or residents:
        ends = min(sm.next_ps for sm in sms)
        upcoming = min(ends, to_ps(arrivals[0].at_us)) if arrivals else ends
        assert upcoming >= now, "time runs back"
        now = upcoming
        for sm_id, resident, blocks, start_ps in dispatcher.end_blocks(now):
            residents[resident].spans.append((sm_id, blocks, to_us(start_ps), to_us(now)))
        if now < ends:
            grid = arrivals.pop(0)
            needs = BlockNeeds.read(block_of(gpu, grid))
            partition = grid.partition or (0, gpu.sms)
            resident = Resident(needs, 1.0, grid.blocks, grid.priority, partition, grid.blocks)
            resident.serial, serial = serial, serial + 1
            residents[resident] = grid
            dispatcher.enqueue(resident)
        if dispatcher.changed:
            dispatcher.dispatch(now)
        rates.update(now)
        for resident in dispatcher.started:
            residents[resident].started_us = to_us(now)
        dispatcher.started.clear()
        for resident in [resident for resident in residents if resident.over]:
            residents.pop(resident).ended_us = to_us(now)
        if check:
            check_limits(gpu, sms)


def check_limits(gpu: GpuSpec, sms: list[Sm]) -> None:
    """No SM holds more than its limits, and what it says it holds is what its blocks hold."""
    limits = gpu.limits
    for sm in sms:
        for name, bound in (
            ("threads", limits.threads),
            ("warps", limits.warps),
            ("registers", limits.registers),
            ("shared_bytes", limits.shared_bytes),
        ):
            held = sum(getattr(block.grid.needs, name) for block in sm.blocks)
            assert getattr(sm, name) == held <= bound
        assert len(sm.blocks) <= limits.blocks
        assert all(block.left > 0.0 and block.rate >= 0.0 for block in sm.blocks)
        assert not sm.blocks or sm.shared_bytes <= sm.carveout_bytes <= limits.shared_bytes
