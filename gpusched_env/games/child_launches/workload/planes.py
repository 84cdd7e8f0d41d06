"""Applications on parts of a plane: the Mandelbrot set, a thread a tile; and adaptive mesh refinement around a flame
front, a thread a cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import native
from gpusched_env.games.child_launches.workload.launches import (
    BlockShape,
    Counts,
    Kernels,
    LaunchRequests,
    ParentKernel,
    Threads,
)

TILE_PARENT: Final = BlockShape(32, 32)
"""16 such blocks an SM are a quarter of its warps, and so is the occupancy in the paper's Figure 16, whatever runs."""
TILE_CHILD: Final = BlockShape(32, 32)
_LANES: Final = 32
"""Points iterated together, in vector registers."""
_STRIDE: Final = 8
"""Iterations after which it is checked whether any of them is left."""

Points = NDArray[np.float64]


@dataclass(frozen=True)
class Window:
    """A square part of the complex plane."""

    centre: complex
    width: float


def escape_iterations(points: NDArray[np.complexfloating], limit: int) -> Counts:
    """Iterations of z² + c from z = 0, up to ``limit``, until ``|z|`` exceeds 2; at least 1; shape of ``points``."""
    flat = points.ravel()
    counts = np.ones(flat.size, np.int64)
    _count_escapes(flat.real.astype(np.float64), flat.imag.astype(np.float64), limit, counts)
    return counts.reshape(points.shape)


@native(error_model="numpy", _nrt=True)
def _count_escapes(real: Points, imaginary: Points, limit: int, counts: Counts) -> None:
    """Adds to ``counts`` the iterations after the first of each point."""
    a, b, x, y, inside = np.empty((5, _LANES))
    for start in range(0, real.size, _LANES):
        lanes = min(_LANES, real.size - start)
        for lane in range(_LANES):
            a[lane] = real[start + min(lane, lanes - 1)]
            b[lane] = imaginary[start + min(lane, lanes - 1)]
            x[lane], y[lane], inside[lane] = a[lane], b[lane], 0.0
        done, left = 1, 1.0
        while done < limit and left:
            steps = min(_STRIDE, limit - done)
            done += steps
            # A point that has left goes on to infinity; the comparison stays false.
            for _ in range(steps):
                left = 0.0
                for lane in range(_LANES):
                    x_squared, y_squared = x[lane] * x[lane], y[lane] * y[lane]
                    stays = 1.0 if x_squared + y_squared <= 4.0 else 0.0
                    inside[lane] += stays
                    left += stays
                    y[lane] = 2 * x[lane] * y[lane] + b[lane]
                    x[lane] = x_squared - y_squared + a[lane]
        for lane in range(lanes):
            counts[start + lane] += np.int64(inside[lane])


def render(window: Window, tiles: int, tile: tuple[int, int], limit: int) -> Kernels:
    """One kernel that renders ``tiles`` × ``tiles`` tiles of ``tile`` (rows, columns) pixels over the window.

    A thread's work is the sum of the escape iterations of its pixels, a child thread's those of its pixel.
    Threads follow the rows of tiles; pixels of a tile follow its rows.
    """
    rows, columns = tile
    across, down = (np.linspace(-0.5, 0.5, tiles * pixels, endpoint=False) for pixels in (columns, rows))
    real, imaginary = window.centre.real + window.width * across, window.centre.imag + window.width * down
    # A row of tiles at a time: large images have few of their points in memory.
    by_row = [
        escape_iterations((real + 1j * part[:, None]).reshape(rows, tiles, columns).swapaxes(0, 1), limit).ravel()
        for part in imaginary.reshape(tiles, rows)
    ]
    pixels = Threads(np.concatenate(by_row))
    threads = np.arange(tiles**2)
    requests = LaunchRequests(threads, np.full(len(threads), rows * columns), children=pixels)
    return (ParentKernel("tiles", TILE_PARENT, TILE_CHILD, Threads(np.zeros(len(threads), np.int64), requests)),)


CELL_PARENT: Final = BlockShape(256, 40)
"""With 40 registers 6 blocks an SM are 75 % of its warps; with fewer than 50 launches the paper's occupancy is 69.7 %
(Figure 16)."""
CELL_CHILD: Final = BlockShape(32, 32)


