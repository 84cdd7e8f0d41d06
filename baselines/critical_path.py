"""List scheduling by critical paths: of the kernels that are ready, the one with the longest way to the end goes first.

Told the whole graph of the program and how long each kernel will take, and with room in its window for all of it; it
launches and synchronises at the same cost as the others, so what it gains is what better decisions could be worth.
(Hu 1961; Graham 1969: within a factor of two of the best there is.)
"""

from __future__ import annotations

import msgspec
import numpy as np

from gpusched_env.baselines.acs import window_with
from gpusched_env.baselines.earliest_start import begins_soonest_now
from gpusched_env.baselines.iterations import Iterations
from gpusched_env.baselines.pending import ID, JOB, TENANT, launchable_rows
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import JobProgram
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import DEVICE_OPS

WHOLE = 1024
"""Launches that its window holds."""


class CriticalPath:
    """The ready kernel with the longest chain of kernels behind it first, by the true graph and durations.

    Where streams hold several launches, only one that begins nowhere sooner (:mod:`earliest_start`).
    """

    reads: Reads = ("requests", "profiles", "completions", "dependencies", "truth")
    clairvoyant = True

    def __init__(
        self,
        streams: int | None = None,
        depth: int | None = None,
        launch_us: float | None = None,
        sync_us: float | None = None,
    ) -> None:
        """Fields of :class:`~gpusched_env.scenarios.window.KernelWindow`; ``None``: the scenario's, or the default.

        Raises:
            InputError: one is out of range.
        """
        self._given = {"streams": streams, "depth": depth, "launch_us": launch_us, "sync_us": sync_us}
        self.set_up = SetUp(window=self._window)

    def _window(self, offered: KernelWindow | None, gpu: GpuSpec) -> KernelWindow:
        """The scenario's window with the scheduler's options, and room for the whole graph, which needs no check."""
        whole = msgspec.structs.replace(offered or KernelWindow(), size=WHOLE, checked_by="nobody")
        return window_with(whole, "critical-path", **self._given)

    def see(self, truth: Problem, seed: int) -> None:
        """Take the graphs of the episode."""
        window = truth.window or KernelWindow()
        # A chain goes through one stream if it may.
        step_us = window.launch_us + window.sync_us if window.depth == 1 else truth.gpu.timing.stream_gap_us
        self._ranks = [[ranks_us(job, step_us) for job in program.variants] for program in truth.programs]
        """Times of the longest chains that begin with kernels, by tenant, iteration and kernel in order of issue."""
        self._iterations = Iterations(truth, seed)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing was issued."""
        self._knowledge = knowledge
        self._issued: dict[tuple[int, int], int] = {}
        """Kernels by tenant and job."""
        self._rank_us: dict[int, float] = {}
        """Time of the longest chain that begins with a launch, by launch."""

    def decide(self, view: View) -> Command:
        """Launch the ready kernel of the highest rank; ties go to the older one."""
        table = view.pending.array
        rows = [row for row in launchable_rows(view) if begins_soonest_now(table[row], self._knowledge)]
        if not rows:
            return WAIT
        for row in sorted(range(len(table)), key=lambda row: float(table[row, ID])):
            launch, key = int(table[row, ID]), (int(table[row, TENANT]), int(table[row, JOB]))
            if launch not in self._rank_us:
                number = self._issued[key] = self._issued.get(key, -1) + 1
                self._rank_us[launch] = self._ranks[key[0]][self._iterations.of(*key)][number]
        best = max(rows, key=lambda row: (self._rank_us[int(table[row, ID])], -float(table[row, ID])))
        return Launch(int(table[best, ID]))


def ranks_us(job: JobProgram, step_us: float) -> list[float]:
    """Time of the longest chain that begins with each kernel, in order of issue; a link takes ``step_us``
    besides the kernels."""
    entries = [op for op in job.ops if op.kind in DEVICE_OPS]
    behind_us = [0.0] * job.marks
    ranks = []
    for op in reversed(entries):
        rank_us = op.device_us + step_us + behind_us[op.mark]
        for mark in op.after:
            behind_us[mark] = max(behind_us[mark], rank_us)
        ranks.append(rank_us)
    return [rank for rank, op in zip(reversed(ranks), entries, strict=True) if op.identity >= 0]
