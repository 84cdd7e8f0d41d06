"""Training by rollouts: what departing from the policy would have saved, tried out in the simulator, and fitted.

Episodes are played by the policy as it is. In some states of them the environment is saved, and a few ways of letting
a tenant go first are tried, each for ``hold`` decisions with the policy going on after that, beside going by the plan.
Arrivals are the same in all of them, so that what an action saves shows at once, where whole episodes drown it in
chance. A linear function of the terms of the serve rule (:mod:`gpusched_env.agents.policies.serve`) is fitted to what
was saved (ridge regression over all states tried so far), and is the policy of the next round: one step of policy
improvement each (M. G. Lagoudakis, R. Parr, *Reinforcement learning as classification*, ICML 2003, with regression in
place of the classifier).

The rule has never more to go by than an observation. That the tried futures are those of the episode makes them
noise around the mean that is fitted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.model_file import Decide
from gpusched_env.agents.policies.serve import ALONE, BESIDE, MARGINS, ServeTerm, Way, serve_terms, shapes
from gpusched_env.agents.policy_file import Weights
from gpusched_env.agents.shaping import lost_in_plan
from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.environments import (
    DRAWN_SEEDS,
    SEEDS_EACH,
    TRAINING_SEED,
    problem_source,
    training_changes,
)
from gpusched_env.agents.training.evolution import RuleTraining
from gpusched_env.agents.training.validation import TrainingRun
from gpusched_env.devices.compiled.arena import Saved
from gpusched_env.devices.compiled.layout import DECIDE
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.planning.interval import Serve
from gpusched_env.scenarios.problem import Problem

Floats = NDArray[np.float64]

TRIED_AT_A_TIME = 32
"""Environments for what is tried."""
QUEUED = 4 * TRIED_AT_A_TIME
"""Trials that are collected before they are played, lest environments stand idle."""


TRIED = {Way.BESIDE: BESIDE, Way.ALONE: ALONE}
"""Ways that are tried, and which of a tenant's actions they are."""


@dataclass(slots=True)
class RidgeFit:
    """Ridge regression for each way that is tried: sums over all pairs of terms and gain."""

    products: Floats = field(default_factory=lambda: np.zeros((len(TRIED), len(ServeTerm), len(ServeTerm))))
    gains: Floats = field(default_factory=lambda: np.zeros((len(TRIED), len(ServeTerm))))
    pairs: int = 0

    def add(self, way: int, terms: Floats, gain: float) -> None:
        """Add one more pair of terms and gain."""
        self.products[way] += np.outer(terms, terms)
        self.gains[way] += gain * terms
        self.pairs += 1

    def weights(self, penalty: float, margin: float) -> Weights:
        """Weights of the rule that departs from the plan where more than ``margin`` is gained; all 0 before anything is
        known.

        Args:
            penalty: on the squares of the fitted weights.
            margin: in multiples of the mean weight.
        """
        value = np.zeros(shapes()["value"])
        if self.pairs:
            for way in TRIED:
                fitted = np.linalg.solve(self.products[way] + penalty * np.eye(len(ServeTerm)), self.gains[way])
                value[way] = fitted
                # What the rule has without weights.
                value[way, ServeTerm.ONE] += MARGINS[way] - margin
                value[way, ServeTerm.AHEAD] += 1.0
        return {"value": value.astype(np.float32)}


@dataclass(slots=True)
class Question:
    """A state, and what became of the actions that were tried in it."""

    terms: dict[int, tuple[int, Floats]]
    """Way and terms of what was tried, by action."""
    unit: float
    """What a job of mean weight costs."""
    costs: dict[int, float] = field(default_factory=dict)
    """Costs until the horizon, with what the plan loses then, by action; action 0 is among them."""


@dataclass(frozen=True, slots=True)
class TriedAction:
    """An action to be tried."""

    state: tuple[Saved, float]
    action: int
    question: Question


