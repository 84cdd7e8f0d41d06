"""A standard algorithm beside the agent: MaskablePPO of sb3-contrib in copies of the environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np

from gpusched_env.agents.training.environments import SEEDS_EACH, TRAINING_SEED, VALIDATION_SEED
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.environment.cluster.problems import RANDOM, allocation_of
from gpusched_env.games.fleet.environment.cluster.vector_env import ClusterPlacementVectorEnv

COPIES: Final = 8
STEPS: Final = 256
"""Decisions of each copy between two updates."""
BUDGET: Final = 100_000
ROUNDS: Final = 4
"""Validations after as many decisions each; one comes before all."""
JUDGED: Final = 16
"""Drawn problems of a validation."""
SETTINGS: Final[dict[str, Any]] = {
    "n_steps": STEPS,
    "batch_size": 512,
    "n_epochs": 4,
    "learning_rate": 5e-4,
    "gamma": 0.999,
    "gae_lambda": 0.95,
    "ent_coef": 0.001,
    "policy_kwargs": {"net_arch": [64, 64]},
}


@dataclass(frozen=True)
class PpoCurve:
    """Points of per cent above FGD on drawn problems."""

    decisions: tuple[int, ...]
    above_fgd: tuple[float, ...]


@dataclass(frozen=True)
class PpoTraining:
    """A training, with fragmentation as shaping, from scratch."""

    seed: int

    def run(self, device: str) -> PpoCurve:
        from sb3_contrib import MaskablePPO

        from gpusched_env.agents.sb3_vec_env import Sb3VecEnv

        copies = ClusterPlacementVectorEnv(num_envs=COPIES, shaping=1.0, autoreset_mode="SAME_STEP")
        # It asks of a vector environment what this one has, too.
        env = Sb3VecEnv(cast("Any", copies))
        env.seed(TRAINING_SEED + SEEDS_EACH * self.seed)
        model = MaskablePPO("MlpPolicy", env, seed=self.seed, device="cpu", **SETTINGS)
        decisions, above = [0], [points_above_fgd(model)]
        for _ in range(ROUNDS):
            model.learn(BUDGET // ROUNDS, reset_num_timesteps=False)
            decisions.append(int(model.num_timesteps))
            above.append(points_above_fgd(model))
        return PpoCurve(tuple(decisions), tuple(above))


def points_above_fgd(model: Any) -> float:
    """The mean allocation of the best actions on drawn problems, less FGD's."""
    seeds = [VALIDATION_SEED + number for number in range(JUDGED)]
    env = ClusterPlacementVectorEnv(num_envs=JUDGED, autoreset_mode="SAME_STEP")
    rows, infos = env.reset(seed=seeds)
    found: dict[int, float] = {}
    while len(found) < JUDGED:
        actions, _ = model.predict(rows, deterministic=True, action_masks=infos["action_mask"].astype(bool))
        rows, _, over, _, infos = env.step(actions)
        for number in np.flatnonzero(over).tolist():
            found.setdefault(number, float(infos["final_info"]["episode_metrics"]["allocation"][number]))
    with_fgd = [allocation_of(Policy.FGD, RANDOM, seed) for seed in seeds]
    return float(np.mean(list(found.values())) - np.mean(with_fgd))
