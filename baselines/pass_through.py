"""No scheduler at all: what CUDA does with streams of equal priority.

Amert et al., *GPU Scheduling on the NVIDIA TX2* (RTSS 2017), rules G1-G4 and X1: a kernel enters its
stream when the host issues it; the block dispatcher takes kernels in the order in which they reach the
heads of their streams ("leftover" policy).
"""

from __future__ import annotations

import numpy as np

from gpusched_env.baselines.pending import ID, oldest_row
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View


class PassThrough:
    """Every kernel goes straight to its tenant's stream, all with the same priority."""

    reads: Reads = ()

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing to remember."""

    def decide(self, view: View) -> Command:
        """Launch the oldest pending kernel."""
        row = oldest_row(view)
        return WAIT if row is None else Launch(int(view.pending.array[row, ID]))
