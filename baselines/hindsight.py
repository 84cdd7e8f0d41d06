"""What a scenario leaves to be gained: a plan of the very episode that is played, found by simulating it many times.

Told the arrivals and durations to come, it tries a list of schedulers that are not, takes the cheapest, and searches
for a cheaper plan of its own (:mod:`.plan_search`). The plan is played as it was rehearsed, to the same cost. What
schedulers without foresight cost more is an estimate of what could be gained at most: the optimum costs no more than
the plan, and may well cost less.
"""

from __future__ import annotations

import math

import numpy as np

from gpusched_env.baselines.job_list import JobList, JobOrder
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.set_up import SetUp, problem_for
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.reads import EVERYTHING, TRUTH, Reads
from gpusched_env.scheduling.scheduler import Scheduler, is_clairvoyant
from gpusched_env.scheduling.view import View

PORTFOLIO = (
    "pass-through+priority-streams+sjf+srpt+wspt+edf+llf+clockwork+triage+moore+moore(price=1.2)+plan"
    "+orion+fikit+xsched+reef+tally+lithos+preemptive-priority"
)
MOST_ROUNDS = 1_000_000
STREAM = 0x415D
"""Keeps the random numbers of the search apart from those of the workload."""


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
        from gpusched_env.baselines.plan_search import PlanSearch
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
        """As rehearsed."""
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
