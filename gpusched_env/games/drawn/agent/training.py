"""The training of the agent: policy gradients in which every action's return is played.

In a moment of an episode every rule is tried, from there to the end, on the same arrivals. That gives the
whole gradient of the policy in that moment, not the noisy one of what it happened to draw: the sum over rules of the
gradient of their probability times what they cost (all actions; R. Sutton, S. Singh, D. McAllester, *Comparing
policy-gradient algorithms*, 2001). What a rule costs is the logarithm of the episode's cost, above that of the
best. Moments are drawn from the beginnings of episodes, and from what the policy itself comes to.

Scenarios are those of the split to train on; those that are frozen, by which rules are tuned and selected, are left to
these. Validations play scenarios that are drawn from far behind the others.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch

from gpusched_env.agents.training.environments import SEEDS_EACH, TRAINING_SEED, VALIDATION_SEED, validation_seeds
from gpusched_env.agents.training.game_evolution import keep_game_policy
from gpusched_env.agents.training.validation import Judge, TrainingRun, ValidationResult
from gpusched_env.experiments.lib.workers import run_all, run_tasks
from gpusched_env.games.drawn.agent.learning import RuleNetwork
from gpusched_env.games.drawn.agent.network import Weights
from gpusched_env.games.drawn.agent.policy import ChoicePolicyInfo
from gpusched_env.games.drawn.agent.rollouts import Fork, fork_at_first, fork_on_the_way, play_policy
from gpusched_env.games.drawn.agent.seeing import REPERTOIRE, WIDTH
from gpusched_env.games.drawn.agent.trainer import ChoiceTraining
from gpusched_env.games.drawn.agent.validation import validation_names
from gpusched_env.games.drawn.environment.env import DRAWS
from gpusched_env.games.drawn.problems.splits import FROZEN, TRAIN

WORST: Final = 3.0
"""Above the best by which costs count the same: a factor of twenty."""


@dataclass(frozen=True, slots=True)
class RuleTrial:
    """A task of a worker."""

    name: str
    seed: int
    weights: Weights | None
    """Of the policy; ``None``: rules are tried from the beginning."""

    def __call__(self) -> Fork:
        if self.weights is None:
            return fork_at_first(self.name, self.seed)
        return fork_on_the_way(self.name, self.seed, self.weights, np.random.default_rng(self.seed))


def _run(trial: RuleTrial) -> Fork:
    return trial()


def _judged(task: tuple[str, int, Weights]) -> float:
    return play_policy(*task)


class ChoiceJudge(Judge):
    """Of the agent: scenarios that are drawn behind those that are trained on."""

    def __init__(self, config: ChoiceTraining) -> None:
        self.seeds = validation_seeds(config)
        self._workers = config.threads

    def judge(self, decide: Weights) -> ValidationResult:
        """``decide``: weights; the cost is the geometric mean of the episodes' costs."""
        names = validation_names(self.seeds)
        tasks = [(name, seed, decide) for name, seed in zip(names, self.seeds, strict=True)]
        costs = run_all(_judged, tasks, self._workers)
        return ValidationResult(costs, float(np.exp(np.log(costs).mean())), {}, None)

    def close(self) -> None:
        """Nothing is left to end."""


class ChoiceGradient:
    """A training of the agent."""

    def __init__(self, course: TrainingRun, config: ChoiceTraining, state: dict[str, Any] | None) -> None:
        """``state``: of the checkpoint to go on from."""
        self._course, self._config, self._settings = course, config, config.settings
        self.timesteps = self._steps = 0
        torch.manual_seed(config.seed)
        torch.set_num_threads(1)  # ``threads`` of the configuration are processes that play
        self._network = RuleNetwork()
        self._optimiser = torch.optim.AdamW(
            self._network.parameters(),
            self._settings["learning_rate"],
            weight_decay=self._settings["weight_decay"],
        )
        self._rows = np.zeros((0, WIDTH), np.float32)
        self._worse = np.zeros((0, len(REPERTOIRE)), np.float32)
        """By what each rule's cost was above the best one's, in logarithms."""
        if state is not None:
            self.timesteps, self._steps = state["timesteps"], state["steps"]
            self._rows, self._worse = state["rows"], state["worse"]
            self._network.load_state_dict(state["network"])
            self._optimiser.load_state_dict(state["optimiser"])

    def run(self) -> None:
        """Learn on to the end."""
        course = self._course
        while self.timesteps < self._config.timesteps and not course.stopped:
            course.boundary(self, self.timesteps)
            self._step()
        course.end(self, self.timesteps)

    def decider(self) -> Weights:
        """The weights, as the judge takes them."""
        return self._network.export()

    def keep(self) -> None:
        """Save the weights as the policy's file."""
        keep_game_policy(self._course, ChoicePolicyInfo, self.timesteps, self.decider())

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "timesteps": self.timesteps,
            "steps": self._steps,
            "rows": self._rows,
            "worse": self._worse,
            "network": {name: array.clone() for name, array in self._network.state_dict().items()},
            "optimiser": self._optimiser.state_dict(),
        }

    def _step(self) -> None:
        """Try rules in scenarios that the number of the step draws, and follow the gradient of all that was tried."""
        trials = self._trials()
        found: dict[int, Fork] = {}
        for place, fork in run_tasks(_run, trials, self._config.threads):
            found[place] = fork
            self.timesteps += fork.decisions
            self._course.tell(self.timesteps)
        forks = [found[place] for place in range(len(trials))]
        self._steps += 1
        logs = np.log([fork.costs for fork in forks])
        worse = np.minimum(logs - logs.min(1, keepdims=True), WORST).astype(np.float32)
        self._rows = np.concatenate((self._rows, [fork.row for fork in forks]))
        self._worse = np.concatenate((self._worse, worse))
        lost = self._learn()
        figures = {
            "gradient/lost": lost,
            "gradient/moments": float(len(self._rows)),
        }
        self._course.board.scalars(figures, self.timesteps)

    def _trials(self) -> list[RuleTrial]:
        settings = self._settings
        dice = np.random.default_rng((TRAINING_SEED + SEEDS_EACH * self._config.seed, self._steps))
        weights = self.decider()
        found = []
        for _ in range(settings["forks"]):
            at_first = self._steps == 0 or dice.random() < settings["first"]
            name = f"{TRAIN}-{int(dice.integers(FROZEN, DRAWS))}"
            seed = int(dice.integers(TRAINING_SEED, VALIDATION_SEED))
            found.append(RuleTrial(name, seed, None if at_first else weights))
        return found

    def _learn(self) -> float:
        """Passes over all moments; returns what the policy lost to the best rule in the last one, in logarithms."""
        settings = self._settings
        rows, worse = torch.from_numpy(self._rows), torch.from_numpy(self._worse)
        order = torch.Generator().manual_seed(self._steps)
        losses: list[float] = []
        for _ in range(settings["passes"]):
            losses = []
            for batch in torch.split(torch.randperm(len(rows), generator=order), settings["batch_size"]):
                share = torch.log_softmax(self._network(rows[batch]), 1)
                lost = (share.exp() * worse[batch]).sum(1)
                entropy = -(share.exp() * share).sum(1)
                loss = (lost - settings["ent_coef"] * entropy).mean()
                self._optimiser.zero_grad()
                loss.backward()
                self._optimiser.step()
                losses += lost.tolist()
        return statistics.fmean(losses)
