"""Least laxity first on streams: the job that can least afford to wait goes first.

A. K. Mok, *Fundamental Design Problems of Distributed Systems for the Hard-Real-Time Environment* (thesis, MIT 1983):
laxity is the time to the deadline less the processing time left. XSched (OSDI 2025) has a policy by laxity too. A
kernel keeps the priority that its job's laxity gave it when it was launched.
"""

from __future__ import annotations

from gpusched_env.baselines.edf import EarliestDeadline
from gpusched_env.baselines.ranked_streams import Row
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View


class LeastLaxity(EarliestDeadline):
    """LLF: stream priorities by how long a job could still wait, within a class of tenants."""

    reads: Reads = ("priorities", "objectives", "requests", "profiles", "completions", "progress")

    def number(self, view: View, kernel: Row, left_us: float) -> float:
        """Laxity in microseconds, below 0 where the objective will be missed."""
        return super().number(view, kernel, left_us) - view.time_us - left_us
