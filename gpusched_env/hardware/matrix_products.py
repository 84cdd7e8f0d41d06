"""How long a matrix product takes by its tiles: a roofline of arithmetic and memory, wave by wave.

Of a product of ``rows`` x ``columns`` tiles, each shared by ``slices`` blocks along the inner dimension (split-K). The
costs are fitted to single products that were measured (:mod:`gpusched_env.data.products`).
"""

from __future__ import annotations

from typing import NamedTuple

from gpusched_env.compiling import law


class ProductCosts(NamedTuple):
    """What products take on a GPU."""

    block_us: float
    """Of any block: its start, and writing its tile."""
    step_us: float
    """Of an element of a tile, a step along the inner dimension: of the only block on its SM."""
    beside_us: float
    """The same, what each further block on the SM adds."""
    load_us: float
    """Of a row or column of a tile, a step: of each block on the SM, where loads take longer than the arithmetic."""
    dram_us: float
    """Of an element of the other matrix, which is read from DRAM once."""
    slice_us: float
    """Of a block, for each further slice of its tile: it adds to what the one before it wrote."""


class Product(NamedTuple):
    """A matrix product, divided into blocks."""

    tile_rows: int
    tile_columns: int
    rows: int
    columns: int
    slices: int
    """Grid: tiles, and blocks that share one."""
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
