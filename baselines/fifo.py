"""One kernel at a time, in the order in which hosts issued them: a reference, which nobody would run.

The serial execution that FIKIT (arXiv 2311.10359) and ACS (arXiv 2401.12377) compare with: no two kernels share the
GPU, and nobody is urgent. With more kernels in flight it hides launches behind what runs, and lets kernels share the
GPU; with enough of them it is :mod:`~gpusched_env.baselines.pass_through`.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.baselines.in_flight import FewInFlight
from gpusched_env.baselines.pending import ID, oldest_row
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.view import View


class Fifo(FewInFlight):
    """Reference: one kernel at a time over all tenants, or a few, first issued first run."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing to remember."""

    def decide(self, view: View) -> Command:
        """Launch the oldest pending kernel if there is room for it in flight."""
        row = None if self.is_full(view) else oldest_row(view)
        return WAIT if row is None else Launch(int(view.pending.array[row, ID]))
