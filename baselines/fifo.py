"""One kernel at a time, in the order in which hosts issued them.

The serial execution that FIKIT (arXiv 2311.10359) and ACS (arXiv 2401.12377) compare with: no two
kernels share the GPU, and nobody is urgent.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.baselines.pending import ID, oldest_row
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.view import View


class Fifo:
    """One kernel at a time over all tenants, first issued first run."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing to remember."""

    def decide(self, view: View) -> Command:
        """Launch the oldest pending kernel if the GPU is free."""
        row = None if len(view.running) else oldest_row(view)
        return WAIT if row is None else Launch(int(view.pending.array[row, ID]))
