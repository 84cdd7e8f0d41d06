"""BWLOCK++: cores of the CPU are throttled while a real-time kernel runs on the GPU.

W. Ali, H. Yun, *Protecting Real-Time GPU Kernels on Integrated CPU-GPU SoC Platforms* (ECRTS 2018); mechanism and
constants of the public artifact wali-ku/BWLOCK-GPU, commit a4b5769.

======================================== =========================== ==========================================
As published                             Where                       Here
======================================== =========================== ==========================================
Launches take a lock, synchronisations   library before the runtime  The device's (``cores:`` of the scenario)
give it back
While it counts, each core has a budget  kernel module               ``events``, of every core; set once
of misses a period of 1 ms
TFS: who was throttled is charged rho    scheduler                   ``rho``: 0 (CFS), 1 or 3
times that time at the next tick
Kernels                                  CUDA                        Launched at once, in order
======================================== =========================== ==========================================
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.baselines.ranges import Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import Command, SetBudget
from gpusched_env.scheduling.view import View
from gpusched_env.workload.cores.spec import MOST_EVENTS


class Bwlock(PassThrough):
    """Every core has the same budget while a lock counts; kernels go straight to their streams."""

    ranges: ClassVar[Ranges] = {"events": Range(16, 16_384, log=True), "rho": Range(0.0, 3.0)}
    always: ClassVar[bool] = False
    """Whether budgets bind also while no lock counts."""

    def __init__(self, events: int = 1024, rho: float = 0.0) -> None:
        """
        Args:
            events: misses that a core has in a period, 1 to 163840 (1024: 64 MB/s).
            rho: by how much of the time for which it was throttled a process is charged; 0: CFS, 1: TFS-1, 3: TFS-3.

        Raises:
            InputError: a value is out of range.
        """
        if not 1 <= events <= MOST_EVENTS:
            raise InputError(f"bwlock: events is {events}, must be 1 to {MOST_EVENTS}")
        self.events = int(events)
        self.set_up = SetUp(commands=("budget",), rho=rho)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Budgets are set before anything else."""
        self._set = 0

    def decide(self, view: View) -> Command:
        """Set the budgets once, then launch whatever is pending."""
        cores = view.cores
        while self._set < len(cores):
            row, self._set = self._set, self._set + 1
            if (cores.budget[row], cores.always[row]) != (self.events, self.always):
                return SetBudget(row, self.events, self.always)
        return super().decide(view)
