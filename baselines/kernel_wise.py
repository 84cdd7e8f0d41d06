"""Kernel-wise masks: each kernel runs on the fewest SMs that do not slow it, in streams allocated beforehand.

KW-Prealloc of Quach et al. (ECLIP, ISLPED 2025): the hardware queue changes at nearly every kernel, and with each
change a kernel waits for a barrier. What slowdown is "not noticeable" the paper does not say: ``slowdown``.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpusched_env.baselines.mask_pools import Masked
from gpusched_env.baselines.ranges import Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scheduling.reads import Reads


class KernelWise(Masked):
    """Every kernel goes to the stream of the fewest SMs that do not slow it."""

    reads: Reads = ("profiles", "shapes")
    ranges: ClassVar[Ranges] = {"slowdown": Range(0.0, 1.0)}

    def __init__(self, slowdown: float = 0.05) -> None:
        """``slowdown``: how much longer than on all SMs a kernel may take alone, as a share (>= 0).

        Raises:
            InputError: ``slowdown`` is negative.
        """
        if not slowdown >= 0.0:
            raise InputError(f"slowdown is {slowdown}, must be at least 0: kernels do not run faster on fewer SMs")
        self._slowdown = slowdown

    def sms_of(self, tenant: int, identity: int, kernel: np.ndarray) -> int:
        """The kernel's threshold: the fewest SMs that do not slow it."""
        return self.threshold(tenant, identity, self._slowdown)
