"""The same with RLlib's PPO and its masks: one file, to be copied and changed.

    pip install -c constraints.txt -e '.[train,ray]'
    python train_rllib.py --scenario ServingPoisson --timesteps 200000

The extra `ray` brings `ray[tune]` and the packages that RLlib needs besides. `ray[rllib]` would put an older Gymnasium
in the place of the installed one.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
import ray
from gymnasium import spaces
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule

from gpusched_env.envs.env import GpuSchedulingEnv


class Masked(gym.Wrapper):
    """What RLlib's module wants to see: the mask as floats beside an observation, which is one row of numbers here."""

    def __init__(self, config: dict[str, Any]) -> None:
        env = GpuSchedulingEnv(**config)
        super().__init__(env)
        self._tables = env.observation_space
        self.observation_space = spaces.Dict(
            {
                "action_mask": spaces.Box(0.0, 1.0, (env.layout.n,), np.float32),
                "observations": spaces.flatten_space(self._tables),
            }
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        observation, info = self.env.reset(seed=seed, options=options)
        return self._seen(observation), info

    def step(self, action: Any) -> Any:
        observation, *rest = self.env.step(action)
        return self._seen(observation), *rest

    def _seen(self, observation: Any) -> dict[str, Any]:
        mask = self.unwrapped.action_masks().astype(np.float32)
        return {"action_mask": mask, "observations": spaces.flatten(self._tables, observation)}


def main(given: list[str] | None = None) -> list[float]:
    """Train; returns the mean cost of the episodes of each iteration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="ServingPoisson")
    parser.add_argument("--timesteps", type=int, default=200_000)
    parser.add_argument("--envs", type=int, default=8, help="environments that are stepped together")
    parser.add_argument("--runners", type=int, default=0, help="processes that step them; 0: this one")
    parser.add_argument("--batch", type=int, default=2048, help="decisions between two updates")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(given)
    ray.init(ignore_reinit_error=True, include_dashboard=False, log_to_driver=False)
    # RLlib begins the next episode in the step after the last, as Gymnasium's vector environments do by default.
    config = (
        PPOConfig()
        .environment(Masked, env_config={"scenario": args.scenario})
        .env_runners(num_env_runners=args.runners, num_envs_per_env_runner=args.envs)
        .training(train_batch_size=args.batch, minibatch_size=512, num_epochs=6, lr=5e-4, gamma=0.98, lambda_=0.95)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule))
        .debugging(seed=args.seed)
    )
    algorithm, costs, played = config.build_algo(), [], 0
    while played < args.timesteps:
        result = algorithm.train()
        played = int(result["env_runners"]["num_env_steps_sampled_lifetime"])
        costs.append(-float(result["env_runners"].get("episode_return_mean", np.nan)))
        print(f"{played:9,} decisions: cost of training episodes {costs[-1]:.2f}", flush=True)
    algorithm.stop()
    ray.shutdown()
    return costs


if __name__ == "__main__":
    main()
