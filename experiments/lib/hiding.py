"""Hiding parts of what is known from a scheduler: random numbers stand in their place.

A scheduler that does not read a part decides as if nothing had happened; one that does loses what the part is worth to
it. What is hidden are the parts of :mod:`gpusched_env.scheduling.reads`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

import numpy as np

from gpusched_env.devices import make_device
from gpusched_env.episodes.session import run_episode
from gpusched_env.scenarios.knowledge import KernelKnowledge, Knowledge, TenantKnowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.profiles import JobDemand
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.contract import Scheduler
from gpusched_env.scheduling.reads import PARTS
from gpusched_env.scheduling.showing import LazyView
from gpusched_env.scheduling.view import View, ViewTable

Decisions = list[tuple[float, Command]]
TABLES = ("pending", "running", "tenants", "jobs", "dependencies", "cores")
MOST = 100
"""Random numbers are whole ones from 1 to this, so that they can stand for counts and times."""
MOST_ROWS = 3
"""Of a table whose rows are hidden."""


class Disturbed:
    """A scheduler that is shown random numbers for parts of what is known, and is otherwise as it was."""

    def __init__(self, scheduler: Scheduler, hidden: Collection[str], seed: int = 0) -> None:
        """``hidden``: words of :data:`~gpusched_env.scheduling.reads.PARTS`. ``seed``: of the random numbers."""
        self._scheduler = scheduler
        self._parts = [PARTS[word] for word in hidden]
        # Columns of different tables with the same number are equal.
        self._columns = {(type(column), column) for part in self._parts for column in part.columns}
        self._fields = {field for part in self._parts for field in part.fields}
        self._rng = np.random.default_rng(seed)

    def __getattr__(self, name: str) -> Any:
        # What a session asks of it: commands, contexts, a window, and so on.
        return getattr(self._scheduler, name)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Tell it something else."""
        tenants = {field for part in self._parts for field in part.of_tenants}
        kernels = {field for part in self._parts for field in part.of_kernels}
        changed = dataclasses.replace(
            knowledge,
            tenants=tuple(self._replaced(tenant, tenants) for tenant in knowledge.tenants),
            kernels=tuple(self._replaced(kernel, kernels) for kernel in knowledge.kernels),
        )
        self._scheduler.reset(changed, rng)

    def decide(self, view: View) -> Command:
        """Show it something else."""
        whole = view.complete() if isinstance(view, LazyView) else view
        changed: dict[str, Any] = {name: self._table(name, getattr(whole, name)) for name in TABLES}
        for field in self._fields.difference(TABLES):
            changed[field] = type(getattr(whole, field))(self._rng.integers(1, MOST))
        return self._scheduler.decide(dataclasses.replace(whole, **changed))

    def _table(self, name: str, table: ViewTable) -> ViewTable:
        columns = table._columns
        if name in self._fields:
            shape = int(self._rng.integers(0, MOST_ROWS + 1)), len(columns)
            return ViewTable(self._rng.integers(1, MOST, shape).astype(np.float64), columns)
        hidden = [column for column in columns if (columns, column) in self._columns]
        array = table.array.copy()
        array[:, hidden] = self._rng.integers(1, MOST, (len(array), len(hidden)))
        return ViewTable(array, columns)

    def _replaced(self, known: TenantKnowledge | KernelKnowledge, fields: Collection[str]) -> Any:
        def number(value: Any) -> Any:
            drawn = int(self._rng.integers(1, MOST))
            if isinstance(value, JobDemand):
                return dataclasses.replace(value, **{one.name: float(drawn) for one in dataclasses.fields(value)})
            return (drawn, 1, 1) if isinstance(value, tuple) else type(value)(drawn)

        return dataclasses.replace(known, **{field: number(getattr(known, field)) for field in sorted(fields)})


class Noting:
    """A scheduler whose decisions are noted."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.decisions: list[tuple[float, Command]] = []
        """When it decided, in microseconds, and what."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Tell it of an episode."""
        self._scheduler.reset(knowledge, rng)

    def decide(self, view: View) -> Command:
        """Ask it, and note the answer."""
        time_us = view.time_us
        self.decisions.append((time_us, self._scheduler.decide(view)))
        return self.decisions[-1][1]


def decisions(scheduler: Scheduler, problem: Problem, hidden: Collection[str] = (), seed: int = 0) -> Decisions | None:
    """The decisions of an episode in which parts are hidden; ``None``: it failed for that.

    Raises:
        Exception: the scheduler failed though nothing was hidden.
    """
    noted = Noting(Disturbed(scheduler, hidden))
    try:
        run_episode(noted, problem, make_device("compiled"), seed)
    except Exception:  # Whatever random numbers lead to.
        if not hidden:
            raise
        return None
    return noted.decisions
