"""Adaptive mesh refinement around a flame front: a thread a cell; a refined cell's sub-cells refine in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.child_launches.workload.launches import BlockShape, Kernels, ParentKernel, Requests, Threads

PARENT: Final = BlockShape(256, 40)
"""With 40 registers 6 blocks an SM are 75 % of its warps; with fewer than 50 launches the paper's occupancy is 69.7 %
(Figure 16)."""
CHILD: Final = BlockShape(32, 32)

Points = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Front:
    """A closed, wrinkled flame front r(angle) around the middle of the unit square."""

    radius: float
    amplitude: NDArray[np.float64]
    """(modes,) relative height of the wrinkle of 1, 2, 3 ... waves around the front."""
    phase: NDArray[np.float64]
    """(modes,) radians."""

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
        kernels.append(ParentKernel(f"step_{step}", PARENT, CHILD, threads))
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
        return Threads(base, Requests(flagged, items, np.ones_like(items)))
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
    return Threads(base, Requests(flagged, items, children=inner))