class Rollouts:
    """One training by rollouts."""

    def __init__(self, course: TrainingRun, config: TrainingConfig, state: dict[str, Any] | None) -> None:
        self._course, self._config, self._settings = course, config, config.settings
        self._rule = RuleTraining(course, config)
        self.timesteps, self._round, self._fit = 0, 0, RidgeFit()
        if state is not None:
            self.timesteps, self._round, self._fit = state["timesteps"], state["round"], state["fit"]
        each = int(config.settings["episodes"])
        self._problems = problem_source(config, each)
        layout = self._rule.policy(self._weights(), 0).info.actions
        count = each * len(training_changes(config))
        self._batch = EnvBatch(count, layout, wait_us=config.wait_us, threads=config.threads)
        self._tried = EnvBatch(TRIED_AT_A_TIME, layout, wait_us=config.wait_us, threads=config.threads)
        self._first, self._serves = layout.first(Serve.NAME), layout.choices(Serve.NAME)

    def run(self) -> None:
        """Train on to the end."""
        course = self._course
        try:
            while self.timesteps < self._config.timesteps and not course.stopped:
                course.boundary(self, self.timesteps)
                self._play_round()
        finally:
            self._batch.close()
            self._tried.close()
        course.end(self, self.timesteps)

    def decider(self) -> Decide:
        return self._rule.decider(self._weights(), self.timesteps)

    def keep(self) -> None:
        self._rule.keep(self._weights(), self.timesteps)

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps of the training."""
        return {"timesteps": self.timesteps, "round": self._round, "fit": self._fit}

    def _weights(self) -> Weights:
        return self._fit.weights(self._settings["penalty"], self._settings["margin"])

    def _play_round(self) -> None:
        """Play one episode in each environment, try actions in some of its states, and fit anew."""
        rng = np.random.default_rng((TRAINING_SEED + SEEDS_EACH * self._config.seed, self._round))
        policy = self._rule.policy(self._weights(), self.timesteps)
        batch = self._batch
        units = []
        for e, problem in enumerate(self._problems(rng)):
            batch.begin(e, problem, int(rng.integers(*DRAWN_SEEDS)))
            units.append(unit_of(problem))
        batch.run()
        questions: list[Question] = []
        trials: deque[TriedAction] = deque()
        departed = decisions = 0
        while (batch.reasons == DECIDE).any():
            actions = policy.act(batch.observations, batch.masks)
            for e in np.flatnonzero(batch.reasons == DECIDE).tolist():
                departed, decisions = departed + int(actions[e] > 0), decisions + 1
                ways = self._ways(e)
                if not ways:
                    continue
                if rng.random() < self._settings["states"]:
                    question = Question(self._draw(ways, rng), units[e])
                    questions.append(question)
                    saved = batch.save(e)
                    trials += (TriedAction(saved, action, question) for action in (0, *question.terms))
                if rng.random() < self._settings["explore"]:
                    actions[e] = rng.choice(list(ways))
            if len(trials) >= QUEUED:
                self._try(trials, policy)
            batch.step(np.where(batch.reasons == DECIDE, actions, 0))
            self._course.tell(self.timesteps + decisions)
        self._try(trials, policy)
        self.timesteps += decisions
        self._round += 1
        self._learn(questions, departed / decisions)

    def _ways(self, e: int) -> dict[int, tuple[int, Floats]]:
        """Way and terms of each action that lets a tenant go first; none where only one tenant has a job."""
        tenants, mask = self._batch.observations["tenants"][e], self._batch.masks[e]
        able = [row for row in range(len(tenants)) if mask[self._first + row * self._serves]]
        found = {}
        for row in able if len(able) > 1 else []:
            for way, choice in TRIED.items():
                terms = np.zeros(len(ServeTerm), np.float32)
                serve_terms(tenants, row, int(way), terms)
                found[self._first + row * self._serves + choice] = (int(way), terms.astype(np.float64))
        return found

    def _draw(self, ways: dict[int, tuple[int, Floats]], rng: np.random.Generator) -> dict[int, tuple[int, Floats]]:
        chosen = rng.permutation(list(ways))[: self._settings["tries"]].tolist()
        return {action: ways[action] for action in chosen}

    def _try(self, trials: deque[TriedAction], policy: ExportedPolicy) -> None:
        """Play what is queued, until the queue is empty."""
        tried, settings = self._tried, self._settings
        playing: list[TriedAction | None] = [None] * tried.count
        until_us, played = np.zeros(tried.count), np.zeros(tried.count, np.int64)
        while trials or any(playing):
            begun = []
            for e in range(tried.count):
                if playing[e] is None and trials:
                    begin = trials.popleft()
                    playing[e] = begin
                    tried.load(e, begin.state)
                    begun.append(e)
            if begun:
                tried.run()
                until_us[begun] = tried.times_us[begun, 1] + settings["horizon_us"]
                played[begun] = 0
            actions = policy.act(tried.observations, tried.masks)
            for e, trial in enumerate(playing):
                if trial is not None and played[e] < settings["hold"] and tried.masks[e, trial.action]:
                    actions[e] = trial.action
            self.timesteps += sum(trial is not None for trial in playing)
            tried.step(np.where(tried.reasons == DECIDE, actions, 0))
            played += 1
            over = (tried.reasons != DECIDE) | (tried.times_us[:, 1] >= until_us)
            losing = lost_in_plan(tried.observations)
            for e, trial in enumerate(playing):
                if trial is not None and over[e]:
                    slo_miss = trial.state[0].problem.scenario.reward.slo_miss
                    to_come = slo_miss * losing[e] if tried.reasons[e] == DECIDE else 0.0
                    trial.question.costs[trial.action] = float(tried.costs[e] + to_come)
                    playing[e] = None

    def _learn(self, questions: list[Question], departed: float) -> None:
        """Add what was found to the fit; ``departed``: share of the decisions that were not by the plan."""
        before = self._fit.weights(self._settings["penalty"], 0.0)["value"]
        prior = self._fit.pairs > 0
        errors, squares = 0.0, 0.0
        for question in questions:
            for action, (way, terms) in question.terms.items():
                gain = (question.costs[0] - question.costs[action]) / question.unit
                without = -terms[ServeTerm.AHEAD] - MARGINS[way]
                errors += (gain - float(before[way] @ terms) - without) ** 2 if prior else 0.0
                squares += gain**2
                self._fit.add(way, terms, gain)
        figures = {
            "rollouts/pairs": float(self._fit.pairs),
            "rollouts/departed": departed,
            "rollouts/round": float(self._round),
        }
        if prior and squares > 0.0:
            figures["rollouts/explained"] = 1.0 - errors / squares
        self._course.board.scalars(figures, self.timesteps)


def unit_of(problem: Problem) -> float:
    """What a missed objective of mean weight costs."""
    tenants = problem.scenario.tenants
    mean = sum(tenant.weight for tenant in tenants) / len(tenants)
    return mean * (problem.scenario.reward.slo_miss or 1.0)
