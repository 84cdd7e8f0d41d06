"""Plans of an episode, and rehearsing them: the same problem and seed simulated again and again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gpusched_env.baselines.pending import ID, JOB, JOB_LEFT, LAUNCHABLE, TENANT
from gpusched_env.episodes.session import begin
from gpusched_env.errors import DeadlockError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Reject
from gpusched_env.scheduling.contract import Device, Scheduler
from gpusched_env.scheduling.reward import cost_terms, total_cost
from gpusched_env.scheduling.view import PendingColumn, TenantColumn, View

T = TenantColumn
ARRIVED, DEADLINE = int(PendingColumn.JOB_ARRIVED_US), int(PendingColumn.DEADLINE_US)
PATIENCE = 20.0
"""The deadline of jobs without an objective, in multiples of their time alone."""

JobId = tuple[int, int]
"""A job by the row of its tenant and its number."""


@dataclass(frozen=True)
class JobOrder:
    """What a :class:`JobList` follows."""

    slack: float = 1.0
    """Weight of the time from now to a job's deadline less what is left of the job."""
    left: float = 0.5
    """Weight of what is left of the job, over the weight of its tenant (as a multiple of the mean)."""
    first: int = 64
    """Kernels of the first job launched and unfinished at most (>= 1)."""
    others: int = 4
    """Kernels of all other jobs together launched and unfinished at most (>= 0)."""
    late: bool = True
    """Give up jobs that cannot meet their objective any more, or need not before the end of the episode."""
    reject: bool = False
    """Reject what is given up where the scenario offers it; else it comes after all other jobs."""
    shifts: Mapping[JobId, float] = field(default_factory=dict)
    """Microseconds by which single jobs are moved in the order; above 0: later."""
    given_up: frozenset[JobId] = frozenset()
    """Jobs that are given up from the beginning."""
    kept: frozenset[JobId] = frozenset()
    """Jobs that are not given up for being late."""


class Head(NamedTuple):
    """A job in service, as the last of its kernels that was pending showed it."""

    job: int
    arrived_us: float
    deadline_us: float


def shares(knowledge: Knowledge) -> list[float]:
    """Weights of tenants as multiples of their mean, above 0."""
    weights = [tenant.weight for tenant in knowledge.tenants]
    mean = sum(weights) / len(weights) or 1.0
    return [max(weight / mean, 1e-6) for weight in weights]


