"""What a scenario leaves to be gained: a plan of the very episode that is played, found by simulating it many times.

Told the arrivals and durations to come, it tries a list of schedulers that are not, takes the cheapest, and searches
for a cheaper plan of its own (:mod:`.plan_search`). The plan is played as it was rehearsed, to the same cost. What
schedulers without foresight cost more is an estimate of what could be gained at most: the optimum costs no more than
the plan, and may well cost less.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from gpusched_env.baselines.rehearsal import (
    PATIENCE,
    JobId,
    JobList,
    JobOrder,
    JobOutcome,
    Rehearsal,
    Rehearsed,
    shares,
)
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.set_up import SetUp, problem_for
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.contract import Scheduler, is_clairvoyant
from gpusched_env.scheduling.reads import EVERYTHING, TRUTH, Reads
from gpusched_env.scheduling.view import View

RULES = (
    JobOrder(),
    JobOrder(slack=0.3, left=1.0),
    JobOrder(slack=1.0, left=1.0),
    JobOrder(slack=1.0, left=0.0),
    JobOrder(slack=0.0, left=1.0),
)
"""Orders of jobs to begin with: between slack and deadline; more by what is left; by deadline; by slack; by what is
left over weight."""
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
        """The plan that gives up from the beginning all that was missed, so that nothing is lost on it; or the best."""
        missed = frozenset(job.id for job in best.jobs if job.missed)
        return _better(best, self._rehearsal.follow(replace(best.plan, given_up=missed), best.cost)) if missed else best

    def _retuned(self, plan: JobOrder) -> JobOrder:
        """The plan with the same changes to jobs, and another rule or other limits."""
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


PORTFOLIO = (
    "pass-through+priority-streams+sjf+srpt+wspt+edf+llf+clockwork+triage+moore+moore(price=1.2)+plan"
    "+orion+fikit+xsched+reef+tally+lithos+preemptive-priority"
)
MOST_ROUNDS = 1_000_000
STREAM = 0x415D
"""Spawn key that keeps the random numbers of the search apart from those of the workload."""


class Hindsight:
    """Reference: the cheapest plan that a search with knowledge of all arrivals and durations has found."""

    # Whatever those of the portfolio read.
    reads: Reads = (*EVERYTHING, TRUTH)
    clairvoyant = True
    set_up = SetUp(commands=("preempt", "partition"), masks=True)
    """What co-location systems bring with them, as some of the portfolio do; partitions cost no time, as in LithOS."""

    def __init__(self, rounds: float = 60, portfolio: str = PORTFOLIO) -> None:
        """``rounds``: episodes that the search may simulate, besides one with each of the portfolio (0 to a
        million); those that
        are begun in the middle or broken off count by their part.

        ``portfolio``: schedulers that are tried first, with ``+`` between them: ``edf(classes=one)+fikit``.

        Raises:
            InputError: ``rounds`` is out of range, there is no such scheduler, or it is clairvoyant itself.
        """
        if not 0 <= rounds <= MOST_ROUNDS:
            raise InputError(f"hindsight: rounds is {rounds}, must be at least 0 and at most {MOST_ROUNDS}")
        self._rounds = rounds
        self.portfolio = [spec.strip() for spec in portfolio.split("+") if spec.strip()]
        """Schedulers that are tried first."""
        for spec in self.portfolio:
            self._member(spec)
        if not self.portfolio and not rounds:
            raise InputError("hindsight: without a portfolio, rounds must be above 0")
        self.chosen: str | JobOrder = JobOrder()
        """What is played: a scheduler of the portfolio, or a plan."""
        self.cost = math.inf
        """What the episode will cost."""

    def see(self, truth: Problem, seed: int) -> None:
        """Find the plan.

        Raises:
            InputError: a scheduler of the portfolio plays another problem than this one: with processes that take
                turns, opened graphs, masked launches, or launches through a process of its own.
        """
        # They bring in Numba, which a list of schedulers does not need.
        from gpusched_env.baselines.rehearsal import Rehearsal
        from gpusched_env.devices.compiled.device import CompiledDevice

        rehearsal = Rehearsal(truth, seed, CompiledDevice())
        self.chosen, self.cost = JobOrder(), math.inf
        for spec in self.portfolio:
            member = self._member(spec)
            if problem_for(member, truth) is not truth:
                raise InputError(
                    f"hindsight: {spec} changes the problem that it plays (contexts, graphs, a window, commands, host "
                    f"time), so that its episode is not one of {truth.scenario.name}; leave it out of the portfolio"
                )
            cost = rehearsal.cost_of(member, self.cost)
            if cost < self.cost:
                self.chosen, self.cost = spec, cost
        if self.cost <= 0.0:
            return
        found = PlanSearch(truth, rehearsal, np.random.default_rng([seed, STREAM])).run(self._rounds)
        if found.cost < self.cost:
            self.chosen, self.cost = found.plan, found.cost

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Begin what was chosen."""
        self._player: Scheduler = self._member(self.chosen) if isinstance(self.chosen, str) else JobList(self.chosen)
        self._player.reset(knowledge, rng)

    def decide(self, view: View) -> Command:
        """Decide as rehearsed."""
        return self._player.decide(view)

    def _member(self, spec: str) -> Scheduler:
        """A scheduler of the portfolio.

        Raises:
            InputError: there is none of that name, or it is told the truth itself.
        """
        # The registry lists this module.
        from gpusched_env.baselines.registry import make_scheduler

        made = make_scheduler(spec)
        if is_clairvoyant(made):
            raise InputError(f"hindsight: {spec} is told the truth itself and can be no part of the portfolio")
        return made
