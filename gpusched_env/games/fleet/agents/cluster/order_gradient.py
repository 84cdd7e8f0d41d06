"""Policy gradients for the rule of the queue (REINFORCE; Williams, Machine Learning 1992).

Several runs of the same stream are played at a time. What pods wait for from a choice on, with a discount by time, is
its cost. Less than what follows from the same moment in the mean of the runs, and than what follows from as many GPUs
that are waited for at it (a line that is fitted to the runs), is an advantage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from gpusched_env.games.fleet.agents.cluster.order import TERMS, DrawnOrder

Floats = NDArray[np.float64]
SMALL: Final = 1e-9


def advantages(waited: Floats, discount: float) -> Floats:
    """By run and bin, (runs, bins), in standard deviations.

    Args:
        waited: (runs, bins) what pods waited for.
        discount: by the bin.
    """
    to_come = lfilter([1.0], [1.0, -discount], waited[:, ::-1], axis=1)[:, ::-1]
    before = np.pad(waited[:, :-1], ((0, 0), (1, 0)))
    cost, waits = (of - of.mean(axis=0) for of in (to_come, before))
    cost -= waits * ((cost * waits).sum(axis=0) / ((waits**2).sum(axis=0) + SMALL)).mean()
    found: Floats = -cost / (cost.std() + SMALL)
    return found


def gradient_of(runs: Sequence[DrawnOrder], worth: Floats, bin_ms: int) -> Floats:
    """The gradient of the advantages, (TERMS,), per run.

    Args:
        runs: of the same stream.
        worth: (runs, bins) advantages.
        bin_ms: length of a bin.
    """
    total = np.zeros(TERMS)
    for one, of in zip(runs, worth, strict=True):
        count = one.count[0]
        total += of[one.at_ms[:count] // bin_ms] @ one.slope[:count]
    return total / len(runs)
