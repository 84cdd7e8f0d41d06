"""How few SMs a kernel needs: the right-sizing of LithOS (SOSP 2025, section 5.5).

=================================================== =============================================================
as published                                        here
=================================================== =============================================================
A kernel's latency on ``t`` TPCs is ``m / t + b``,  By rounds of its blocks: on ``s`` SMs it takes as many rounds
from two profiles: on all TPCs, and on one          as these need, each as long as on all. No profile on fewer SMs
                                                    is given. A kernel that is bound by DRAM would need fewer
                                                    still
It gets the fewest TPCs with which it is slower by  The same. Where the last round of blocks is not full, fewer
no more than a limit (latency slip)                 SMs take as long (a slip of 1)
=================================================== =============================================================
"""

from __future__ import annotations

import math

_EXACT = 1e-9
"""By how much a product of a slip and rounds may be short of a whole number."""


def fewest_sms(blocks: float, blocks_per_sm: float, sms: int, slip: float) -> int:
    """The fewest SMs on which so many blocks take at most ``slip`` times as many rounds as on all.

    Args:
        blocks: to run, at least 1.
        blocks_per_sm: that an SM holds, at least 1.
        sms: of the GPU.
        slip: at least 1.

    Returns:
        1 to ``sms``.
    """
    rounds = math.ceil(blocks / (sms * blocks_per_sm))
    allowed = math.floor(slip * rounds + _EXACT)
    return math.ceil(blocks / (allowed * blocks_per_sm))
