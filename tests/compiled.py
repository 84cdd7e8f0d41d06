"""Compiles what most tests use, once, before test processes start: each would compile it for itself otherwise."""

from __future__ import annotations

import gymnasium

from gpusched_env import run_episode
from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.rollout import evaluate_costs
from gpusched_env.agents.shipped import FOLDER
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.scenarios.scenario import load_scenario


def compile_all() -> None:
    """The simulated GPU, environments, and policies as schedulers and in rollouts."""
    scenario = load_scenario("PriorityFill", horizon_us=1_000.0)
    run_episode(scenario, "learned")
    env = gymnasium.make("gpusched_env:gpusched/Toy-v0")
    env.reset(seed=0)
    env.step(0)
    envs = GpuSchedulingVectorEnv("Toy", num_envs=2)
    envs.reset(seed=0)
    envs.step([0, 0])
    evaluate_costs(ExportedPolicy.load(FOLDER / "PriorityFill.npz"), scenario, seeds=1)


if __name__ == "__main__":
    compile_all()
