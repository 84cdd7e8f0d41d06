"""Rehearsing an episode: the same problem and seed simulated again and again, from where plans begin to differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gpusched_env.baselines.job_list import Head, JobId, JobList, JobOrder
from gpusched_env.episodes.session import begin
from gpusched_env.errors import DeadlockError
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.device import Device
from gpusched_env.scheduling.reward import cost_terms, total_cost
from gpusched_env.scheduling.scheduler import Scheduler
from gpusched_env.scheduling.view import View

CHECKPOINTS = 40
"""Parts of an episode, with a snapshot at the beginning of each."""
STEPS = 256
"""Decisions between two looks at the cost."""


class Checkpoint(NamedTuple):
    """A state to go on from: right before a decision."""

    number: int
    """Of its part of the episode."""
    time_us: float
    cost: float
    """Until then."""
    device: Any
    heads: dict[int, Head]
    """Of the dispatcher."""


class JobOutcome(NamedTuple):
    """What became of a job."""

    id: JobId
    arrived_us: float
    ended_us: float
    """When it completed or was rejected; ``inf``: neither."""
    deadline_us: float
    """``inf`` without an objective."""
    missed: bool
    """Its objective, by the end of the episode."""

    @property
    def matters_us(self) -> float:
        """Until when it matters what else is on the GPU."""
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
        """Of the first episode that came to its end, before that the horizon: what others are measured by."""
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