class JobList:
    """Stream priorities by the order of jobs in a plan; given-up jobs last, or rejected."""

    def __init__(self, plan: JobOrder) -> None:
        self.plan = plan
        self.heads: dict[int, Head] = {}
        """The job in service of each tenant; all that changes during an episode."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No job has arrived."""
        self.heads = {}
        self._weights = shares(knowledge)
        self._alone_us = [tenant.alone_us for tenant in knowledge.tenants]
        self._horizon_us = math.nan
        self._most_urgent = 1 - knowledge.gpu.priorities

    def decide(self, view: View) -> Command:
        """Reject a job, or launch the first kernel that may be, or wait."""
        plan = self.plan
        pending, tenants = view.pending.array.tolist(), view.tenants.array
        if math.isnan(self._horizon_us):
            self._horizon_us = view.horizon_us
        left_us = tenants[:, T.LAUNCHED_LEFT_US].tolist()
        shown = -1
        for row in pending:
            # Tenant after tenant, oldest first: the first row of a tenant is of its job in service.
            if row[TENANT] != shown:
                shown = tenant = int(row[TENANT])
                left_us[tenant] += row[JOB_LEFT]
                if tenant not in self.heads or self.heads[tenant].job != row[JOB]:
                    self.heads[tenant] = Head(int(row[JOB]), row[ARRIVED], row[DEADLINE])
        if plan.reject:
            rejected = self._rejected(view, left_us)
            if rejected is not None:
                return rejected
        rows = [row for row in pending if row[LAUNCHABLE]]
        if not rows:
            return WAIT
        waiting, launched = tenants[:, T.JOBS_WAITING].tolist(), tenants[:, T.KERNELS_LAUNCHED].tolist()
        ranks = {
            tenant: self._rank(view.time_us, tenant, head, left_us[tenant])
            for tenant, head in self.heads.items()
            if waiting[tenant] > 0
        }
        first = min(ranks, key=ranks.__getitem__)
        best = None
        if launched[first] < plan.first:
            best = next((row for row in rows if row[TENANT] == first), None)
        if best is not None:
            return Launch(int(best[ID]), self._most_urgent)
        if sum(launched) - launched[first] >= plan.others:
            return WAIT
        best = min((row for row in rows if row[TENANT] != first), key=lambda row: ranks[int(row[TENANT])], default=None)
        if best is None:
            return WAIT
        rank = ranks[int(best[TENANT])]
        place = sum(other < rank for other in ranks.values())
        return Launch(int(best[ID]), min(0, self._most_urgent + max(1, place)))

    def _rank(self, time_us: float, tenant: int, head: Head, left_us: float) -> tuple[bool, float]:
        """Whether a job is given up, and its place in the order."""
        plan, job = self.plan, (tenant, head.job)
        deadline_us = head.deadline_us
        if deadline_us == math.inf:
            deadline_us = head.arrived_us + PATIENCE * self._alone_us[tenant]
        # The present is the same for all of them.
        number = plan.slack * (deadline_us - left_us) + plan.left * left_us / self._weights[tenant]
        given_up = job in plan.given_up
        if plan.late and not given_up and head.deadline_us < math.inf and job not in plan.kept:
            given_up = time_us + left_us > head.deadline_us or head.deadline_us >= self._horizon_us
        return given_up, number + plan.shifts.get(job, 0.0)

    def _rejected(self, view: View, left_us: list[float]) -> Reject | None:
        """The rejection of a tenant's oldest job if it is given up, and would be late before the end."""
        for tenant, number in enumerate(view.tenants.array[:, T.OLDEST_REJECTABLE].tolist()):
            if number < 0:
                continue
            job, head = (tenant, int(number)), self.heads.get(tenant)
            if job in self.plan.given_up:
                return Reject(*job)
            if self.plan.late and head is not None and head.job == number and job not in self.plan.kept:
                late = view.time_us + left_us[tenant] > head.deadline_us
                if late and head.deadline_us < self._horizon_us:
                    return Reject(*job)
        return None


CHECKPOINTS = 40
"""Parts of an episode, with a snapshot at the beginning of each."""
STEPS = 256
"""Decisions between two looks at the cost."""


class Checkpoint(NamedTuple):
    """A state to go on from: right before a decision."""

    number: int
    """Number of its part of the episode."""
    time_us: float
    cost: float
    """Cost until then."""
    device: Any
    heads: dict[int, Head]
    """Jobs in service as the dispatcher has them, by tenant."""


class JobOutcome(NamedTuple):
    """What became of a job."""

    id: JobId
    arrived_us: float
    ended_us: float
    """When it completed or was rejected; ``inf``: neither."""
    deadline_us: float
    """Its deadline (us); ``inf`` without an objective."""
    missed: bool
    """Whether it missed its objective, by the end of the episode."""

    @property
    def matters_us(self) -> float:
        """How long it matters what else is on the GPU (simulated time, us)."""
        return self.deadline_us if self.missed else self.ended_us


@dataclass
class Rehearsed:
    """A plan and what came of it."""

    plan: JobOrder
    cost: float
    end_us: float = 0.0
    jobs: list[JobOutcome] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)


