"""The Mandelbrot set: a parent thread owns a tile of pixels, a child thread one pixel of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.workload.dynamic_parallelism.launches import (
    BlockShape,
    Counts,
    Kernels,
    ParentKernel,
    Requests,
    Threads,
)

PARENT: Final = BlockShape(64, 32)
CHILD: Final = BlockShape(32, 32)
_CHUNK: Final = 1 << 14
"""Points iterated together: their arrays stay in cache."""
_STRIDE: Final = 16
"""Iterations after which points that have left are dropped."""


@dataclass(frozen=True)
class Window:
    """A square part of the complex plane."""

    centre: complex
    width: float


def escape_iterations(points: NDArray[np.complexfloating], limit: int) -> Counts:
    """Iterations of z² + c from z = 0, up to ``limit``, until |z| exceeds 2; at least 1; shape of ``points``."""
    flat = points.ravel()
    chunks = [_escapes(flat[start : start + _CHUNK], limit) for start in range(0, flat.size, _CHUNK)]
    return np.concatenate(chunks).reshape(points.shape)


def _escapes(points: NDArray[np.complexfloating], limit: int) -> Counts:
    counts = np.ones(points.size, np.int64)
    left, a, b = np.arange(points.size), points.real, points.imag
    x, y = a, b
    # A point that has left goes on to infinity, until it is dropped; the comparison stays false.
    with np.errstate(over="ignore", invalid="ignore"):
        for done in range(1, limit, _STRIDE):
            steps = np.zeros(left.size, np.int64)
            inside = np.ones(left.size, bool)
            for _ in range(min(_STRIDE, limit - done)):
                x_squared, y_squared = x * x, y * y
                inside = x_squared + y_squared <= 4
                steps += inside
                x, y = x_squared - y_squared + a, 2 * x * y + b
            counts[left] += steps
            left, a, b, x, y = left[inside], a[inside], b[inside], x[inside], y[inside]
            if not left.size:
                break
    return counts


def render(window: Window, tiles: int, tile: tuple[int, int], limit: int) -> Kernels:
    """One kernel that renders ``tiles`` × ``tiles`` tiles of ``tile`` (rows, columns) pixels over the window.

    A thread's work is the sum of the escape iterations of its pixels, a child thread's those of its pixel.
    Threads follow the rows of tiles; pixels of a tile follow its rows.
    """
    rows, columns = tile
    across, down = (np.linspace(-0.5, 0.5, tiles * pixels, endpoint=False) for pixels in (columns, rows))
    points = window.centre + window.width * (across + 1j * down[:, None])
    by_tile = points.reshape(tiles, rows, tiles, columns).swapaxes(1, 2)
    pixels = Threads(escape_iterations(by_tile, limit).ravel())
    threads = np.arange(tiles**2)
    requests = Requests(threads, np.full(len(threads), rows * columns), children=pixels)
    return (ParentKernel("tiles", PARENT, CHILD, Threads(np.zeros(len(threads), np.int64), requests)),)
