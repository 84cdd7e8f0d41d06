"""Matrix products that were not measured: their forms, and how long each takes by the law of products.

The costs of a GPU (``calibration/products.json``) are fitted to the single products of cuSync's MLPs alone, by
``python -m gpusched_env.experiments.calibrate.products``; the same file says how far the law is off.
"""

from __future__ import annotations

import functools
import itertools
import json
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.dependent import TiledKernel
from gpusched_env.workload.kernel import MOST_FORMS

if TYPE_CHECKING:
    from gpusched_env.hardware.matrix_products import Product, ProductCosts

TILES: Final = ((256, 256), (256, 128), (128, 256), (128, 128), (64, 256), (64, 128))
"""Rows and columns of tiles that were measured on every GPU or nearly so; those of 32 rows are of few tokens only."""
SLICES: Final = (1, 2, 3, 4, 6, 8)
"""Numbers of slices that were measured."""
LARGE: Final = 256 * 128
"""Elements of a tile of which a V100's SM holds no two."""


class Size(NamedTuple):
    """A product of a matrix of ``rows`` x ``depth`` and one of ``depth`` x ``columns``."""

    rows: int
    columns: int
    depth: int


@functools.cache
def _fitted() -> Any:
    text = (resources.files("gpusched_env.data") / "calibration" / "products.json").read_text(encoding="utf-8")
    return json.loads(text)


def costs_on(gpu: str) -> ProductCosts:
    """Of products on a GPU that was measured, by the name of its specification.

    Raises:
        InputError: it was not.
    """
    if gpu not in _fitted():
        raise InputError(f"gpu {gpu!r}: no products were measured there; they were on {', '.join(_fitted())}")
    from gpusched_env.hardware.matrix_products import ProductCosts

    return ProductCosts(**_fitted()[gpu]["costs"])


def per_sm(gpu: str, tile: tuple[int, int]) -> int:
    """Blocks that an SM holds: two of small tiles on a V100, else one (as cuSync's section 6 takes them to be)."""
    return 2 if gpu.startswith("v100") and tile[0] * tile[1] <= LARGE else 1


def divided(size: Size, tile: tuple[int, int], slices: int, gpu: str) -> Product:
    """A product by tiles and slices."""
    from gpusched_env.hardware.matrix_products import Product

    rows, columns = -(-size.rows // tile[0]), -(-size.columns // tile[1])
    return Product(*tile, rows, columns, slices, size.depth / slices, per_sm(gpu, tile))


def kernel_of(product: Product, gpu: GpuSpec) -> TiledKernel:
    """A product as a kernel of a chain, that takes as long as the law says."""
    from gpusched_env.hardware.matrix_products import product_us

    us = product_us(costs_on(gpu.name), product, gpu.sms)
    return TiledKernel(product.rows, product.columns, product.slices, us, product.per_sm)


def ways(size: Size, gpu: GpuSpec, fold: int = 1) -> list[tuple[tuple[int, int], TiledKernel]]:
    """All tiles and slices that a product can be divided by, the quickest first.

    Args:
        size: its rows are a multiple of the least tile's.
        gpu: that was measured.
        fold: matrices side by side, whose tiles are whole.
    """
    found = [
        (tile, kernel_of(divided(size, tile, slices, gpu.name), gpu))
        for tile, slices in itertools.product(TILES, SLICES)
        if size.columns % (tile[1] * fold) == 0 and size.rows % tile[0] == 0
    ]
    return sorted(found, key=lambda way: way[1].duration_us)


def forms_of(size: Size, gpu: GpuSpec, own: tuple[tuple[int, int], int], fold: int = 1) -> list[TiledKernel]:
    """Other forms of a product whose own has a tile and a number of slices: the quickest of at most half, of at most a
    quarter of its tile, and of the same tile with other slices; those that there are."""
    tile, slices = own
    area = tile[0] * tile[1]
    found: list[TiledKernel] = []
    others = [way for way in ways(size, gpu, fold) if (way[0], way[1].slices) != own]
    for kept in (
        lambda way: way[0] != tile and 4 * way[0][0] * way[0][1] > area >= 2 * way[0][0] * way[0][1],
        lambda way: area >= 4 * way[0][0] * way[0][1],
        lambda way: way[0] == tile and way[1].slices != slices,
    ):
        found += [kernel for _, kernel in filter(kept, others)][:1]
    return found[:MOST_FORMS]
