"""Requests served whole: systems that choose the next request, launch all its kernels, and drop what is too late."""

from __future__ import annotations

import abc
import math

import numpy as np

from gpusched_env.baselines.pending import ID, JOB, TENANT, launchable_rows
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import Command, Launch, Reject, Wait
from gpusched_env.scheduling.view import JobColumn, PendingColumn, View

BACKGROUND = 2
"""Kernels of tenants without an objective in flight at most: one that runs, and one whose launch that hides."""
ARRIVED = int(PendingColumn.JOB_ARRIVED_US)
DUE = int(PendingColumn.DEADLINE_US)
OF_TENANT, NUMBER, JOB_DUE, REJECTABLE = (
    int(column) for column in (JobColumn.TENANT, JobColumn.JOB, JobColumn.DEADLINE_US, JobColumn.REJECTABLE)
)
Request = tuple[int, int]
"""A request by the row of its tenant and the number of its job."""


class InTurn(abc.ABC):
    """Serves requests that were chosen; rejects others that can no longer make it, if it may.

    A serving engine chooses for itself who is in its steps: they are launched as they come.

    Tenants without an objective run while no other has a job: in order of arrival, with few kernels in flight
    (:data:`BACKGROUND`), which a request does not wait for.
    """

    def __init__(self, margin: float, reject: bool) -> None:
        """``margin``: predicted time of a request, in multiples of the profiled turnaround alone. ``reject``: cancel
        requests that can no longer make it, where the scenario offers ``reject``."""
        self._margin, self._reject = margin, reject

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No request runs."""
        self._rejects = self._reject and "reject" in knowledge.commands
        self._predicted_us = [self._margin * tenant.alone_us for tenant in knowledge.tenants]
        """Execution time of a request, by tenant."""
        self._engines = [tenant.max_batch > 1 for tenant in knowledge.tenants]
        self._served: dict[Request, float] = {}
        """Requests that run, in order of choice, and when they were chosen."""

    def decide(self, view: View) -> Command:
        """Cancel what is too late; launch what runs; choose the next request if there is room for one."""
        jobs = view.jobs.array.tolist()
        there = {(int(job[OF_TENANT]), int(job[NUMBER])) for job in jobs}
        for request in [request for request in self._served if request not in there]:
            self.completed(view, request, self._served.pop(request))
        requests = [job for job in jobs if job[JOB_DUE] < math.inf]
        starts_us = self.starts_us(view) if requests and self._rejects else view.time_us
        for job in requests if self._rejects else ():
            tenant, number = int(job[OF_TENANT]), int(job[NUMBER])
            is_late = job[JOB_DUE] - self._predicted_us[tenant] < starts_us
            if is_late and job[REJECTABLE] and (tenant, number) not in self._served:
                return Reject(tenant, number)
        table = view.pending.array
        rows = launchable_rows(view)
        row = min(
            (row for row in rows if self._goes_on(int(table[row, TENANT]), int(table[row, JOB]))),
            key=lambda row: float(table[row, ID]),
            default=None,
        )
        if row is None:
            row = self._next(view, rows) if requests else background(view, rows)
        return Wait(self.looks_us(view)) if row is None else self.launch(view, row)

    def _goes_on(self, tenant: int, job: int) -> bool:
        """Whether a kernel is of a request that runs; the steps of a serving engine are of several, as they come."""
        return (tenant, job) in self._served or self._engines[tenant]

    def _next(self, view: View, rows: list[int]) -> int | None:
        """Row of the first kernel of the request to be served next; ``None``: there is none, or no room for it."""
        table = view.pending.array
        # A tenant's next request may be there before the last one is complete: they go one after the other.
        busy = {tenant for tenant, _ in self._served}
        waiting = [row for row in rows if table[row, DUE] < math.inf and int(table[row, TENANT]) not in busy]
        row = self.choose(view, waiting) if waiting else None
        if row is not None:
            self._served[int(table[row, TENANT]), int(table[row, JOB])] = view.time_us
        return row

    @abc.abstractmethod
    def choose(self, view: View, waiting: list[int]) -> int | None:
        """Which of the kernels that wait, rows of ``view.pending`` of tenants without a request that runs, is the first
        one of the next request; ``None``: none for now."""

    def launch(self, view: View, row: int) -> Launch:
        """The command that launches a kernel, a row of ``view.pending``."""
        return Launch(int(view.pending.array[row, ID]))

    def starts_us(self, view: View) -> float:
        """When a request could start that is chosen now."""
        return view.time_us

    def looks_us(self, view: View) -> float:
        """When to look again where there is nothing to do; ``inf``: at the next event."""
        return math.inf

    def completed(self, view: View, request: Request, chosen_us: float) -> None:
        """A request that ran is over."""
        return


def background(view: View, rows: list[int]) -> int | None:
    """Row of the next kernel while nobody with an objective has a job; ``None``: there is none, or no room."""
    if len(view.running) >= BACKGROUND:
        return None
    table = view.pending.array
    return min(rows, key=lambda row: (float(table[row, ARRIVED]), float(table[row, ID])), default=None)
