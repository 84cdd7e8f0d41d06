"""Earliest start: behind what it waits for, in its stream, a kernel goes only if it begins sooner there.

In a stream nothing has to be synchronised: what is launched behind a kernel may use what that writes. So where a
window's streams hold several launches (:attr:`~gpusched_env.scenarios.window.KernelWindow.depth`), a chain runs without
a way to the host and back. But of two kernels that wait for the same one, the second would wait for the first, too; it
is held back if it could begin sooner in another stream, once the end of what it waits for is known and it has been
launched there. (The rule of list schedulers with a cost of communication, ETF: Hwang et al., SIAM J. Computing 18(2),
1989.)
"""

from __future__ import annotations

import numpy as np

from gpusched_env.baselines.acs import changed
from gpusched_env.baselines.pending import ID, launchable_rows
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.view import PendingColumn, View


class EarliestStart:
    """The oldest kernel that begins nowhere sooner than where it can go now, by the profiles."""

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

    def window(self, offered: KernelWindow | None, gpu: GpuSpec) -> KernelWindow:
        """That of the scenario with the scheduler's options."""
        window = changed(offered or KernelWindow(), "earliest-start", **self._given)
        self._costs = Costs(window, gpu)
        return window

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing to remember."""

    def decide(self, view: View) -> Command:
        """Launch the oldest such kernel; wait for a synchronisation if there is none."""
        ids = view.pending.id
        for row in sorted(launchable_rows(view), key=lambda row: float(ids[row])):
            if self._costs.begins_soonest_now(view, row):
                return Launch(int(ids[row]))
        return WAIT


class Costs:
    """What it costs to be behind a launch, and what to wait until its end is known."""

    def __init__(self, window: KernelWindow, gpu: GpuSpec) -> None:
        self._window = window
        self._gap_us = gpu.timing.stream_gap_us

    def begins_soonest_now(self, view: View, row: int) -> bool:
        """Whether a launchable launch, a row of ``view.pending``, begins later wherever it could go later."""
        launch = view.pending.array[row]
        queued_us = launch[PendingColumn.QUEUED_US]
        if queued_us == 0.0:
            return True
        known_us = self._known_in_us(view, launch) + self._window.launch_us
        return bool(max(queued_us + self._gap_us, self._window.launch_us) <= known_us)

    def _known_in_us(self, view: View, launch: np.ndarray) -> float:
        """When the ends of all that a launch waits for are known; of what waits for nothing: when a stream is idle."""
        running, waits_for = view.running, view.dependencies
        mine = waits_for.waits_for[waits_for.launch == launch[ID]]
        left_us = np.maximum(np.nan_to_num(running.profiled_us) - running.elapsed_us, 0.0)
        ends_us = []
        for stream in np.unique(running.stream):
            here = running.stream == stream
            # In order of launch; what it waits for is in one stream.
            last = np.flatnonzero(here & np.isin(running.id, mine)) if mine.size else np.flatnonzero(here)
            if last.size:
                ends_us.append(float(left_us[: last[-1] + 1][here[: last[-1] + 1]].sum()))
        return min(ends_us, default=0.0) + self._window.sync_us
