"""The thread in which a scheduler decides, while another one drives the GPU in compiled code.

Both look at the same numbers and tables (``Mail`` and ``Seen`` of
:mod:`~gpusched_env.devices.cuda.real_time.tables`): the one that drives fills the tables and asks, the other reads them
until it answers. So nothing that Python does keeps a launch waiting.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

import numpy as np

from gpusched_env.devices.compiled.snapshot_view import ordered_dependencies
from gpusched_env.devices.cuda.real_time.tables import NO_ANSWER, OWN, STANDS, Figure, Ints, Mail, Seen, Table
from gpusched_env.planning.dispatcher import DecidesForIntervals
from gpusched_env.planning.on_time import MOST_JOBS
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.view import (
    DependencyColumn,
    JobColumn,
    PendingColumn,
    RunningColumn,
    TenantColumn,
    View,
    ViewTable,
)

RUNNING_ROWS = 64
"""Launched and unfinished of a tenant, on average: dispatchers launch sixteen at most."""


def empty_seen(problem: Problem) -> Seen:
    """Tables for the views of a problem."""
    tenants = len(problem.programs)
    pending = tenants * problem.scenario.lookahead
    return Seen(
        pending=np.zeros((pending, len(PendingColumn))),
        running=np.zeros((RUNNING_ROWS * tenants, len(RunningColumn))),
        tenants=np.zeros((tenants, len(TenantColumn))),
        jobs=np.zeros((max(MOST_JOBS, 4 * tenants), len(JobColumn))),
        dependencies=np.zeros((4 * pending, len(DependencyColumn))),
        rows=np.zeros(len(Table), np.int64),
        numbers=np.zeros(len(Figure)),
    )


def view_of(problem: Problem, seen: Seen) -> View:
    """What was seen, as a View."""
    pending, running, jobs, pairs = (int(rows) for rows in seen.rows)
    shown = seen.pending[:pending].copy()
    return View(
        time_us=float(seen.numbers[Figure.TIME_US]),
        pending=ViewTable(shown, PendingColumn),
        running=ViewTable(seen.running[:running].copy(), RunningColumn),
        tenants=ViewTable(seen.tenants.copy(), TenantColumn),
        jobs=ViewTable(seen.jobs[:jobs].copy(), JobColumn),
        dependencies=ViewTable(ordered_dependencies(shown, seen.dependencies[:pairs]), DependencyColumn),
        sms=problem.gpu.sms,
        busy_sms=int(seen.numbers[Figure.BUSY_SMS]),
        occupancy=float(seen.numbers[Figure.OCCUPANCY]),
        dram=float(seen.numbers[Figure.DRAM]),
        horizon_us=problem.scenario.horizon_us,
    )


class Decider:
    """Decides whenever it is asked, in a thread of its own, as long as a ``with`` statement lasts."""

    def __init__(self, scheduler: DecidesForIntervals, problem: Problem) -> None:
        self._scheduler, self._problem = scheduler, problem
        self.mail: Ints = np.zeros(len(Mail), np.int64)
        self.seen = empty_seen(problem)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="decider", daemon=True)
        self._command: Command | None = None
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def take_command(self) -> Command:
        """The scheduler's own command, which it gave instead of a decision.

        Raises:
            BaseException: what it raised.
        """
        self.mail[Mail.ANSWER] = NO_ANSWER
        if self._error is not None:
            raise self._error
        assert self._command is not None, "it answered so"
        return self._command

    def _run(self) -> None:
        while not self._over.is_set():
            if not self.mail[Mail.QUESTION]:
                time.sleep(0)
                continue
            self.mail[Mail.QUESTION] = 0
            try:
                self._decide()
            except BaseException as error:
                self._error = error
                self.mail[Mail.ANSWER] = OWN

    def _decide(self) -> None:
        self._command = self._scheduler.stand(view_of(self._problem, self.seen))
        if self._command is not None:
            self.mail[Mail.ANSWER] = OWN
            return
        assert self._scheduler.dispatcher is not None
        serve = self._scheduler.dispatcher.decided
        self.mail[Mail.TENANT], self.mail[Mail.OTHERS] = serve.tenant, serve.others
        self.mail[Mail.ANSWER] = STANDS