@dataclass(frozen=True, eq=False)
class Front:
    """A closed, wrinkled flame front r(angle) around the middle of the unit square."""

    radius: float
    amplitude: NDArray[np.float64]
    """(modes,) relative height of the wrinkle of 1, 2, 3 ... waves around the front."""
    phase: NDArray[np.float64]
    """(modes,) phase of each wrinkle, radians."""

    def distance(self, x: Points, y: Points) -> Points:
        """Distance along the ray from the middle to the front, negative in burnt gas; shape of ``x``."""
        angle = np.arctan2(y - 0.5, x - 0.5)
        wrinkle = np.zeros_like(angle)
        for waves, (amplitude, phase) in enumerate(zip(self.amplitude, self.phase, strict=True), start=1):
            wrinkle += amplitude * np.cos(waves * angle + phase)
        return np.hypot(x - 0.5, y - 0.5) - self.radius * (1 + wrinkle)


def random_front(radius: float, modes: int = 12, *, seed: int) -> Front:
    """A front whose wrinkles fall off like 1 / waves; the same seed gives the same wrinkles at every radius."""
    rng = np.random.default_rng(seed)
    return Front(radius, rng.normal(0, 0.06, modes) / np.arange(1, modes + 1), rng.uniform(0, 2 * np.pi, modes))


def refine(fronts: list[Front], cells: int, factor: int, levels: int, ignitions: int = 0, *, seed: int = 0) -> Kernels:
    """A kernel a time step, with ``cells`` × ``cells`` cells and one front each.

    The progress of the reaction jumps at the front (the flame is thinner than the finest cell), so a cell has
    a large gradient and is refined into ``factor`` × ``factor`` sub-cells if the front is within half a cell
    of its centre; ``levels`` deep at most. Each cell and sub-cell takes an iteration for itself.

    At each step gas ignites by itself in ``ignitions`` random cells (of ``seed``): a kernel that grows within a cell
    has steep gradients everywhere, so all of its sub-cells refine too.
    """
    rng = np.random.default_rng(seed)
    centres = (np.arange(cells) + 0.5) / cells
    x, y = (grid.ravel() for grid in np.meshgrid(centres, centres))
    kernels = []
    for step, front in enumerate(fronts):
        ignited = np.zeros(cells**2, np.bool_)
        ignited[rng.choice(cells**2, ignitions, replace=False)] = True
        threads = _refined(front, x, y, ignited, 1 / cells, factor, levels)
        kernels.append(ParentKernel(f"step_{step}", CELL_PARENT, CELL_CHILD, threads))
    return tuple(kernels)


def _refined(
    front: Front, x: Points, y: Points, ignited: NDArray[np.bool_], width: float, factor: int, levels: int
) -> Threads:
    base = np.ones(len(x), np.int64)
    flagged = np.flatnonzero(ignited | (np.abs(front.distance(x, y)) < width / 2))
    if not levels or not flagged.size:
        return Threads(base)
    items = np.full(len(flagged), factor**2)
    if levels == 1:
        return Threads(base, LaunchRequests(flagged, items, np.ones_like(items)))
    offsets = ((np.arange(factor) + 0.5) / factor - 0.5) * width
    right, up = (grid.ravel() for grid in np.meshgrid(offsets, offsets))
    inner = _refined(
        front,
        (x[flagged, None] + right).ravel(),
        (y[flagged, None] + up).ravel(),
        np.repeat(ignited[flagged], factor**2),
        width / factor,
        factor,
        levels - 1,
    )
    return Threads(base, LaunchRequests(flagged, items, children=inner))


def ignite(cells: int, factor: int, deep: int, shallow: int, *, seed: int) -> Kernels:
    """A kernel of ``cells`` × ``cells`` cells, in random ones of which gas ignites by itself.

    Each is refined into ``factor`` × ``factor`` sub-cells; of ``deep`` cells, all of these again, of ``shallow`` ones
    none, but half of them at random take two iterations. Every other cell and sub-cell takes one.
    """
    rng = np.random.default_rng(seed)
    lit = rng.choice(cells**2, deep + shallow, replace=False)
    lit.sort()
    is_deep = np.zeros(deep + shallow, np.bool_)
    is_deep[rng.choice(deep + shallow, deep, replace=False)] = True
    sub_cells = factor**2
    base = np.where(np.repeat(is_deep, sub_cells), 1, rng.integers(1, 3, sub_cells * len(lit)))
    refined = np.flatnonzero(np.repeat(is_deep, sub_cells))
    again = LaunchRequests(refined, np.full(len(refined), sub_cells), np.ones(len(refined), np.int64))
    requests = LaunchRequests(lit, np.full(len(lit), sub_cells), children=Threads(base, again))
    return (ParentKernel("step", CELL_PARENT, CELL_CHILD, Threads(np.ones(cells**2, np.int64), requests)),)
