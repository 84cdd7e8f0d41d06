"""Rows of an observation, in compiled code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import called
from gpusched_env.envs.features import RunningFeature


@called
def owner(running: NDArray[np.float32], kernel: int, slots: int) -> int:
    """Slot of a launched kernel's tenant; -1 for an empty row, which is a row of zeros.

    Args:
        running: table of the observation.
        kernel: its row.
        slots: tenant rows.
    """
    return int(running[kernel, RunningFeature.TENANT] * slots + 0.5) - 1
