"""Validation: a model plays, greedily, episodes that it was not trained on."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.sb3_vec_env import info_row
from gpusched_env.agents.training.deciding import Decide
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv


@dataclass(frozen=True, slots=True)
class Played:
    """One episode of a model."""

    seed: int
    metrics: dict[str, float]
    """``episode_metrics`` of the last info."""
    rewards: dict[str, float]
    """``reward_terms`` of the last info."""
    decisions: int
    """Steps of the environment, waits included."""
    illegal: int

    @property
    def cost(self) -> float:
        return self.metrics["cost"]


def play(decide: Decide, env: GpuSchedulingVectorEnv, seeds: Sequence[int]) -> list[Played]:
    """Play one episode in each environment, with the best action of each decision.

    Args:
        decide: draws from no generator.
        env: in ``SAME_STEP`` mode.
        seeds: of the episodes, one an environment.
    """
    observations, _ = env.reset(seed=list(seeds))
    found: dict[int, Played] = {}
    state: Any = None
    starts: NDArray[np.bool_] = np.ones(env.num_envs, np.bool_)
    steps = 0
    while len(found) < env.num_envs:
        actions, state = decide(observations, state, starts, env.action_masks())
        observations, _, terminations, truncations, infos = env.step(actions)
        starts = terminations | truncations
        steps += 1
        for e in np.flatnonzero(starts).tolist():
            if e not in found:
                last = info_row(infos["final_info"], e)
                found[e] = Played(
                    seed=seeds[e],
                    metrics=last["episode_metrics"],
                    rewards=last["reward_terms"],
                    decisions=steps,
                    illegal=last["illegal_actions"],
                )
    return [found[e] for e in range(env.num_envs)]


def mean_cost(episodes: Sequence[Played]) -> float:
    """The figure that models are chosen by."""
    return statistics.fmean(episode.cost for episode in episodes)


def mean_figures(episodes: Sequence[Played]) -> dict[str, float]:
    """Means of metrics (``metrics/NAME``), rewards (``reward/TERM``), decisions and the share of illegal actions."""
    gathered: dict[str, list[float]] = {}
    for episode in episodes:
        figures = {f"metrics/{name}": value for name, value in episode.metrics.items()}
        figures |= {f"reward/{name}": value for name, value in episode.rewards.items()}
        figures["decisions"] = episode.decisions
        figures["illegal_share"] = episode.illegal / episode.decisions
        for name, value in figures.items():
            gathered.setdefault(name, []).append(value)
    return {name: statistics.fmean(values) for name, values in gathered.items()}
