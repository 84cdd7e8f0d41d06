"""Matrix products that were not measured: their forms, how long each takes by the law of products, and random chains
of them by name: ``products(seed=3)``.

The costs of a GPU (``calibration/products.json``) are fitted to the single products of cuSync's MLPs alone, by
``python -m gpusched_env.experiments.calibrate.products``; the same file says how far the law is off.

Sizes are drawn between those of the MLPs and attention that were measured; times are those of the law of products
(:mod:`gpusched_env.data.products`). Each product is issued as the tiles and slices that are quickest alone, which is
how cuSync's artifact and libraries mean to choose, and may be given others. Their choices are not always the quickest:
``products(seed=3,among=6)`` issues each product as one of the six quickest, drawn.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from gpusched_env.data import stored
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.workload.dependent import TiledKernel, chain_per_job, dependent_workload, lead_of
from gpusched_env.workload.generated_names import parameters_of
from gpusched_env.workload.kernel import MOST_FORMS
from gpusched_env.workload.workload import TileNeeds, Workload

if TYPE_CHECKING:
    from gpusched_env.hardware.solo import Product, ProductCosts


TILES: Final = ((256, 256), (256, 128), (128, 256), (128, 128), (64, 256), (64, 128))
"""Rows and columns of tiles that were measured on every GPU or nearly so; those of 32 rows are of few tokens only."""
SLICES: Final = (1, 2, 3, 4, 6, 8)
"""Numbers of slices that were measured."""
LARGE: Final = 256 * 128
"""Elements of a tile of which a V100's SM holds no two."""


class ProductSize(NamedTuple):
    """A product of a matrix of ``rows`` x ``depth`` and one of ``depth`` x ``columns``."""

    rows: int
    columns: int
    depth: int


def _fitted() -> Any:
    return stored("calibration", "products.json")


def costs_on(gpu: str) -> ProductCosts:
    """Costs of products on a GPU that was measured, by the name of its specification.

    Raises:
        InputError: it was not.
    """
    if gpu not in _fitted():
        raise InputError(f"gpu {gpu!r}: no products were measured there; they were on {', '.join(_fitted())}")
    from gpusched_env.hardware.solo import ProductCosts

    return ProductCosts(**_fitted()[gpu]["costs"])


def per_sm(gpu: str, tile: tuple[int, int]) -> int:
    """Blocks that an SM holds: two of small tiles on a V100, else one (as cuSync's section 6 takes them to be)."""
    return 2 if gpu.startswith("v100") and tile[0] * tile[1] <= LARGE else 1


def divided(size: ProductSize, tile: tuple[int, int], slices: int, gpu: str) -> Product:
    """A product by tiles and slices."""
    from gpusched_env.hardware.solo import Product

    rows, columns = -(-size.rows // tile[0]), -(-size.columns // tile[1])
    return Product(*tile, rows, columns, slices, size.depth / slices, per_sm(gpu, tile))


def kernel_of(product: Product, gpu: GpuSpec) -> TiledKernel:
    """A product as a kernel of a chain, that takes as long as the law says."""
    from gpusched_env.hardware.solo import product_us

    us = product_us(costs_on(gpu.name), product, gpu.sms)
    return TiledKernel(product.rows, product.columns, product.slices, us, product.per_sm)


def ways(size: ProductSize, gpu: GpuSpec, fold: int = 1) -> list[tuple[tuple[int, int], TiledKernel]]:
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


def forms_of(size: ProductSize, gpu: GpuSpec, own: tuple[tuple[int, int], int], fold: int = 1) -> list[TiledKernel]:
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


STEP: Final = 256
"""Step of the sizes of random products: a multiple of the sizes of all tiles."""


class ProductChains(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``products(seed=3)`` asks for."""

    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    count: Annotated[int, Meta(ge=1, le=256)] = 1
    """Number of different chains, of which each job is one, drawn."""
    gpu: str = "v100-sxm"
    """The GPU whose products were measured."""
    among: Annotated[int, Meta(ge=1, le=16)] = 1
    """How many of the quickest tiles and slices a product may be issued as."""


def is_product_chain(name: str) -> bool:
    """Whether a workload's name is that of random chains of products."""
    return name.partition("(")[0].strip() == "products"


def product_chain_of(name: str) -> ProductChains:
    """What ``products(seed=3)`` asks for.

    Raises:
        InputError: it cannot be read, or a parameter is unknown, missing or out of range.
    """
    return parameters_of(name, ProductChains, "products(seed=3)")


@functools.lru_cache(maxsize=64)
def product_chain(name: str) -> Workload:
    """What a name asks for, the same in every process.

    Raises:
        InputError: as :func:`product_chain_of`, or there is no such GPU, or no products were measured on it.
    """
    asked = product_chain_of(name)
    gpu, dice, name = load_gpu(asked.gpu), np.random.default_rng(asked.seed), name.strip()
    chains = [
        dependent_workload(name if asked.count == 1 else f"{name}-{number}", gpu, _chain(gpu, dice, asked.among))
        for number in range(asked.count)
    ]
    return chains[0] if asked.count == 1 else chain_per_job(name, chains)


def _chain(gpu: GpuSpec, dice: np.random.Generator, among: int) -> list[TiledKernel]:
    """Two to four products of 256 to 3,072 rows; as many columns as the next one is deep, or twice that where it reads
    two matrices side by side."""
    rows = STEP * int(dice.integers(1, 13))
    depth, kernels = STEP * int(dice.integers(8, 49)), []
    needs = TileNeeds()
    for _ in range(int(dice.choice([2, 2, 2, 3, 4]))):
        fold, width = int(dice.choice([1, 1, 2])), STEP * int(dice.integers(8, 49))
        size = ProductSize(rows, fold * width, depth)
        quickest = ways(size, gpu, fold)[:among]
        tile, own = quickest[int(dice.integers(len(quickest))) if among > 1 else 0]
        forms = forms_of(size, gpu, (tile, own.slices), fold)
        lead = lead_of(own.duration_us / own.waves(gpu.sms))
        kernels.append(replace(own, forms=tuple(forms), needs=TileNeeds(fold=needs.fold, lead=lead)))
        depth, needs = width, TileNeeds(fold=fold)
    return kernels
