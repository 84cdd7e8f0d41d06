"""Episodes to learn from: from one moment on, by one rule after the other, on the same arrivals."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices import make_device
from gpusched_env.episodes.session import begin
from gpusched_env.games.drawn.agent.network import Weights, numbers_of
from gpusched_env.games.drawn.agent.seeing import REPERTOIRE, Row, SeenSoFar
from gpusched_env.games.drawn.environment.env import INTERVAL_US
from gpusched_env.games.drawn.environment.rules import RULES, ChosenRule
from gpusched_env.games.drawn.problems.splits import drawn
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.set_up import problem_for
from gpusched_env.scheduling.reward import cost_terms, total_cost

DEVICE: Final = "compiled"
STRAYS: Final = 0.03
"""Share of the decisions that are drawn at random in half of the episodes, so that states beside the policy's own way
are seen, too."""
LATEST: Final = 0.8
"""Of an episode's decisions; later ones change little."""
Choose = Callable[[int, Callable[[], Row]], int]
"""A decision's number, from 0, and what shows what is seen, to a place in the repertoire."""


@dataclass(frozen=True, slots=True)
class Fork:
    """What each rule costs that decides from some moment of an episode on, to its end."""

    row: Row
    """What is seen there."""
    costs: NDArray[np.float64]
    """(choices,) of the whole episodes, not below the scenario's floor."""
    decisions: int
    """Of all episodes that were played for it."""


def play_choices(problem: Problem, seed: int, choose: Choose, interval_us: float = INTERVAL_US) -> tuple[float, int]:
    """An episode in which ``choose`` gives the choice at each decision.

    Args:
        problem: as its scenario has it.
        seed: of arrivals and durations.
        choose: gives the choices.
        interval_us: how long a decision stands.

    Returns:
        its cost, and the number of its decisions.
    """
    rules, device = ChosenRule(), make_device(DEVICE)
    own = problem_for(rules, problem)
    begin(rules, own, seed)
    view = device.reset(own, seed, record="jobs")
    seen, number = SeenSoFar(own.knowledge), 0
    while view is not None:
        choice = choose(number, functools.partial(seen.row, view))
        seen.chose(choice)
        rules.choose(RULES.index(REPERTOIRE[choice]), view.time_us + interval_us)
        number += 1
        while view is not None and view.time_us < rules.until_us:
            device.apply(rules.decide(view))
            view = device.advance()
    return total_cost(own, cost_terms(own, device.costs)), number


def play_policy(name: str, seed: int, weights: Weights) -> float:
    """The cost of an episode by a policy, not below the scenario's floor."""
    found = drawn(name)
    cost, _ = play_choices(found.problem(), seed, lambda _, row: int(numbers_of(weights, row()).argmax()))
    return max(cost, found.floor)


def fork_at_first(name: str, seed: int) -> Fork:
    """All rules from the first decision on."""
    found = drawn(name)
    return _fork(found.problem(), found.floor, seed, [])


def fork_on_the_way(name: str, seed: int, weights: Weights, dice: np.random.Generator) -> Fork:
    """All rules from a decision on that is drawn, in an episode that a policy decides until then.

    Args:
        name: of the scenario.
        seed: of the episode.
        weights: of the policy.
        dice: draws all else.
    """
    found = drawn(name)
    problem, choices = found.problem(), list[int]()
    strays = STRAYS * int(dice.integers(2))

    def choose(number: int, row: Callable[[], Row]) -> int:
        straying = dice.random(2) < (strays, 0.8)
        if straying[0]:
            choices.append(int(dice.integers(len(REPERTOIRE))))
        elif strays and straying[1] and number > 1:
            choices.append(choices[-1])
        else:
            choices.append(int(numbers_of(weights, row()).argmax()))
        return choices[-1]

    _, decisions = play_choices(problem, seed, choose)
    at = int(dice.integers(1, max(2, int(LATEST * decisions)))) if decisions > 1 else 0
    fork = _fork(problem, found.floor, seed, choices[:at])
    return Fork(fork.row, fork.costs, fork.decisions + decisions)


def _fork(problem: Problem, floor: float, seed: int, choices: list[int]) -> Fork:
    costs = np.empty(len(REPERTOIRE))
    rows: list[Row] = []
    total = 0

    def choose(choice: int, number: int, row: Callable[[], Row]) -> int:
        if number < len(choices):
            return choices[number]
        if number == len(choices) and not rows:
            rows.append(row())
        return choice

    for choice in range(len(REPERTOIRE)):
        cost, decisions = play_choices(problem, seed, functools.partial(choose, choice))
        costs[choice] = max(cost, floor)
        total += decisions
    return Fork(rows[0], costs, total)
