"""Shortest remaining processing time on streams: the job with the least device time left goes first.

L. Schrage, *A Proof of the Optimality of the Shortest Remaining Processing Time Discipline* (Operations Research 1968).
K. K. W. Ng, H. M. Demoulin, V. Liu, *Paella: Low-latency Model Serving with Software-defined GPU Scheduling* (SOSP
2023) serves requests in this order, with a correction for fairness that is left out here. In contrast to
:mod:`~gpusched_env.baselines.sjf`, kernels that leave room share the GPU.
"""

from __future__ import annotations

from gpusched_env.baselines.ranked_streams import RankedStreams, Row
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View


class ShortestRemaining(RankedStreams):
    """SRPT: stream priorities by the profiled device time that a job has left, within a class of tenants."""

    reads: Reads = ("priorities", "requests", "profiles", "completions", "progress")

    def number(self, view: View, kernel: Row, left_us: float) -> float:
        """Profiled device time that the job has left."""
        return left_us
