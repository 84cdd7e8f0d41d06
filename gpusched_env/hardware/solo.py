"""How long a kernel takes alone: by waves of equal blocks under the laws of contention, and a matrix product by a
roofline of arithmetic and memory.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gpusched_env.compiling import cached, called, law
from gpusched_env.hardware.contention import mean_stretch, share_bandwidth, throttle, warps_on


@called
def equal_blocks_us(gpu, block, residents):
    """Duration of a block among ``residents`` equal blocks on an SM, memory aside."""
    if gpu.issue == 0.0:
        return block.latency_us
    warps = warps_on(residents, block.warps, gpu.sub_partitions)
    return block.latency_us * mean_stretch(warps * block.rho, warps * math.log1p(-block.rho))


@called
def wave_us(gpu, block, residents, sms, fewer, fewer_sms):
    """Duration of one wave: ``sms`` SMs hold ``residents`` equal blocks, ``fewer_sms`` only ``fewer``.

    The SMs with fewer blocks end no later and leave their bandwidth to the others.

    Args:
        gpu: :data:`~gpusched_env.hardware.occupancy.GPU_DTYPE` record.
        block: :data:`~gpusched_env.hardware.occupancy.BLOCK_DTYPE` record.
        residents: blocks on each of the fuller SMs (>= 1).
        sms: fuller SMs (>= 1).
        fewer: blocks on each of the emptier SMs (< ``residents``).
        fewer_sms: emptier SMs.
    """
    times = (equal_blocks_us(gpu, block, residents), equal_blocks_us(gpu, block, max(fewer, 1)))
    if block.dram_bytes <= 0.0:
        return times[0]
    demands = (residents * block.dram_bytes / times[0], fewer * block.dram_bytes / times[1])
    loadings = (float(residents * block.warps), float(fewer * block.warps))
    counts = (float(sms), float(fewer_sms))
    kinds = 2 if fewer > 0 and fewer_sms > 0 else 1
    done = 0.0
    elapsed = 0.0
    while True:
        level = share_bandwidth(demands, loadings, counts, kinds, gpu.dram_bytes_per_us, gpu.dram_norm).level
        fuller = times[0] / throttle(demands[0], loadings[0], level)
        if kinds == 1:
            return elapsed + (1.0 - done) * fuller
        elapsed = times[1] / throttle(demands[1], loadings[1], level)
        if elapsed >= fuller:
            return fuller
        done = elapsed / fuller
        kinds = 1


@cached()
def solo_duration_us(gpu, block, blocks, blocks_per_sm):
    """Duration of a kernel of ``blocks`` blocks alone on an idle GPU (records as for :func:`wave_us`).

    Full waves keep every SM at ``blocks_per_sm`` residents; blocks of a last, partial wave pack into
    the SMs that free first. A kernel smaller than one wave spreads over all SMs (most-room placement).
    """
    wave = blocks_per_sm * gpu.sms
    full = blocks // wave
    rest = blocks - full * wave
    if full > 0:
        duration = full * wave_us(gpu, block, blocks_per_sm, gpu.sms, 0, 0)
        if rest > 0:
            packed = min(rest, blocks_per_sm)
            odd = rest % packed
            duration += wave_us(gpu, block, packed, rest // packed, odd, 1 if odd > 0 else 0)
        return duration
    least = rest // gpu.sms
    crowded = rest - least * gpu.sms
    if crowded == 0:
        return wave_us(gpu, block, least, gpu.sms, 0, 0)
    return wave_us(gpu, block, least + 1, crowded, least, gpu.sms - crowded)


class ProductCosts(NamedTuple):
    """What products take on a GPU."""

    block_us: float
    """Time of any block for its start, and for writing its tile."""
    step_us: float
    """Time of an element of a tile for a step along the inner dimension, in the only block on its SM."""
    beside_us: float
    """What each further block on the SM adds to ``step_us``."""
    load_us: float
    """Time of a row or column of a tile for a step, by each block on the SM, where loads outlast the arithmetic."""
    dram_us: float
    """Time to read an element of the other matrix from DRAM once."""
    slice_us: float
    """Time of a block for each further slice of its tile: it adds to what the one before it wrote."""


class Product(NamedTuple):
    """A matrix product, divided into blocks."""

    tile_rows: int
    tile_columns: int
    rows: int
    columns: int
    slices: int
    """Grid of the product: rows and columns of tiles, and blocks that share a tile."""
    depth: float
    """Steps along the inner dimension of one slice."""
    per_sm: int
    """Blocks that an SM holds."""


@law
def product_block_us(costs: ProductCosts, product: Product, resident: int) -> float:
    """Duration of a block beside so many of its kind on an SM, itself included."""
    area = product.tile_rows * product.tile_columns
    arithmetic_us = area * (costs.step_us + costs.beside_us * (resident - 1))
    loads_us = (product.tile_rows + product.tile_columns) * costs.load_us * resident
    return costs.block_us + product.depth * max(arithmetic_us, loads_us) + costs.slice_us * (product.slices - 1)


@law
def product_us(costs: ProductCosts, product: Product, sms: int) -> float:
    """Duration of a product alone: whole waves, and a last one with fewer blocks on an SM; or its traffic."""
    blocks = product.rows * product.columns * product.slices
    slots = product.per_sm * sms
    whole, rest = blocks // slots, blocks % slots
    waves_us = whole * product_block_us(costs, product, product.per_sm)
    if rest > 0:
        waves_us += product_block_us(costs, product, min(product.per_sm, -(-rest // sms)))
    dram_us = product.columns * product.tile_columns * product.depth * product.slices * costs.dram_us
    return max(waves_us, dram_us)
