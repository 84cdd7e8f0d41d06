"""Budgets by what runs: a reference that is told a budget for each benchmark of a frame."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import Command, SetBudget
from gpusched_env.scheduling.core_column import CoreColumn
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import RunningColumn, View
from gpusched_env.workload.cores.spec import MOST_EVENTS


class ByBenchmark(PassThrough):
    """Every core has the budget of the benchmark whose kernel was launched first and has not ended."""

    reads: Reads = ()
    set_up = SetUp(commands=("budget",))

    def __init__(self, budgets: Mapping[str, int]) -> None:
        """``budgets``: misses a period, by the first part of a kernel's name (``histo`` of ``histo_main``)."""
        self._budgets = budgets

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No core is regulated."""
        super().reset(knowledge, rng)
        self._of = [self._budgets.get(kernel.name.partition("_")[0], MOST_EVENTS) for kernel in knowledge.kernels]
        self._events = MOST_EVENTS

    def decide(self, view: View) -> Command:
        """Budgets first, then whatever is pending."""
        running = view.running.array
        if len(running):
            oldest = running[int(running[:, RunningColumn.ID].argmin())]
            self._events = self._of[int(oldest[RunningColumn.IDENTITY])]
        for row, core in enumerate(view.cores.array):
            settable = core[CoreColumn.TASKS] > 0.0 and core[CoreColumn.SETTABLE] == 1.0
            if settable and core[CoreColumn.BUDGET] != self._events:
                return SetBudget(row, self._events)
        return super().decide(view)
