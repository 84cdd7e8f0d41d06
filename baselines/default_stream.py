"""One stream for all: what a GPU does with the requests of several workers of one process that set up no streams.

The baseline of Quach et al. (ECLIP, ISLPED 2025): "all workers on the default 60-CU stream". Kernels run one after the
other, in order of issue. Workers with streams of their own, side by side: :mod:`~gpusched_env.baselines.pass_through`.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.baselines.mask_pools import default_stream
from gpusched_env.baselines.pending import ID, oldest_row
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View


class DefaultStream:
    """Every kernel of every tenant goes to one stream, in order of issue."""

    reads: Reads = ()
    set_up = SetUp(streams=default_stream)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Find the stream; the kernel's own where the scheduler has none."""
        self._row = next((row for row, stream in enumerate(knowledge.streams) if stream.tenant < 0), None)

    def decide(self, view: View) -> Command:
        """Launch the oldest pending kernel."""
        row = oldest_row(view)
        return WAIT if row is None else Launch(int(view.pending.array[row, ID]), stream=self._row)
