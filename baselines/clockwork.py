"""Clockwork: one request at a time, the one that has to start first; what cannot make its deadline is not served.

A. Gujarati, R. Karimi, S. Alzayat, W. Hao, A. Kaufmann, Y. Vigfusson, J. Mace, *Serving DNNs like Clockwork:
Performance Predictability from the Bottom Up* (OSDI 2020), and its artefact, ``infer5_scheduler.h`` and ``.cpp`` in
``src/clockwork/controller/infer5``, for one GPU whose models are loaded.

======================================== ================================= ===========================================
As published                             Where                             Here
======================================== ================================= ===========================================
A GPU runs one inference at a time       the paper                         ``concurrent``, 1. Its kernels go at once;
                                                                           no other request's do until it is complete
Of all requests the one goes first that  ``Model::new_strategies``         As published; deadlines are by the tenants'
has the earliest latest start: deadline                                    objectives. Only those are asked whose
less predicted execution time                                              first kernel is there, as inputs are there
A request that can no longer make it is  ``Model::try_dequeue``            As published (``reject``) where the scenario
cancelled before it runs                                                   offers it; else such requests go after all
                                                                           that can make it, in the same order
Execution time is a high percentile of   ``estimate_percentile``,          The tenant's profiled turnaround alone,
the last ten measurements                ``estimate_window_size``          times ``margin``
A deadline is met some time before it is ``buffer``                        Left out: ``margin`` has a like effect
due
The GPU is given work some time before   ``schedule_ahead``                Left out: streams run side by side, so that
it is free                                                                 the next request would share the GPU
Requests of a model are batched          ``batch_size``                    Left out: recorded jobs have their batch
Models are loaded and evicted            ``LoadTracker``                   Left out: all are on the GPU
======================================== ================================= ===========================================

All requests have a deadline there. Here tenants without an objective run while no other has a job: in order of
arrival, with few kernels in flight (:data:`BACKGROUND`), which a request does not wait for.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from gpusched_env.baselines.pending import ID, JOB, TENANT, launchable_rows
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Reject
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import JobColumn, PendingColumn, View

BACKGROUND = 2
"""Kernels of tenants without an objective in flight at most: one that runs, and one whose launch that hides."""
ARRIVED = int(PendingColumn.JOB_ARRIVED_US)
DUE = int(PendingColumn.DEADLINE_US)
OF_TENANT, NUMBER, JOB_DUE, REJECTABLE = (
    int(column) for column in (JobColumn.TENANT, JobColumn.JOB, JobColumn.DEADLINE_US, JobColumn.REJECTABLE)
)


class Clockwork:
    """One request at a time, the earliest latest start first; rejects what cannot make its deadline, if it may."""

    reads: Reads = ("objectives", "requests", "profiles", "completions")
    ranges: ClassVar[Ranges] = {
        "concurrent": Range(1, 4),
        "margin": Range(1.0, 2.0),
        "reject": Choice((True, False)),
    }

    def __init__(self, concurrent: int = 1, margin: float = 1.0, reject: bool = True) -> None:
        """
        Args:
            concurrent: requests that run at one time (at least 1; one in the paper).
            margin: predicted execution time, in multiples of the profiled turnaround alone (above 0).
            reject: cancel requests that can no longer make it, where the scenario offers ``reject``.

        Raises:
            InputError: a value is out of range.
        """
        if concurrent < 1 or not 0.0 < margin < math.inf:
            given = f"concurrent {concurrent}, margin {margin}"
            raise InputError(f"clockwork: {given}; concurrent must be at least 1, margin above 0 and finite")
        if not isinstance(reject, bool):
            raise InputError(f"clockwork: reject is {reject!r}, must be true or false")
        self._concurrent, self._margin, self._reject = concurrent, margin, reject

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No request runs."""
        self._rejects = self._reject and "reject" in knowledge.commands
        self._predicted_us = [self._margin * tenant.alone_us for tenant in knowledge.tenants]
        """Execution time of a request, by tenant."""
        self._served: set[tuple[int, int]] = set()
        """Requests that run: tenant and job."""

    def decide(self, view: View) -> Command:
        """Cancel what is too late; launch what runs; choose the next request if there is room for one."""
        jobs = view.jobs.array.tolist()
        self._served &= {(int(job[OF_TENANT]), int(job[NUMBER])) for job in jobs}
        requests = [job for job in jobs if job[JOB_DUE] < math.inf]
        for job in requests if self._rejects else ():
            tenant, number = int(job[OF_TENANT]), int(job[NUMBER])
            is_late = job[JOB_DUE] - self._predicted_us[tenant] < view.time_us
            if is_late and job[REJECTABLE] and (tenant, number) not in self._served:
                return Reject(tenant, number)
        table = view.pending.array
        rows = launchable_rows(view)
        row = min(
            (row for row in rows if (int(table[row, TENANT]), int(table[row, JOB])) in self._served),
            key=lambda row: float(table[row, ID]),
            default=None,
        )
        if row is None:
            row = self._next(view, rows) if requests else self._background(view, rows)
        return WAIT if row is None else Launch(int(table[row, ID]))

    def _next(self, view: View, rows: list[int]) -> int | None:
        """Row of the first kernel of the request to be served next; ``None``: there is none, or no room for it."""
        if len(self._served) >= self._concurrent:
            return None
        table = view.pending.array
        # A tenant's next request may be there before the last one is complete: they go one after the other.
        busy = {tenant for tenant, _ in self._served}

        def order(row: int) -> tuple[bool, float, float]:
            starts_us = float(table[row, DUE]) - self._predicted_us[int(table[row, TENANT])]
            return starts_us < view.time_us, starts_us, float(table[row, ID])

        waiting = (row for row in rows if table[row, DUE] < math.inf and int(table[row, TENANT]) not in busy)
        row = min(waiting, key=order, default=None)
        if row is not None:
            self._served.add((int(table[row, TENANT]), int(table[row, JOB])))
        return row

    @staticmethod
    def _background(view: View, rows: list[int]) -> int | None:
        """Row of the next kernel while nobody with an objective has a job; ``None``: there is none, or no room."""
        if len(view.running) >= BACKGROUND:
            return None
        table = view.pending.array
        return min(rows, key=lambda row: (float(table[row, ARRIVED]), float(table[row, ID])), default=None)
