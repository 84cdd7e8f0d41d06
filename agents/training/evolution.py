"""Training without gradients: a rule under training, and the search for its weights by CMA-ES."""

from __future__ import annotations

import queue
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.model_file import Decide
from gpusched_env.agents.policies.registry import RULES
from gpusched_env.agents.policies.serve import ServeTerm, Way
from gpusched_env.agents.policies.sizes import ServeSizes, Shapes
from gpusched_env.agents.policy_file import (
    PolicyInfo,
    Weights,
    current_columns,
    kind,
    read_policy,
    write_policy,
)
from gpusched_env.agents.rollout import Player
from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.environments import (
    DRAWN_SEEDS,
    SEEDS_EACH,
    TRAINING_SEED,
    problem_source,
    training_changes,
    training_layout,
)
from gpusched_env.agents.training.folder import EXPORTED
from gpusched_env.agents.training.validation import PolicyDecider, TrainingRun
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.scenarios.problem import Problem
from gpusched_env.versions import versions


class RuleTraining:
    """What trainings of rules have in common, however they find the weights."""

    def __init__(self, course: TrainingRun, config: TrainingConfig) -> None:
        self._course, self._config = course, config
        self._layout = training_layout(config)
        self._network = RULES[config.policy or ""].of(self._layout)

    @property
    def shapes(self) -> Shapes:
        """Shapes of the weights, by name."""
        return self._network.shapes(self._layout)

    def policy(self, weights: Weights, timesteps: int) -> ExportedPolicy:
        """The rule with some weights; ``timesteps``: decisions that it was trained for."""
        return ExportedPolicy(self._info(timesteps), weights)

    def decider(self, weights: Weights, timesteps: int) -> Decide:
        """The rule with some weights, as the judge takes it."""
        return PolicyDecider(self.policy(weights, timesteps))

    def keep(self, weights: Weights, timesteps: int) -> None:
        """Save the rule with some weights."""
        write_policy(self._course.out / EXPORTED, self._info(timesteps), weights)

    def _info(self, timesteps: int) -> PolicyInfo:
        config = self._config
        return PolicyInfo(
            network=self._network,
            columns=current_columns(),
            actions=self._layout,
            wait_us=config.wait_us,
            masked=True,
            algorithm=config.algo,
            scenario=config.scenario.name,
            command=self._course.command,
            seed=config.seed,
            timesteps=timesteps,
            versions=versions(),
        )


def first_weights(config: TrainingConfig) -> Weights | None:
    """Weights of the exported policy that a training begins with; ``None``: it begins with none.

    Raises:
        InputError: no such file, or a policy of another kind or size.
    """
    if config.begin_with is None:
        return None
    network = RULES[config.policy or ""].of(training_layout(config))
    info, weights = read_policy(config.begin_with)
    if isinstance(info.network, ServeSizes) and isinstance(network, ServeSizes):
        # Made when there were fewer ways: what a new one adds is 0.
        more = np.zeros(network.shapes(training_layout(config))["value"], np.float32)
        more[: info.network.ways] = weights["value"]
        weights = {"value": more}
    shapes = {name: array.shape for name, array in weights.items()}
    if kind(info.network) != kind(network) or shapes != network.shapes(training_layout(config)):
        raise InputError(
            f"{config.begin_with}: a policy {kind(info.network)} with weights {shapes}; this training is of "
            f"{kind(network)}, {network.shapes(training_layout(config))}"
        )
    return weights


def searched_weights(config: TrainingConfig, shapes: Shapes) -> dict[str, NDArray[np.bool_]] | None:
    """Which weights a search changes, by the name of their array; ``None``: all.

    Raises:
        InputError: a rule of this kind has no such weights.
    """
    names = config.settings["search"]
    if names is None:
        return None
    ways = {f"{way.name}.{term.name}".lower(): (int(way), int(term)) for way in Way for term in ServeTerm}
    found = {name: np.full(shape, name in names) for name, shape in shapes.items()}
    known = [*shapes, *(ways if config.policy == "serve" else ())]
    for name in names:
        if name not in known:
            raise InputError(
                f"search: a rule of kind {config.policy} has no weights {name!r}; {did_you_mean(name, known)}"
            )
        if name not in shapes:
            found["value"][ways[name]] = True
    return found


