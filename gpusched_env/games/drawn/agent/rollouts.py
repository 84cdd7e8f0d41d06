"""Episodes to learn from: by each rule alone, and by a policy that draws its choices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices import make_device
from gpusched_env.episodes.session import begin
from gpusched_env.games.drawn.agent.seeing import Row, Seen
from gpusched_env.games.drawn.environment.env import INTERVAL_US
from gpusched_env.games.drawn.environment.rules import RULES, ChosenRule
from gpusched_env.games.drawn.problems.drawing import Drawn
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.set_up import problem_for
from gpusched_env.scheduling.reward import cost_terms, total_cost

DEVICE: Final = "compiled"
LOOKS: Final = tuple(2**power - 1 for power in range(9))
"""Decisions at which an episode of one rule is looked at."""
Choice = Callable[[Seen, "Moment"], int]


@dataclass(frozen=True, slots=True)
class Moment:
    """A decision that is due."""

    number: int
    """From 0."""
    row: Callable[[], Row]
    """What is seen."""


@dataclass(frozen=True, slots=True)
class Played:
    """An episode."""

    cost: float
    grown: NDArray[np.float32]
    """By how much the cost has grown until the next decision, shape ``(decisions,)``; the first holds what was lost
    before it."""


def play_choices(problem: Problem, seed: int, choose: Choice, interval_us: float = INTERVAL_US) -> Played:
    """An episode in which ``choose`` gives a rule at each decision.

    Args:
        problem: as its scenario has it.
        seed: of arrivals and durations.
        choose: what is seen and the moment, to a row of the rules.
        interval_us: how long a decision stands.
    """
    rules, device = ChosenRule(), make_device(DEVICE)
    own = problem_for(rules, problem)
    begin(rules, own, seed)
    view = device.reset(own, seed, record="jobs")
    seen = Seen(own.knowledge)
    costs: list[float] = []
    while view is not None:
        now_us = view.time_us
        rule = choose(seen, Moment(len(costs), functools.partial(seen.row, view)))
        seen.chose(rule)
        rules.choose(rule, now_us + interval_us)
        while view is not None and view.time_us < rules.until_us:
            device.apply(rules.decide(view))
            view = device.advance()
        costs.append(total_cost(own, cost_terms(own, device.costs)))
    return Played(costs[-1] if costs else 0.0, np.diff(costs, prepend=0.0).astype(np.float32))


@dataclass(frozen=True, slots=True)
class Lesson:
    """What each rule alone costs in a scenario, and what is seen on the way."""

    costs: NDArray[np.float64]
    """(rules,)"""
    rule: NDArray[np.int64]
    """(looks,) the rule that decided in the episode that was looked at."""
    number: NDArray[np.int64]
    """(looks,) of the decision."""
    rows: NDArray[np.float16]
    """(looks, WIDTH)"""
    grown: NDArray[np.float32]
    """(rules, decisions) growth of the cost in each episode."""


def lesson_of(found: Drawn, seed: int) -> Lesson:
    """Play each rule alone."""
    problem = found.problem()
    looks: list[tuple[int, int, Row]] = []
    played = []
    for rule in range(len(RULES)):

        def look(_: Seen, moment: Moment, rule: int = rule) -> int:
            if moment.number in LOOKS and (rule == 0 or moment.number > 0):
                looks.append((rule, moment.number, moment.row()))
            return rule

        played.append(play_choices(problem, seed, look))
    rule, number, rows = zip(*looks, strict=True)
    decisions = max(len(one.grown) for one in played)
    grown = np.zeros((len(RULES), decisions), np.float32)
    for place, one in enumerate(played):
        grown[place, : len(one.grown)] = one.grown
    return Lesson(
        costs=np.array([one.cost for one in played]),
        rule=np.array(rule),
        number=np.array(number),
        rows=np.array(rows, np.float16),
        grown=grown,
    )


@dataclass(frozen=True, slots=True)
class Fork:
    """What each rule costs that decides from some moment of an episode on, to its end."""

    number: int
    """Of the decision."""
    row: Row
    """What is seen there."""
    costs: NDArray[np.float64]
    """(rules,) of the whole episodes; NaN: not played."""
    before: float
    """Cost until then."""


def fork_of(problem: Problem, seed: int, choices: list[int], number: int, among: list[int]) -> Fork:
    """Play an episode as ``choices`` say until a decision, and from there on by one rule, for each of some.

    Args:
        problem: as its scenario has it.
        seed: of arrivals and durations.
        choices: rules of the decisions before, at least ``number``.
        number: of the decision, from 0.
        among: the rules to try.
    """
    costs = np.full(len(RULES), np.nan)
    rows: list[Row] = []
    before = 0.0

    def held(rule: int) -> Choice:
        def choose(_: Seen, moment: Moment) -> int:
            if moment.number < number:
                return choices[moment.number]
            if moment.number == number and not rows:
                rows.append(moment.row())
            return rule

        return choose

    for rule in among:
        played = play_choices(problem, seed, held(rule))
        costs[rule] = played.cost
        before = float(played.grown[:number].sum())
    return Fork(number, rows[0], costs, before)
