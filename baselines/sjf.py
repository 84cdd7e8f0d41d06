"""One kernel at a time, from the job with the least profiled work left: a reference.

Shortest remaining processing time first (Schrage, *A Proof of the Optimality of the Shortest Remaining
Processing Time Discipline*, Operations Research 1968), preemptive only between kernels: optimal for the
mean turnaround on one machine that cannot be shared. A GPU can: with more kernels in flight short jobs go beside each
other, and :mod:`~gpusched_env.baselines.srpt` is the same rule by stream priorities. What is launched no longer counts
as left.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.baselines.in_flight import FewInFlight
from gpusched_env.baselines.pending import ID, JOB_LEFT, launchable_rows
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View


class ShortestJobFirst(FewInFlight):
    """Reference: one kernel at a time, or a few, from the job with the least profiled device time left."""

    reads: Reads = ("requests", "profiles", "completions")

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing to remember."""

    def decide(self, view: View) -> Command:
        """Launch the next kernel of the shortest job if there is room for it in flight; ties: the older kernel."""
        if self.is_full(view):
            return WAIT
        table = view.pending.array
        row = min(launchable_rows(view), key=lambda r: (float(table[r, JOB_LEFT]), float(table[r, ID])), default=None)
        return WAIT if row is None else Launch(int(table[row, ID]))