class Candidates(Protocol):
    """Plays the episodes of a generation."""

    def costs(
        self, candidates: Sequence[NDArray[np.float32]], generation: int, tell: Callable[[int], None]
    ) -> tuple[NDArray[np.float64], int]:
        """Shape ``(candidates, episodes)``, and the number of decisions; see :meth:`Population.costs`."""

    def close(self) -> None:
        """End its threads."""


class Evolution(ABC):
    """One training by CMA-ES."""

    def __init__(
        self,
        course: TrainingRun,
        shapes: Shapes,
        searched: Mapping[str, NDArray[np.bool_]] | None,
        state: dict[str, Any] | None,
        first: Weights | None = None,
    ) -> None:
        """
        Args:
            shapes: of the weights, by name.
            searched: by name which of them are searched, of the same shapes; the others stay as they are at first.
                ``None``: all.
            state: of the checkpoint to go on from.
            first: where the search begins; ``None``: at 0.
        """
        from cmaes import CMA  # Takes a second to load, and who plays needs none.

        config = course.config
        self.timesteps = 0
        self._course = course
        self._searched = searched or {name: np.ones(shape, np.bool_) for name, shape in shapes.items()}
        self._first = first or {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        self._optimiser = CMA(
            mean=np.concatenate([self._first[name][mask] for name, mask in self._searched.items()]).astype(np.float64),
            sigma=config.settings["sigma"],
            population_size=config.settings["population"],
            seed=config.seed,
        )
        if state is not None:
            self.timesteps = state["timesteps"]
            vars(self._optimiser).update(state["optimiser"])

    def run(self) -> None:
        """Search on to the end."""
        course = self._course
        population = self._population()
        try:
            while self.timesteps < course.config.timesteps and not course.stopped:
                course.boundary(self, self.timesteps)
                self._generation(population)
        finally:
            population.close()
        course.end(self, self.timesteps)

    @abstractmethod
    def decider(self) -> Any:
        """The mean of the search, as the judge takes it."""

    @abstractmethod
    def keep(self) -> None:
        """Save the mean of the search."""

    @abstractmethod
    def _population(self) -> Candidates: ...

    @abstractmethod
    def _candidate(self, weights: Weights) -> NDArray[np.float32]:
        """Weights as the population takes a candidate."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps of the search."""
        # Pickled as a whole, the optimiser would keep one half of a matrix that is symmetric but for rounding.
        return {"timesteps": self.timesteps, "optimiser": vars(self._optimiser)}

    def _generation(self, population: Candidates) -> None:
        optimiser = self._optimiser
        points = [optimiser.ask() for _ in range(optimiser.population_size)]
        candidates = [self._candidate(self._weights(point)) for point in points]
        before, tell = self.timesteps, self._course.tell
        costs, decisions = population.costs(candidates, optimiser.generation, lambda played: tell(before + played))
        relative = self._mean_of(relative_to_median(costs))
        optimiser.tell(list(zip(points, relative.tolist(), strict=True)))
        self.timesteps += decisions
        figures = {
            "evolution/cost": float(costs.mean(axis=1).mean()),
            "evolution/best_cost": float(costs.mean(axis=1).min()),
            "evolution/spread": float(relative.std()),
            "evolution/step": float(np.std(points, axis=0).mean()),
            "evolution/generation": float(optimiser.generation),
        }
        self._course.board.scalars(figures, self.timesteps)

    def _mean_of(self, relative: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean cost of each candidate, from relative costs of shape ``(candidates, episodes)``."""
        return np.asarray(relative.mean(axis=1))

    def _weights(self, point: NDArray[np.float64]) -> Weights:
        found = {name: weights.copy() for name, weights in self._first.items()}
        at = 0
        for name, mask in self._searched.items():
            size = int(mask.sum())
            found[name][mask] = point[at : at + size]
            at += size
        return found

    @property
    def _mean(self) -> Weights:
        return self._weights(self._optimiser.mean)


def gathered(played: Iterable[tuple[ArrayLike, int]], tell: Callable[[int], None]) -> tuple[NDArray[np.float64], int]:
    """All costs and the sum of the decisions; ``tell`` is told of the latter as they come."""
    costs, decisions = [], 0
    for cost, more in played:
        costs.append(cost)
        decisions += more
        tell(decisions)
    return np.array(costs), decisions


def relative_to_median(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Costs of candidates over the median of each episode, shape ``(candidates, episodes)``.

    An episode that costs most candidates nothing counts as one with the mean of the other medians.
    """
    medians = np.median(costs, axis=0)
    usual = medians[medians > 0.0].mean() if (medians > 0.0).any() else 1.0
    found: NDArray[np.float64] = costs / np.where(medians > 0.0, medians, usual)
    return found


class RuleEvolution(Evolution):
    """The search for a rule for the tenants or the window of a scenario."""

    def __init__(self, course: TrainingRun, config: TrainingConfig, state: dict[str, Any] | None) -> None:
        self._config = config
        self._rule = RuleTraining(course, config)
        super().__init__(
            course, self._rule.shapes, searched_weights(config, self._rule.shapes), state, first_weights(config)
        )

    def decider(self) -> Decide:
        return self._rule.decider(self._mean, self.timesteps)

    def keep(self) -> None:
        self._rule.keep(self._mean, self.timesteps)

    def _population(self) -> Candidates:
        return Population(self._config, self._rule.policy(self._mean, self.timesteps))

    def _candidate(self, weights: Weights) -> NDArray[np.float32]:
        return self._rule.policy(weights, self.timesteps).weights


class Population:
    """Threads, each with environments for the episodes of one candidate."""

    def __init__(self, config: TrainingConfig, policy: ExportedPolicy) -> None:
        """``policy``: of the kind of the candidates."""
        self._config = config
        self._changes = training_changes(config)
        each = int(config.settings["episodes"])
        self._problems = problem_source(config, each)
        self._episodes = len(self._changes) * each
        self._players: queue.SimpleQueue[Player] = queue.SimpleQueue()
        for _ in range(config.threads):
            self._players.put(Player(EnvBatch(self._episodes, policy.info.actions, wait_us=config.wait_us), policy))
        self._pool = ThreadPoolExecutor(config.threads)

    def costs(
        self, candidates: Sequence[NDArray[np.float32]], generation: int, tell: Callable[[int], None]
    ) -> tuple[NDArray[np.float64], int]:
        """Costs of all candidates on the episodes of a generation, and how many decisions these took.

        Which episodes they are depends on the training's seed and the generation only.

        Args:
            candidates: weights as in :attr:`ExportedPolicy.weights`.
            generation: counted from 0.
            tell: is told how many decisions have been made, whenever a candidate is through.

        Returns:
            shape ``(candidates, episodes)``, and the number of decisions.

        Raises:
            DeadlockError: in an episode work is left but nothing can happen any more.
        """
        rng = np.random.default_rng((TRAINING_SEED + SEEDS_EACH * self._config.seed, generation))
        problems = self._problems(rng)
        seeds = rng.integers(*DRAWN_SEEDS, self._episodes // len(self._changes)).tolist()
        played = [(problem, seeds[k % len(seeds)]) for k, problem in enumerate(problems)]

        def play(weights: NDArray[np.float32]) -> tuple[NDArray[np.float64], int]:
            player = self._players.get()
            try:
                return _played(player, weights, played)
            finally:
                self._players.put(player)

        return gathered(self._pool.map(play, candidates), tell)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


def _played(
    player: Player, weights: NDArray[np.float32], episodes: Sequence[tuple[Problem, int]]
) -> tuple[NDArray[np.float64], int]:
    """Costs of a candidate's episodes, and their decisions."""
    for e, (problem, seed) in enumerate(episodes):
        player.batch.begin(e, problem, seed)
    player.batch.run()
    before = int(player.asked.sum())
    player.play(weights, to_the_end=True)
    return player.batch.costs.copy(), int(player.asked.sum()) - before
