"""A search for the plan of an episode that costs least: rules first, then changes to single jobs.

Plans are compared by simulating the episode. A change that costs no more is kept: where the cost counts misses, most
changes cost the same, and the way to a better plan leads over such ones.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from gpusched_env.baselines.job_list import PATIENCE, JobId, JobOrder, shares
from gpusched_env.baselines.rehearsal import JobOutcome, Rehearsal, Rehearsed
from gpusched_env.scenarios.problem import Problem

RULES = (
    JobOrder(),
    JobOrder(slack=0.3, left=1.0),
    JobOrder(slack=1.0, left=1.0),
    JobOrder(slack=1.0, left=0.0),
    JobOrder(slack=0.0, left=1.0),
)
"""Between slack and deadline; more by what is left; by deadline; by slack; by what is left over weight."""
CHANGES: tuple[dict[str, Any], ...] = (
    {"others": 2},
    {"others": 8},
    {"late": False},
    {"others": 1},
    {"first": 8},
    {"others": 16},
    {"left": 0.75},
    {"left": 0.25},
)
"""What is tried of the best rule, one after the other."""

RETUNED = 0.08
"""Share of the later changes that are to the rule, not to jobs: they need whole episodes."""
PAYS = 0.15
"""How long after the jobs that it concerns a change should have paid, as a share of the episode."""


class PlanSearch:
    """Improves plans of one episode."""

    def __init__(self, truth: Problem, rehearsal: Rehearsal, rng: np.random.Generator) -> None:
        """``rng``: of the changes that are tried."""
        self._rehearsal, self._rng = rehearsal, rng
        self._rejects = "reject" in truth.scenario.commands
        self._alone_us = [tenant.alone_us for tenant in truth.knowledge.tenants]
        self._shares = shares(truth.knowledge)

    def run(self, episodes: float) -> Rehearsed:
        """The best plan found.

        Args:
            episodes: what may be simulated, as a number of whole episodes.
        """
        rehearsal, until = self._rehearsal, self._rehearsal.spent + episodes
        best = Rehearsed(RULES[0], math.inf)
        for rule in self._rules():
            if rehearsal.spent < until and best.cost > 0.0:
                best = _better(best, rehearsal.follow(rule, best.cost))
        for change in CHANGES:
            if rehearsal.spent < until and best.cost > 0.0:
                best = _better(best, rehearsal.follow(replace(best.plan, **change), best.cost))
        if rehearsal.spent < until and best.cost > 0.0:
            best = self._settled(best)
        while rehearsal.spent < until and best.jobs and best.cost > 0.0:
            if self._rng.random() < RETUNED:
                best = _better(best, rehearsal.follow(self._retuned(best.plan), best.cost))
                continue
            plan, concerned = self._changed(best)
            from_us, until_us = min(job.arrived_us for job in concerned), max(job.matters_us for job in concerned)
            between_us = from_us, until_us + PAYS * rehearsal.length_us
            best = _better(best, rehearsal.follow(plan, best.cost, best, between_us))
        return best

    def _rules(self) -> list[JobOrder]:
        """Each rule as it is, and before that so that it rejects what it gives up, where the scenario offers that."""
        kinds = (True, False) if self._rejects else (False,)
        return [replace(rule, reject=reject) for rule in RULES for reject in kinds]

    def _settled(self, best: Rehearsed) -> Rehearsed:
        """All that was missed is given up from the beginning, so that nothing is lost on it."""
        missed = frozenset(job.id for job in best.jobs if job.missed)
        return _better(best, self._rehearsal.follow(replace(best.plan, given_up=missed), best.cost)) if missed else best

    def _retuned(self, plan: JobOrder) -> JobOrder:
        """The same changes to jobs, another rule or other limits."""
        rng = self._rng
        match int(rng.integers(4)):
            case 0:
                return replace(plan, others=int(2.0 ** (5.0 * rng.random())))
            case 1:
                return replace(plan, first=int(2.0 ** (1.0 + 6.0 * rng.random())))
            case 2:
                return replace(plan, slack=float(rng.random()))
            case _:
                return replace(plan, left=float(rng.random()))

    # ---- changes to single jobs ------------------------------------------------------------------

    def _changed(self, best: Rehearsed) -> tuple[JobOrder, list[JobOutcome]]:
        """A plan that treats one job, or two that compete, otherwise; and these jobs."""
        plan, rng = best.plan, self._rng
        job = self._troubled(best)
        rivals = [other for other in best.jobs if other.id != job.id and _compete(job, other)]
        served = [other for other in rivals if other.id not in plan.given_up and not other.missed]
        how = rng.random()
        if not rivals or how < 0.15:
            if job.missed and job.id not in plan.given_up:
                return _giving_up(plan, job.id), [job]
            return _moved(plan, job.id, -self._stretch_us(job)), [job]
        if how < 0.45 and served:
            # One that takes long makes room for several.
            other = self._picked(served, [self._alone_us[other.id[0]] / self._weight(other) for other in served])
            if how < 0.3:
                return _giving_up(plan, other.id), [other]
            return _moved(_giving_up(plan, other.id), job.id, 0.0), [job, other]
        candidates = served or rivals
        other = candidates[int(rng.integers(len(candidates)))]
        ahead_us = self._number_us(plan, job) - self._number_us(plan, other)
        if how < 0.65:
            # Right before the other one.
            return _moved(plan, job.id, -ahead_us - 1.0), [job]
        if how < 0.85:
            # The other one right behind it.
            return _moved(_moved(plan, other.id, ahead_us + 1.0), job.id, 0.0), [job, other]
        return _moved(plan, other.id, self._stretch_us(other)), [other]

    def _number_us(self, plan: JobOrder, job: JobOutcome) -> float:
        """Where a job is in the order before anything of it has run, about."""
        left_us = self._alone_us[job.id[0]]
        deadline_us = job.deadline_us if job.deadline_us < math.inf else job.arrived_us + PATIENCE * left_us
        number_us = plan.slack * (deadline_us - left_us) + plan.left * left_us / self._shares[job.id[0]]
        return number_us + plan.shifts.get(job.id, 0.0)

    def _troubled(self, best: Rehearsed) -> JobOutcome:
        """A job that was missed; where none was, or now and then, one that took long."""
        missed = [job for job in best.jobs if job.missed]
        if missed and self._rng.random() < 0.9:
            return self._picked(missed, [self._weight(job) for job in missed])
        took = [min(job.ended_us, best.end_us) - job.arrived_us for job in best.jobs]
        sizes = [self._weight(job) * us / self._alone_us[job.id[0]] for job, us in zip(best.jobs, took, strict=True)]
        return self._picked(best.jobs, sizes)

    def _picked(self, jobs: list[JobOutcome], sizes: list[float]) -> JobOutcome:
        """One of ``jobs``, in proportion to ``sizes``."""
        edges = np.cumsum(np.maximum(sizes, 1e-9))
        return jobs[min(int(np.searchsorted(edges, self._rng.random() * edges[-1])), len(jobs) - 1)]

    def _weight(self, job: JobOutcome) -> float:
        return self._shares[job.id[0]]

    def _stretch_us(self, job: JobOutcome) -> float:
        """How far a job is moved in the order: from a fraction of its time alone to some times it."""
        return float(self._alone_us[job.id[0]] * 0.25 * 2.0 ** (5.0 * self._rng.random()))


def _better(one: Rehearsed, other: Rehearsed) -> Rehearsed:
    """The plan that costs less; if they cost the same, ``other``."""
    return other if other.cost <= one.cost and other.cost < math.inf else one


def _compete(job: JobOutcome, other: JobOutcome) -> bool:
    """Whether the other one was in the system while it mattered to the job."""
    return other.arrived_us < job.matters_us and other.ended_us > job.arrived_us


def _giving_up(plan: JobOrder, job: JobId) -> JobOrder:
    return replace(plan, given_up=plan.given_up | {job}, kept=plan.kept - {job})


def _moved(plan: JobOrder, job: JobId, by_us: float) -> JobOrder:
    """A job is moved in the order, and no longer given up."""
    shifts = {**plan.shifts, job: plan.shifts.get(job, 0.0) + by_us}
    return replace(plan, shifts=shifts, given_up=plan.given_up - {job})
