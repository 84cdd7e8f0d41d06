"""Earliest start: behind what it waits for, in its stream, a kernel goes only if it begins sooner there.

In a stream nothing has to be synchronised: what is launched behind a kernel may use what that writes. So where a
window's streams hold several launches (:attr:`~gpusched_env.scenarios.window.KernelWindow.depth`), a chain runs
without a way to the host and back. But of two kernels that wait for the same one, the second would wait for the
first, too; it is held back if it could begin sooner in another stream, once the end of what it waits for is known
and it has been launched there. (The rule of list schedulers with a cost of communication, ETF: Hwang et al., SIAM J.
Computing 18(2), 1989.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.baselines.acs import window_with
from gpusched_env.baselines.pending import ID, launchable_rows
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import PendingColumn, View


class EarliestStart:
    """The oldest kernel that begins nowhere sooner than where it can go now, by the profiles."""

    reads: Reads = ("profiles", "completions", "dependencies")

    def __init__(
        self,
        size: int | None = None,
        streams: int | None = None,
        depth: int | None = None,
        launch_us: float | None = None,
        sync_us: float | None = None,
    ) -> None:
        """Fields of :class:`~gpusched_env.scenarios.window.KernelWindow`; ``None``: the scenario's, or the default.

        Raises:
            InputError: one is out of range.
        """
        self._given = {"size": size, "streams": streams, "depth": depth, "launch_us": launch_us, "sync_us": sync_us}
        self.set_up = SetUp(window=self._window)

    def _window(self, offered: KernelWindow | None, gpu: GpuSpec) -> KernelWindow:
        """The scenario's window with the scheduler's options."""
        return window_with(offered or KernelWindow(), "earliest-start", **self._given)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Take the costs."""
        self._knowledge = knowledge

    def decide(self, view: View) -> Command:
        """Launch the oldest such kernel; wait for a synchronisation if there is none."""
        table = view.pending.array
        for row in sorted(launchable_rows(view), key=lambda row: float(table[row, ID])):
            if begins_soonest_now(table[row], self._knowledge):
                return Launch(int(table[row, ID]))
        return WAIT


def begins_soonest_now(launch: NDArray[np.float64], knowledge: Knowledge) -> bool:
    """Whether a launchable launch would begin later in another stream; ``launch``: a row of ``view.pending``.

    What waits for nothing gets the stream that holds least, and is never held back.
    """
    if launch[PendingColumn.UPSTREAM] == 0.0 or knowledge.window is None:
        return True
    elsewhere_us = knowledge.window.sync_us + knowledge.window.launch_us
    return bool(launch[PendingColumn.BETWEEN_US] + knowledge.gpu.timing.stream_gap_us <= elsewhere_us)
