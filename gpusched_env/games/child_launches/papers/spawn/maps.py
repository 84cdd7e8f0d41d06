"""Maps of threads to work, which the paper does not give: whether its launches and occupancies could choose one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.child_launches.experiments.changes import Change, mapped

WARP: Final = 32
Order = Callable[[int], NDArray[np.int64]]
FEW: Final = {"Mandel": "28", "JOIN-uniform": "0", "JOIN-gaussian": "10"}
"""Benchmarks whose maps are tried, and the share (percent) of Offline-Search (bars of Figure 15 found in Figure 5)."""


def _square(rows: int, columns: int) -> Order:
    """Patches of so many tiles of a square image, one after the other."""

    def order(threads: int) -> NDArray[np.int64]:
        side = round(threads**0.5)
        tiles = np.arange(threads).reshape(side // rows, rows, side // columns, columns)
        return tiles.swapaxes(1, 2).ravel()

    return order


def _shuffled(threads: int) -> NDArray[np.int64]:
    return np.random.default_rng(0).permutation(threads)


def _far_apart(threads: int) -> NDArray[np.int64]:
    """Lanes of a warp lie a 32nd of the work apart."""
    whole = threads // WARP * WARP
    return np.concatenate([np.arange(whole).reshape(WARP, -1).T.ravel(), np.arange(whole, threads)])


def _warps_shuffled(threads: int) -> NDArray[np.int64]:
    whole = threads // WARP * WARP
    warps = np.random.default_rng(0).permutation(whole // WARP)
    return np.concatenate([np.arange(whole).reshape(-1, WARP)[warps].ravel(), np.arange(whole, threads)])


ANY: Final[dict[str, Change]] = {
    "lanes far apart": mapped(_far_apart),
    "warps shuffled": mapped(_warps_shuffled),
    "threads shuffled": mapped(_shuffled),
}
OF_IMAGES: Final[dict[str, Change]] = {
    "a warp 4 x 8 tiles": mapped(_square(4, 8)),
    "a block 8 x 16 tiles": mapped(_square(8, 16)),
}
MAPS: Final = {**OF_IMAGES, **ANY}


def maps_of(benchmark: str) -> dict[str, Change]:
    """Those that are tried for a benchmark of :data:`FEW`."""
    return MAPS if benchmark == "Mandel" else ANY