class Rehearsal:
    """Simulates one episode with schedulers or plans."""

    def __init__(self, truth: Problem, seed: int, device: Device) -> None:
        """``truth`` and ``seed``: what a clairvoyant scheduler sees."""
        self._truth, self._seed, self._device = truth, seed, device
        self.length_us = truth.scenario.horizon_us
        """Length of the first episode that came to its end, before that the horizon: what others are measured by."""
        self.spent = 0.0
        """What was simulated, in episodes."""
        self._ended = False
        reward, programs = truth.scenario.reward, truth.programs
        self._refunds = reward.lost_progress * sum(program.tenant.weight for program in programs)
        """What a cost may fall again: progress is charged as lost until a job of a best-effort tenant completes."""

    def cost_of(self, scheduler: Scheduler, limit: float = math.inf) -> float:
        """What an episode costs with a scheduler that needs no other problem; ``inf`` if that is above ``limit``."""
        begin(scheduler, self._truth, self._seed)
        view = self._device.reset(self._truth, self._seed, record="none")
        return self._finish(scheduler, view, 0.0, limit, None, {})

    def follow(
        self,
        plan: JobOrder,
        limit: float = math.inf,
        like: Rehearsed | None = None,
        between_us: tuple[float, float] = (0.0, math.inf),
    ) -> Rehearsed:
        """What comes of a plan; a cost of ``inf`` if it is above ``limit``, or looks as if it will be above that of
        ``like``.

        Args:
            plan: the plan.
            limit: above it the rest is of no interest.
            like: the outcome of a plan that decides the same before ``between_us``.
            between_us: when the difference begins and when it should have paid: what has cost more by then than
                ``like`` had at that time is broken off.
        """
        scheduler, found = JobList(plan), Rehearsed(plan, math.inf)
        begin(scheduler, self._truth, self._seed)
        earlier = [point for point in like.checkpoints if point.time_us < between_us[0]] if like is not None else []
        view: View | None
        if earlier:
            view = self._device.restore(earlier[-1].device)
            scheduler.heads = dict(earlier[-1].heads)
            # The last one is made again: the device is there.
            found.checkpoints = earlier[:-1]
        else:
            view = self._device.reset(self._truth, self._seed, record="jobs")
        from_us = earlier[-1].time_us if earlier else 0.0
        due = {} if like is None else {p.number: p.cost for p in like.checkpoints if p.time_us > between_us[1]}
        found.cost = self._finish(scheduler, view, from_us, limit, found, due)
        if found.cost < math.inf:
            found.end_us, found.jobs = self._device.time_us, self._outcomes()
        return found

    def _finish(
        self,
        scheduler: Scheduler,
        view: View | None,
        from_us: float,
        limit: float,
        kept: Rehearsed | None,
        due: Mapping[int, float],
    ) -> float:
        """Go on to the end, or to where the cost is above ``limit``, or above what is ``due`` by a part's beginning."""
        device, steps, next_us = self._device, 0, from_us
        try:
            while view is not None:
                if kept is not None and isinstance(scheduler, JobList) and view.time_us >= next_us:
                    part = int(view.time_us * CHECKPOINTS / self.length_us)
                    next_us = (part + 1) * self.length_us / CHECKPOINTS
                    cost = self._cost()
                    if cost > due.get(part, math.inf) + self._refunds:
                        return math.inf
                    kept.checkpoints.append(
                        Checkpoint(part, view.time_us, cost, device.snapshot(), dict(scheduler.heads))
                    )
                device.apply(scheduler.decide(view))
                view = device.advance()
                steps += 1
                # What has been charged stays charged, but for that.
                if steps % STEPS == 0 and self._cost() > limit + self._refunds:
                    return math.inf
        except DeadlockError:
            return math.inf
        finally:
            self.spent += max((device.time_us - from_us) / self.length_us, 0.02)
        if not self._ended:
            self.length_us, self._ended = device.time_us, True
        cost = self._cost()
        return cost if cost <= limit else math.inf

    def _cost(self) -> float:
        return total_cost(self._truth, cost_terms(self._truth, self._device.costs))

    def _outcomes(self) -> list[JobOutcome]:
        timeline, end_us = self._device.timeline, self._device.time_us
        slos_us = [tenant.slo_us for tenant in self._truth.knowledge.tenants]
        found = []

        def add(tenant: int, job: int, arrived_us: float, ended_us: float, missed: bool, answered_us: float) -> None:
            deadline_us = arrived_us + slos_us[tenant]
            missed = missed or min(answered_us, end_us) > deadline_us
            found.append(JobOutcome((tenant, job), arrived_us, ended_us, deadline_us, missed))

        first_tokens = {(row[0], row[1]): row[2] for row in timeline.requests.array.tolist()}
        for row in timeline.jobs.array.tolist():
            add(int(row[0]), int(row[1]), row[2], row[4], False, first_tokens.get((row[0], row[1]), row[4]))
        for row in timeline.rejections.array.tolist():
            add(int(row[0]), int(row[1]), row[2], row[3], True, row[3])
        for row in self._device.view().jobs.array.tolist():
            add(int(row[0]), int(row[1]), row[2], math.inf, False, math.inf)
        return sorted(found, key=lambda job: (job.arrived_us, job.id))
