"""Tally: best-effort kernels run only while no urgent kernel does, and give way within a turnaround bound.

W. Zhao, A. Jayarajan, G. Pekhimenko, *Tally: Non-Intrusive Performance Isolation for Concurrent Deep Learning
Workloads* (ASPLOS 2025), priority-aware kernel scheduling (section 4): kernels are transformed so that they run
in slices of blocks, or as persistent blocks that look at a flag between two blocks of work. For each best-effort
kernel a profiler picks the fastest form whose estimated turnaround, from the urgent kernel's arrival to the best
effort's departure, is below a bound.

The contract has no launch of a slice. A drain at the next block boundary does the same: kernels longer than
the bound are drained (their turnaround is the time of a block), shorter ones run as they are. What the
transformations cost at run time is not modelled.
"""

from __future__ import annotations

import math

import numpy as np

from gpusched_env.baselines.evict import evict
from gpusched_env.baselines.two_classes import TwoClasses
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, View

P, R = PendingColumn, RunningColumn


class Tally:
    """Block-level slicing: best-effort kernels only in idle time, drained between blocks within a turnaround bound."""

    commands = ("preempt",)

    def __init__(self, turnaround_us: float = 31.6) -> None:
        """``turnaround_us``: how long best-effort work may keep an urgent kernel waiting (default of the artifact).

        Raises:
            InputError: ``turnaround_us`` is out of range.
        """
        if not turnaround_us > 0.0:
            raise InputError(f"tally: turnaround_us is {turnaround_us}, must be above 0")
        self._bound_us = turnaround_us

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing is in flight."""
        self._classes = TwoClasses(knowledge)
        self._gpu = knowledge.gpu
        self._turnaround_us: dict[int, float] = {}

    def decide(self, view: View) -> Command:
        """Urgent kernels at once; then clear the GPU for them; best-effort kernels when there are none."""
        row = self._classes.urgent_row(view)
        if row is not None:
            return self._classes.launch(view, row)
        best_effort = self._classes.running(view, urgent=False)
        if self._classes.running(view, urgent=True):
            long = [row for row in best_effort if view.running.array[row, R.PROFILED_US] > self._bound_us]
            return evict(view, long, "drain", self._gpu) or WAIT
        in_flight_us = sum(self._turnaround_us[int(view.running.array[row, R.ID])] for row in best_effort)
        for row in self._classes.best_effort_rows(view):
            own_us = self._turnaround_of(view, row)
            # What was launched behind a preempted kernel waits for it: it always comes back.
            preempted = view.pending.array[row, P.PREEMPTED]
            if preempted or not best_effort or in_flight_us + own_us <= self._bound_us:
                launch = self._classes.launch(view, row)
                self._turnaround_us[launch.launch] = own_us
                return launch
        return WAIT

    def _turnaround_of(self, view: View, row: int) -> float:
        """How long a kernel keeps the GPU once it has to go: its duration, or a block's if it is drained."""
        kernel = view.pending.array[row]
        duration_us = float(kernel[P.PROFILED_US])
        if duration_us <= self._bound_us:
            return duration_us
        return duration_us / math.ceil(float(kernel[P.BLOCKS] / (self._gpu.sms * kernel[P.BLOCKS_PER_SM])))
