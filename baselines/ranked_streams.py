"""Stream priorities by the rank of jobs: what rules share that order the jobs in service by a number.

A rule of machine scheduling says which job goes first; a GPU takes an order as stream priorities, of which it has few
(Amert et al., RTSS 2017, rules A1 and A2). Every kernel goes straight to its stream, as under
:mod:`~gpusched_env.baselines.priority_streams`, but each class of tenants is ordered within, job by job. Priorities
take effect between blocks, and what was launched keeps its own: so the kernels of all jobs but the first can be held
back.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, Literal, get_args

import numpy as np

from gpusched_env.baselines.pending import ID, JOB, JOB_LEFT, LAUNCHABLE, TENANT, oldest_by_tenant
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.room import Room
from gpusched_env.scheduling.view import JobColumn, TenantColumn, View

LAUNCHED = int(TenantColumn.KERNELS_LAUNCHED)
LAUNCHED_LEFT = int(TenantColumn.LAUNCHED_LEFT_US)
WAITING = int(TenantColumn.JOBS_WAITING)
JOB_TENANT, JOB_NUMBER = int(JobColumn.TENANT), int(JobColumn.JOB)
DEADLINE = int(JobColumn.DEADLINE_US)
REJECTABLE = int(JobColumn.REJECTABLE)
Classes = Literal["priority", "two", "one"]
Row = Sequence[float]
UNLIMITED: Final = 256
"""Kernels in flight: more than streams hold at the usual depth."""
Rank = tuple[int, float]
"""Class of a tenant and number of its job; lower goes first."""


def ranked_priorities(ranks: Iterable[Rank], levels: int) -> dict[Rank, int]:
    """Stream priority (0 or negative, lower is more urgent) of each rank; the least urgent one gets 0.

    Each class has a level of its own while there are enough; those left tell the ranks of the most urgent classes
    apart. What has no level of its own shares one with what goes before it.

    Args:
        ranks: of jobs, in any order.
        levels: stream priority levels of the GPU (>= 1).
    """
    ordered = sorted(set(ranks))
    spare = levels - len({class_ for class_, _ in ordered})
    found: dict[Rank, int] = {}
    level = 0
    for before, rank in zip(ordered[:1] + ordered, ordered, strict=False):
        if rank[0] != before[0]:
            level += 1
        elif rank != before and spare > 0:
            level, spare = level + 1, spare - 1
        found[rank] = min(level, levels - 1)
    least = max(found.values(), default=0)
    return {rank: level - least for rank, level in found.items()}


class RankedStreams(abc.ABC):
    """Every kernel goes straight to its stream, at a priority by the rank of its job among those in service."""

    waits_for: Room | None = None
    ranges: ClassVar[Ranges] = {
        "classes": Choice(get_args(Classes)),
        "depth": Range(1, 64, log=True),
        "others": Range(1, UNLIMITED, log=True),
    }

    def __init__(self, classes: Classes = "priority", depth: int = 16, others: int = UNLIMITED) -> None:
        """``classes``: what goes before the rule: ``priority``, the tenants' urgencies; ``two``, the most urgent
        tenants before all others; ``one``, nothing. ``depth``: kernels of a tenant launched and unfinished at most
        (>= 1): what waits in a stream keeps the priority that it was launched with. ``others``: kernels launched and
        unfinished at most (>= 1) of all tenants together whose jobs do not rank first.

        Raises:
            InputError: no such ``classes``, or a number is out of range.
        """
        if classes not in get_args(Classes) or depth < 1 or others < 1:
            raise InputError(
                f"classes {classes!r}, depth {depth}, others {others}; must be {', '.join(get_args(Classes))}; "
                "at least 1; at least 1"
            )
        self._classes, self._depth, self._others = classes, depth, others

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No job has a rank."""
        self._knowledge = knowledge
        urgencies = [tenant.priority for tenant in knowledge.tenants]
        self._class = {
            "priority": urgencies,
            "two": [int(urgency > min(urgencies)) for urgency in urgencies],
            "one": [0] * len(urgencies),
        }[self._classes]
        tenants = len(urgencies)
        # Rules that do more than launch have to be asked without room, too, and take it back.
        self.waits_for = Room(np.full(tenants, self._depth), np.full(tenants, np.inf))
        self._heads: dict[int, Row] = {}
        """The oldest kernel of each tenant that was pending last."""
        self._seen: View | None = None
        self._oldest_seen: dict[int, list[float]] = {}

    def decide(self, view: View) -> Command:
        """Launch the next kernel of the first job that has one, at the priority of its rank."""
        launched = view.tenants.array[:, LAUNCHED].tolist()
        kernels = [k for k in view.pending.rows if k[LAUNCHABLE] and launched[int(k[TENANT])] < self._depth]
        if not kernels:
            return WAIT
        ranks = self._ranks(view)
        if self._others < UNLIMITED:
            first = min(ranks.values())
            if sum(launched[tenant] for tenant, rank in ranks.items() if rank != first) >= self._others:
                kernels = [kernel for kernel in kernels if ranks[int(kernel[TENANT])] == first]
                if not kernels:
                    return WAIT
        kernel = min(kernels, key=lambda kernel: (ranks[int(kernel[TENANT])], kernel[ID]))
        priorities = ranked_priorities(ranks.values(), self._knowledge.gpu.priorities)
        return Launch(int(kernel[ID]), priorities[ranks[int(kernel[TENANT])]])

    def first(self, view: View) -> int | None:
        """Row of the tenant whose job ranks first, after :meth:`decide` of the same view; ``None``: no job is there."""
        ranks = self._ranks(view)
        return min(ranks, key=lambda tenant: (ranks[tenant], tenant), default=None)

    def _ranks(self, view: View) -> dict[int, Rank]:
        """Ranks of tenants with a job in service, or with kernels of one that is over (children of its last)."""
        pending = self._oldest(view)
        self._heads.update(pending)
        ranks = {}
        for tenant, kernel in self._heads.items():
            figures = view.tenants.rows[tenant]
            if figures[WAITING] > 0 or tenant in pending:
                left_us = figures[LAUNCHED_LEFT] + (kernel[JOB_LEFT] if tenant in pending else 0.0)
                ranks[tenant] = self.rank(view, kernel, left_us)
        return ranks

    def _oldest(self, view: View) -> dict[int, list[float]]:
        """The oldest pending kernel of each tenant, found once a view."""
        if self._seen is not view:
            self._seen, self._oldest_seen = view, oldest_by_tenant(view)
        return self._oldest_seen

    def left_us(self, view: View, job: Row) -> float:
        """Profiled device time left of a job, a row of ``view.jobs``; all of it until a kernel of it has been seen."""
        tenant = int(job[JOB_TENANT])
        head = self._heads.get(tenant)
        oldest = self._oldest(view).get(tenant)
        if oldest is not None and oldest[JOB] == job[JOB_NUMBER]:
            return view.tenants.rows[tenant][LAUNCHED_LEFT] + oldest[JOB_LEFT]
        if head is not None and head[JOB] == job[JOB_NUMBER]:
            return view.tenants.rows[tenant][LAUNCHED_LEFT]
        return self._knowledge.tenants[tenant].alone_us

    def hopeless(self, view: View, job: Row, margin: float = 1.0) -> bool:
        """Whether a job, a row of ``view.jobs``, cannot be in time even if it has the GPU from now on.

        ``margin``: how much longer than alone it is expected to take.
        """
        return bool(job[DEADLINE] - view.time_us < margin * self.left_us(view, job))

    def rank(self, view: View, kernel: Row, left_us: float) -> Rank:
        """Class of a tenant and number of its job; arguments as for :meth:`number`."""
        return self._class[int(kernel[TENANT])], self.number(view, kernel, left_us)

    @abc.abstractmethod
    def number(self, view: View, kernel: Row, left_us: float) -> float:
        """What orders a tenant's job within its class, lower first.

        Args:
            view: the present.
            kernel: the tenant's oldest kernel that is, or last was, pending: a row of ``view.pending`` of that time.
            left_us: profiled device time of what is left of the job, launched kernels included.
        """
