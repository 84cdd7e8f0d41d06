"""The Mandelbrot set: a parent thread owns a tile of pixels, a child thread one pixel of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import cached
from gpusched_env.games.child_launches.workload.launches import (
    BlockShape,
    Counts,
    Kernels,
    ParentKernel,
    Requests,
    Threads,
)

PARENT: Final = BlockShape(32, 32)
"""16 such blocks an SM are a quarter of its warps, and so is the occupancy in the paper's Figure 16, whatever runs."""
CHILD: Final = BlockShape(32, 32)
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


@cached(error_model="numpy", _nrt=True)
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
    requests = Requests(threads, np.full(len(threads), rows * columns), children=pixels)
    return (ParentKernel("tiles", PARENT, CHILD, Threads(np.zeros(len(threads), np.int64), requests)),)
