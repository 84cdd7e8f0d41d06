"""Conservative co-location: training has so little that inference is safe whatever it does.

Chen, Subramaniyan and Wang (GPUColo, ICDCS 2024) compare with it in their motivating example, where training takes
twice as long as under GPUColo, and in Fig. 11. How little training has there is not said; here it is throttled as much
as GPUColo's inner controller may, for good.
"""

from __future__ import annotations

from typing import ClassVar

from gpusched_env.baselines.open_loop import OpenLoop
from gpusched_env.baselines.ranges import Ranges


class Conservative(OpenLoop):
    """Training always has the longest pause and a small share of the SMs; nothing is measured."""

    ranges: ClassVar[Ranges] = {name: OpenLoop.ranges[name] for name in ("pause_s", "training_share")}

    def __init__(self, pause_s: float = 1.0, training_share: float = 50.0) -> None:
        """``pause_s``, ``training_share``: as of ``open-loop``.

        Raises:
            InputError: a value is out of range.
        """
        super().__init__(pause_s, training_share)
