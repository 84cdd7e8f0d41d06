"""Unlocked: cores of the CPU take what they want of the memory.

The co-runners of Ali and Yun (BWLOCK++, ECRTS 2018) without a lock: kernels go straight to their streams.
"""

from __future__ import annotations

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.scenarios.set_up import SetUp


class Unlocked(PassThrough):
    """No core has a budget, and processes are scheduled by CFS; kernels go straight to their streams."""

    set_up = SetUp(rho=0.0)
