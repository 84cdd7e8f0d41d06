"""Random chains of matrix products in all their forms, from their name: ``products(seed=3)``.

Sizes are drawn between those of the MLPs and attention that were measured; times are those of the law of products
(:mod:`gpusched_env.data.products`). Each product is issued as the tiles and slices that are quickest alone, which is
how cuSync's artifact and libraries mean to choose, and may be given others. Their choices are not always the quickest:
``products(seed=3,among=6)`` issues each product as one of the six quickest, drawn.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Annotated, Final

import msgspec
import numpy as np
from msgspec import Meta

from gpusched_env.data.products import Size, forms_of, ways
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.workload.dependent import TiledKernel, dependent, lead_of, one_a_job
from gpusched_env.workload.parameters import parameters_of
from gpusched_env.workload.workload import TileNeeds, Workload

STEP: Final = 256
"""Of sizes: of all tiles a multiple."""


class ProductChains(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``products(seed=3)`` asks for."""

    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    count: Annotated[int, Meta(ge=1, le=256)] = 1
    """Different chains, of which each job is one, drawn."""
    gpu: str = "v100-sxm"
    """Whose products were measured."""
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
        dependent(name if asked.count == 1 else f"{name}-{number}", gpu, _chain(gpu, dice, asked.among))
        for number in range(asked.count)
    ]
    return chains[0] if asked.count == 1 else one_a_job(name, chains)


def _chain(gpu: GpuSpec, dice: np.random.Generator, among: int) -> list[TiledKernel]:
    """Two to four products of 256 to 3,072 rows; as many columns as the next one is deep, or twice that where it reads
    two matrices side by side."""
    rows = STEP * int(dice.integers(1, 13))
    depth, kernels = STEP * int(dice.integers(8, 49)), []
    needs = TileNeeds()
    for _ in range(int(dice.choice([2, 2, 2, 3, 4]))):
        fold, width = int(dice.choice([1, 1, 2])), STEP * int(dice.integers(8, 49))
        size = Size(rows, fold * width, depth)
        quickest = ways(size, gpu, fold)[:among]
        tile, own = quickest[int(dice.integers(len(quickest))) if among > 1 else 0]
        forms = forms_of(size, gpu, (tile, own.slices), fold)
        lead = lead_of(own.duration_us / own.waves(gpu.sms))
        kernels.append(replace(own, forms=tuple(forms), needs=TileNeeds(fold=needs.fold, lead=lead)))
        depth, needs = width, TileNeeds(fold=fold)
    return kernels
