"""Nexus: models take turns on a GPU in a duty cycle, a batch each; requests that would be late are dropped early.

H. Shen, L. Chen, Y. Jin, L. Zhao, B. Kong, M. Philipose, A. Krishnamurthy, R. Sundaram, *Nexus: A GPU Cluster Engine
for Accelerating DNN-Based Video Analysis* (SOSP 2019), sections 6.1 to 6.3, and its artefact
(github.com/uwsampl/nexus), below ``src/nexus``.

=============================================== ============================== =========================================
As published                                    Where                          Here
=============================================== ============================== =========================================
Of a session of rate ``r`` and objective ``L``  squishy bin packing            As published, by the tenants' mean rates
the batch is the largest ``b`` with ``b / r``                                  and ``b`` times the time of a request, as
and the time of a batch within ``L``                                           recorded jobs have their batch
Sessions on one GPU share the shortest duty     the same; ``calc_cycle``       As published: so many requests of one
cycle, and get the batches that come in it                                     tenant go one after the other in its turn
Sessions that do not fit go to another GPU      the same                       Left out: there is one
A GPU runs the sessions' batches in turn        ``GpuExecutorMultiBatching``   As published. A request's kernels go at
                                                                               once, no other's until it is complete
... or each session by itself                   ``GpuExecutorNoMultiBatching`` ``parallel``; off by default
A request whose deadline is before the end of a ``GetBatchTaskSlidingWindow``  As published (``reject``), of that one
batch that begins now is dropped, so that the                                  request, where the scenario offers it, as
batch is of those that can be in time                                          soon as it is so; else it is served
=============================================== ============================== =========================================

Queries of several stages, and batches of the first layers that models have in common, are left out. Here tenants
without an objective run while no other has a job.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from gpusched_env.baselines.in_turn import InTurn
from gpusched_env.baselines.pending import ID, TENANT
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View


class Nexus(InTurn):
    """Duty cycles: tenants take turns, with the requests of a cycle each; rejects what would be late, if it may."""

    reads: Reads = ("objectives", "requests", "profiles", "rates", "completions")
    ranges: ClassVar[Ranges] = {
        "parallel": Choice((True, False)),
        "margin": Range(1.0, 2.0),
        "reject": Choice((True, False)),
    }

    def __init__(self, parallel: bool = False, margin: float = 1.0, reject: bool = True) -> None:
        """
        Args:
            parallel: a request of each tenant runs at one time; tenants do not take turns.
            margin: predicted execution time, in multiples of the profiled turnaround alone (above 0).
            reject: drop requests that can no longer make it, where the scenario offers ``reject``.

        Raises:
            InputError: a value is out of range.
        """
        if not 0.0 < margin < math.inf or not all(isinstance(choice, bool) for choice in (parallel, reject)):
            given = f"parallel {parallel!r}, margin {margin}, reject {reject!r}"
            raise InputError(f"nexus: {given}; must be true or false, above 0 and finite, true or false")
        super().__init__(margin, reject)
        self._parallel = parallel

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Size the batches; it is the first tenant's turn."""
        super().reset(knowledge, rng)
        self._batches = batches(
            [tenant.jobs_a_us for tenant in knowledge.tenants],
            [tenant.slo_us for tenant in knowledge.tenants],
            self._predicted_us,
        )
        self._turn, self._left = 0, self._batches[0]

    def choose(self, view: View, waiting: list[int]) -> int | None:
        """The next request of the tenant whose turn it is, or of the next one that has any."""
        table = view.pending.array
        if self._parallel:
            return min(waiting, key=lambda row: float(table[row, ID]))
        if self._served:
            return None
        first = {int(table[row, TENANT]): row for row in sorted(waiting, key=lambda row: -float(table[row, ID]))}
        if self._turn not in first or self._left == 0:
            tenants = len(self._batches)
            self._turn = min(first, key=lambda tenant: (tenant - self._turn - 1) % tenants)
            self._left = self._batches[self._turn]
        self._left -= 1
        return first[self._turn]


def batches(jobs_a_us: list[float], slo_us: list[float], takes_us: list[float]) -> list[int]:
    """Requests of each tenant that go in one turn of the duty cycle that all share, at least one.

    Args:
        jobs_a_us: rate of each tenant; 0 where it is not known.
        slo_us: objective; ``inf`` without one, of whom nothing follows for the cycle.
        takes_us: time of a request.
    """
    cycles_us = [
        max(1, math.floor(slo / (takes + 1.0 / rate))) / rate
        for rate, slo, takes in zip(jobs_a_us, slo_us, takes_us, strict=True)
        if rate > 0.0 and slo < math.inf
    ]
    cycle_us = min(cycles_us, default=0.0)
    # A cycle is a whole number of the shortest session's requests: no fraction of one is rounded up.
    return [max(1, math.ceil(cycle_us * rate - 1e-9)) for rate in jobs_a_us]
