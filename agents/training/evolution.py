"""Training without gradients: CMA-ES searches the weights of the rule.

A generation draws candidates around a mean; all play the same episodes, whose costs rank them; the mean, and the
shape of what is drawn next, move towards the better half (N. Hansen, *The CMA evolution strategy: a tutorial*, arXiv
1604.00772; the implementation is the library ``cmaes``). What is validated, exported and shipped is the mean. Costs
are those of whole episodes: there is no discount, no shaping and nothing to bootstrap. A candidate's cost counts
relative to the median of all candidates on the same episode, so that episodes count alike.
"""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from cmaes import CMA
from numpy.typing import NDArray

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.policies.sizes import RuleSizes
from gpusched_env.agents.policy_file import PolicyInfo, Weights, current_columns, write_policy
from gpusched_env.agents.training.checkpoint import STATE
from gpusched_env.agents.training.course import Course
from gpusched_env.agents.training.deciding import policy_decider
from gpusched_env.agents.training.environments import training_layout
from gpusched_env.agents.training.files import replacing
from gpusched_env.agents.training.population import Population
from gpusched_env.agents.training.results import EXPORTED
from gpusched_env.versions import versions


def evolve(course: Course) -> int:
    """Search until the configured number of decisions is reached, or the watcher ends it; returns their number."""
    evolution = Evolution(course)
    if course.resumes:
        evolution.restore()
    evolution.run()
    return evolution.timesteps


class Evolution:
    """One training by CMA-ES."""

    def __init__(self, course: Course) -> None:
        config = course.config
        self.timesteps = 0
        self._course = course
        self._layout = training_layout(config)
        self._shapes = RuleSizes.of(self._layout).shapes(self._layout)
        self._searched = frozenset(config.settings["search"])
        self._optimiser = CMA(
            mean=np.zeros(sum(math.prod(shape) for name, shape in self._shapes.items() if name in self._searched)),
            sigma=config.settings["sigma"],
            population_size=config.settings["population"],
            seed=config.seed,
        )
        self._next_checkpoint = 0

    def run(self) -> None:
        """Go on to the end."""
        config, validator = self._course.config, self._course.validator
        population = Population(config, self.policy())
        try:
            while self.timesteps < config.timesteps and not validator.stopped:
                if validator.due(self.timesteps):
                    self._validate()
                if self.timesteps >= self._next_checkpoint:
                    self._next_checkpoint = self.timesteps + config.checkpoint_every
                    self._save()
                self._generation(population)
                validator.tell(self.timesteps)
        finally:
            population.close()
        if validator.missing(self.timesteps):
            self._validate()
        self._save()

    def restore(self) -> None:
        """Go back to the last checkpoint."""
        state = pickle.loads((self._course.checkpoints.last() / STATE).read_bytes())
        self.timesteps, optimiser, self._next_checkpoint = state["evolution"]
        vars(self._optimiser).update(optimiser)
        self._course.validator.restore(state["validator"])

    def policy(self) -> ExportedPolicy:
        """The rule with the mean's weights."""
        return ExportedPolicy(self._info(), self._weights(self._optimiser.mean))

    def _generation(self, population: Population) -> None:
        optimiser = self._optimiser
        points = [optimiser.ask() for _ in range(optimiser.population_size)]
        candidates = [ExportedPolicy(self._info(), self._weights(point)).weights for point in points]
        costs, decisions = population.costs(candidates, optimiser.generation)
        relative = (costs / np.median(costs, axis=0)).mean(axis=1)
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

    def _weights(self, point: NDArray[np.float64]) -> Weights:
        found: Weights = {}
        at = 0
        for name, shape in self._shapes.items():
            size = math.prod(shape) if name in self._searched else 0
            values = point[at : at + size] if size else np.zeros(math.prod(shape))
            found[name] = values.reshape(shape).astype(np.float32)
            at += size
        return found

    def _info(self) -> PolicyInfo:
        config = self._course.config
        return PolicyInfo(
            network=RuleSizes.of(self._layout),
            columns=current_columns(),
            actions=self._layout,
            wait_us=config.wait_us,
            masked=True,
            algorithm=config.algo,
            scenario=config.scenario.name,
            command=self._course.command,
            seed=config.seed,
            timesteps=self.timesteps,
            versions=versions(),
        )

    def _validate(self) -> None:
        self._course.validator.validate(policy_decider(self.policy()), self.timesteps, self._keep)

    def _keep(self) -> None:
        with replacing(self._course.out / EXPORTED) as partial:
            write_policy(partial, self._info(), self._weights(self._optimiser.mean))

    def _save(self) -> None:
        if not self._course.saves:
            return
        state: dict[str, Any] = {
            # Pickled as a whole, the optimiser would keep one half of a matrix that is symmetric but for rounding.
            "evolution": (self.timesteps, vars(self._optimiser), self._next_checkpoint),
            "validator": self._course.validator.state(),
        }

        def fill(folder: Path) -> None:
            (folder / STATE).write_bytes(pickle.dumps(state))

        self._course.checkpoints.write(self.timesteps, fill)
