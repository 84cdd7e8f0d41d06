"""Adam (Kingma and Ba, ICLR 2015), with a learning rate that falls linearly."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MEAN_KEPT: Final = 0.9
SQUARE_KEPT: Final = 0.98
"""Of the running means of gradients and of their squares, by the step."""
LEAST_RATE: Final = 0.05
"""Of the learning rate, at the end."""


def change_by(
    gradient: NDArray[Any], mean: NDArray[Any], square: NDArray[Any], steps: int, rate: float
) -> NDArray[Any]:
    """What weights change by.

    Args:
        gradient: of this step.
        mean: running mean of gradients, which goes on.
        square: of their squares, the same.
        steps: how many there have been, with this one.
        rate: of learning.
    """
    mean += (1.0 - MEAN_KEPT) * (gradient - mean)
    square += (1.0 - SQUARE_KEPT) * (gradient**2 - square)
    spread = np.sqrt(square / (1.0 - SQUARE_KEPT**steps))
    return np.asarray(rate * (mean / (1.0 - MEAN_KEPT**steps)) / (spread + 1e-6))


def rate_at(first: float, done: float) -> float:
    """The learning rate when a share of the training is done."""
    return first * (LEAST_RATE + (1.0 - LEAST_RATE) * max(0.0, 1.0 - done))
